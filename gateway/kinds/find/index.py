"""The index that finds the operations for a task in plain words, best first, in a few milliseconds.

The score of an operation is a weighted sum: the words that it and its entity share with the question (`bm25`), the
similarity of meaning of its closest phrase (`vectors`), the fit of its action (`fitness`), and what the question says
of kinds, of an id and of conditions.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest
from operator import itemgetter

from gateway.contract.kinds import Effect
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.find.bm25 import Bm25
from gateway.kinds.find.confidence import Candidate, Topic, is_found
from gateway.kinds.find.corpus import Corpus
from gateway.kinds.find.entries import DEFAULT_LIMIT, OperationEntry, passes
from gateway.kinds.find.findings import Findings, Match
from gateway.kinds.find.fitness import Fitness
from gateway.kinds.find.missing import message_for
from gateway.kinds.find.questions import MAX_CHARACTERS, Number, Question, question_of
from gateway.kinds.find.tools import name_of_operation_tool
from gateway.kinds.find.vectors import Similarity, WordVectors, shared_vectors

_log = logging.getLogger(__name__)

#: number of operations of the closest topics whose scores are computed
_CONSIDERED = 100
#: minimum similarity of meaning to a question that shares no word; parts of unknown words are a little less similar
_SIMILAR = 0.5
#: minimum similarity of a question that is the operation's own phrase, and so fits it, whatever its verb usually means
_SAME = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights of the parts of a score, beside 1 for the words of an operation and 1 for the fit of its action.

    They were chosen by hand, in steps of a tenth or more, on the questions of the tests and of split `a` of the fresh
    ones. Steps of a half more or less change hits by less than two points.
    """

    #: an entity whose other operations have the words too is more probably meant
    entity: float = 0.4
    #: all words of the entity's name are in the question: `incidents` is asked for rather than `incident_roles`
    named: float = 0.3
    #: cosines of questions and their phrases are about half as large as the score of words
    meaning: float = 2.0
    #: an id decides between operations of the same words: `comments of ticket 7` are not got by the id of a comment
    takes_id: float = 0.5
    #: only a search of the copy applies any condition; it makes up for its lower fit
    copy_of_condition: float = 0.3
    #: more than any difference of words of kinds alike, and less than that of words of another task
    not_connected: float = 1.0
    #: "help desk" says which tickets, but may say something else
    other_kind: float = 0.4


_WEIGHTS = Weights()


#: the last index, with the kinds by whose identities it is found
_made: dict[tuple[int, ...], tuple[tuple[Kind, ...], "OperationIndex"]] = {}


def index_of(catalog: Catalog) -> "OperationIndex":
    """The index of all operations; a kind that cannot be read is left out, so that the others are found.

    Catalogs of a process that have the same kinds have one index.
    """
    kinds = tuple(catalog)
    key = tuple(map(id, kinds))
    if made := _made.get(key):
        return made[1]
    index = _new_index(Catalog(kinds))  # the other catalog may get a kind meanwhile
    _made.clear()
    _made[key] = kinds, index
    return index


def _new_index(catalog: Catalog) -> "OperationIndex":
    vectors = shared_vectors()
    try:
        return OperationIndex(catalog, vectors)
    except Exception:
        return OperationIndex(Catalog(kind for kind in catalog if _is_readable(kind)), vectors)


def _is_readable(kind: Kind) -> bool:
    try:
        OperationIndex(Catalog([kind]))
    except Exception:
        _log.exception("the operations of a kind cannot be searched", extra={"kind": kind.name})
        return False
    return True


class OperationIndex:
    """Searches all operations of a catalog; without vectors by words alone."""

    def __init__(self, catalog: Catalog, vectors: WordVectors | None = None) -> None:
        self._corpus = corpus = Corpus(catalog)
        self._words_of_entities = Bm25([*corpus.of_entities.values()])
        self._similarity = Similarity(vectors, [each.texts for each in corpus.operations]) if vectors else None
        self.entries = tuple(operation.entry for operation in corpus.operations)

    @cached_property
    def by_tool(self) -> Mapping[str, Sequence[OperationEntry]]:
        """The operations by the name of their tool, on a server with a tool for each operation."""
        by_tool: dict[str, list[OperationEntry]] = defaultdict(list)
        for entry in self.entries:
            by_tool[name_of_operation_tool(entry)].append(entry)
        return dict(by_tool)

    def search(
        self,
        text: str,
        kind: str | None = None,
        effect: Effect | str | None = None,
        limit: int = DEFAULT_LIMIT,
        connected: Collection[str] = (),
        among: Collection[str] | None = None,
    ) -> Findings:
        """The operations for the task, best first; `kind`, `effect` and `among` (names of kinds) restrict them.

        Kinds in `connected` are preferred. A text without known words finds nothing.
        """
        bare, in_text = self._corpus.applications.separated(text[:MAX_CHARACTERS])
        named = frozenset() if kind else in_text
        question = question_of(bare)
        operations, words = self._corpus.operations, self._corpus.words.scores(question.terms)
        similarity = self._similarity if question.terms else None
        # Without vectors the words say it: cosines are about half as large as their score.
        meanings = similarity.scores(question.asked) if similarity else [word / 2 for word in words]
        topics = self._topics(question, words, meanings, named, connected)
        if not (kind is effect is among is None):
            topics = [each for each in topics if passes(operations[each[1]].entry, kind, effect, among)]
        own = [each for each in topics if operations[each[1]].entity[0] in named] if named else topics
        nearest = [
            Topic(operations[place], closeness, meanings[place])
            for closeness, place in nlargest(max(limit, _CONSIDERED), own, key=itemgetter(0))
        ]
        found = sorted(self._scored(question, named, nearest), key=lambda each: -each.score)
        matches = [Match(each.operation.entry, round(each.score, 4)) for each in found[:limit]]
        if found and is_found(question, found, max(topics)[0], self._corpus):
            return Findings(matches)
        kinds = frozenset([kind] if kind else among or named)
        return Findings((), matches, message_for(question, found, kinds, self._corpus))

    def _topics(
        self,
        question: Question,
        words: Sequence[float],
        meanings: Sequence[float],
        named: frozenset[str],
        connected: Collection[str],
    ) -> list[tuple[float, int]]:
        """The operations that have something in common with what the question is about: closeness and place."""
        corpus, terms = self._corpus, question.terms
        of_entities, asked = self._words_of_entities.scores(terms), frozenset(terms)
        penalties = self._penalties(question, named, connected)
        # An entity that shares no word has a name that is not in the question either.
        shared = [
            (_WEIGHTS.entity * score + _WEIGHTS.named * (name <= asked) if score else 0.0) - penalties[kind]
            for (kind, _), name, score in zip(corpus.of_entities, corpus.names, of_entities, strict=True)
        ]
        return [
            (word + _WEIGHTS.meaning * meaning + shared[entity], place)
            for place, (word, meaning, entity) in enumerate(zip(words, meanings, corpus.entity_of, strict=True))
            if word or meaning >= _SIMILAR
        ]

    def _penalties(self, question: Question, named: frozenset[str], connected: Collection[str]) -> dict[str, float]:
        """What the operations of each kind lose."""
        preferred, asked = {*connected, *named}, frozenset(question.terms)
        in_words = {kind for kind, phrase in self._corpus.kind_phrases if phrase <= asked}
        return {
            kind: _WEIGHTS.not_connected * bool(connected and kind not in preferred)
            + _WEIGHTS.other_kind * bool(in_words and not named and kind not in in_words)
            for kind in self._corpus.catalog.kinds
        }

    def _scored(self, question: Question, named: frozenset[str], topics: Sequence[Topic]) -> Iterator[Candidate]:
        fits = Fitness(question)
        noun = self._corpus.nouns.get(question.id_of or "", ())
        #: the entities that the id in the question may belong to
        referred = {entity for entity in noun if not named or entity[0] in named}
        filters = question.has_condition and question.number is not Number.ONE
        for topic in topics:
            operation = topic.operation
            fit = fits.of(operation)
            if operation.entry.action and topic.meaning >= _SAME:
                fit = max(fit, topic.meaning)
            score = topic.closeness + fit
            if not referred.isdisjoint((operation.entity[0], entity_id) for entity_id in operation.taken):
                score += _WEIGHTS.takes_id
            if filters and operation.action == SEARCH_ACTION:
                score += _WEIGHTS.copy_of_condition
            yield Candidate(topic, fit, score)
