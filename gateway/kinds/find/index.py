"""The index that finds the operations for a task in plain words, best first, in a few milliseconds.

The strength of an operation is the similarity of the question to its phrases, to the phrases of its entity and to those
of the entity's other operations, plus the words that it shares with the description, params and fields. The score is
the strength, weighted by the fit of the action (`fitness`), by the application and by the id that the question names.
The search uses no model.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from heapq import nlargest
from math import log

from gateway.contract.kinds import Effect
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.find.confidence import AnalyzedQuestion, Evidence, is_found
from gateway.kinds.find.corpus import Corpus, IndexedOperation
from gateway.kinds.find.entries import DEFAULT_LIMIT, OperationEntry, passes
from gateway.kinds.find.findings import Findings, Match
from gateway.kinds.find.fitness import fitness
from gateway.kinds.find.missing import message_for
from gateway.kinds.find.phrases import Closeness, Owner, groups_of
from gateway.kinds.find.questions import Number, Question, question_of
from gateway.kinds.find.references import EntityKey
from gateway.kinds.find.spelling import Spelling
from gateway.kinds.find.verbs import ACTIONS_OF_VERB, affinity
from gateway.kinds.find.words import stem

_log = logging.getLogger(__name__)  # `log` is the logarithm

#: number of strongest operations whose fit is computed
_CONSIDERED = 45
#: number of entities whose operations are considered, so that a larger catalog takes little longer
_ENTITIES = 50
#: minimum share of a question that is assumed to be in the clauses that ask
_MIN_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights of the parts of strength, fit and score."""

    entity: float = 1.0
    siblings: float = 0.2
    text: float = 0.15
    kind_words: float = 0.3
    #: the share of a list's votes that counts for the search of the copy, which has no phrases
    copy: float = 0.6
    #: the share of the score that depends on the action's fit
    fit: float = 0.7
    #: factors for other kinds: if the question names an application, and if it has the words of a kind
    other_application: float = 0.1
    other_kind: float = 0.6
    #: added for an operation that takes the id in the question; the share of that if the id is not of the thing asked
    #: for; the factor for operations that do not take the id
    takes_id: float = 0.3
    takes_id_aside: float = 0.3
    takes_no_id: float = 0.8
    #: the fit of a get, if the question asks for fields of the record with the id
    get_by_id: float = 0.9
    #: the factor for the fit of an action that is only similar: `create_many` for `create`
    like_another: float = 0.7
    #: factors for the fit of a search of the copy and of a get, if the question has a condition
    copy_of_condition: float = 1.8
    get_of_condition: float = 0.6
    #: the factor for kinds without a connector, if others have one
    not_connected: float = 0.15


_WEIGHTS = Weights()


def index_of(catalog: Catalog) -> "OperationIndex":
    """The index of all operations; a kind that cannot be read is left out, so that the others are found."""
    try:
        return OperationIndex(catalog)
    except Exception:
        return OperationIndex(Catalog(kind for kind in catalog if _is_readable(kind)))


def _is_readable(kind: Kind) -> bool:
    try:
        OperationIndex(Catalog([kind]))
    except Exception:
        _log.exception("the operations of a kind cannot be searched", extra={"kind": kind.name})
        return False
    return True


class OperationIndex:
    """Searches all operations of a catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._of_kinds: dict[str, OperationIndex] = {}
        self._corpus = Corpus(catalog)
        self._spelling = Spelling(self._corpus.vocabulary)
        self._misspelt_applications = self._corpus.applications.by_stem()
        self.entries = tuple(operation.entry for operation in self._corpus.operations)

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
        if kind in self._catalog.kinds and len(self._catalog.kinds) > 1:
            return self._of_kind(kind).search(text, kind, effect=effect, limit=limit, connected=connected, among=among)
        bare, named = self._corpus.applications.separated(text)
        question = question_of(bare, self.spelling_of)
        for term in question.terms.keys() & self._misspelt_applications.keys():
            named |= self._misspelt_applications[term]
        evaluation = _Evaluation(self._corpus, question, named, connected)
        found = evaluation.evidence(partial(passes, kind=kind, effect=effect, among=among), max(limit, _CONSIDERED))
        found.sort(key=lambda each: -each.score)
        matches = [Match(each.operation.entry, round(each.score, 4)) for each in found[:limit]]
        other = self._corpus.applications.other_in(bare)
        analyzed = AnalyzedQuestion(question, named, other, evaluation.share_of_asked())
        if found and is_found(analyzed, found, self._corpus):
            return Findings(matches)
        kinds = frozenset([kind] if kind else among or named)
        return Findings((), matches, message_for(analyzed, found, kinds, self._corpus))

    def _of_kind(self, kind: str) -> "OperationIndex":
        """The index of one kind, created at the first request; in it, the rarity of words depends on that kind only."""
        if kind not in self._of_kinds:
            self._of_kinds[kind] = OperationIndex(Catalog([self._catalog.kind(kind)]))
        return self._of_kinds[kind]

    def spelling_of(self, word: str, is_name: bool) -> str | None:
        """The word in the spelling of the index; None if the index does not have it. Names are not corrected."""
        term = stem(word)
        if term in self._corpus.phrases.rarity or term in self._corpus.texts_with or term in ACTIONS_OF_VERB:
            return word
        return None if is_name else self._spelling.corrected(word)


class _Evaluation:
    """Computes the evidence of operations for one question."""

    def __init__(self, corpus: Corpus, question: Question, named: frozenset[str], connected: Collection[str]) -> None:
        self._corpus = corpus
        self._question = question
        self._named = named
        self._closeness: Closeness = corpus.phrases.closeness(question.terms, frozenset(connected))
        self._siblings = _by_entity(self._closeness)
        #: the entities that a phrase votes for
        self._voted = {(owner[0], owner[1]) for owner in self._closeness.votes if len(owner) > 1}
        self._texts = self._text_scores()
        terms = question.terms.keys()
        #: the kinds one of whose phrases is in the question, unless it names applications
        self._kinds_in_words = set() if named else {kind for kind, words in corpus.kind_phrases if words <= terms}
        kinds, shares = corpus.catalog.kinds, _shares(corpus, question)
        self._words_of_kind = {kind: _WEIGHTS.kind_words * shares.get(kind, 0) for kind in kinds}
        self._preference = {
            kind: _WEIGHTS.not_connected if connected and kind not in {*connected, *named} else 1.0 for kind in kinds
        }
        self._share = {kind: self._share_of_kind(kind) for kind in kinds}
        self._referred = self._entities_referred_to()
        noun = question.reference.noun if question.reference else None
        #: the stems of the thing asked for, without the noun before the id
        self._besides = frozenset(term for term in question.head if term != noun and term in corpus.phrases.rarity)

    def evidence(self, is_wanted: Callable[[OperationEntry], bool], most: int) -> list[Evidence]:
        """The evidence of the strongest of the wanted operations, at most `most`."""
        near = self._voted or {(owner[0], owner[1]) for owner in self._texts}
        wanted = {
            entity: operations
            for entity in sorted(near)
            if (operations := [each for each in self._corpus.operations_of.get(entity, ()) if is_wanted(each.entry)])
        }
        strengths = []
        for entity in nlargest(_ENTITIES, wanted, key=self._promise):
            kind, base = entity[0], self._base(entity)
            for operation in wanted[entity]:
                if strength := self._strength(operation, base):
                    plain = (strength + self._words_of_kind[kind]) * self._preference[kind]
                    strengths.append((operation, plain, plain * self._share[kind]))
        strongest = nlargest(most, strengths, key=lambda each: each[2])
        return [self._evidence(operation, plain, strength) for operation, plain, strength in strongest]

    def share_of_asked(self) -> float:
        """The share of the question's vector that is in the clauses that ask; 1 if no clause asks."""
        asked = self._question.asked.keys() | groups_of(self._question.asked)
        share = sum(part * part for term, part in self._closeness.vector.items() if term in asked)
        return max(share, _MIN_SHARE) if asked else 1.0

    def _evidence(self, operation: IndexedOperation, plain: float, strength: float) -> Evidence:
        closest = self._closest(operation)
        fit = fitness(self._question, operation.action, operation.verbs, closest)
        if operation.action != operation.owner[2] and operation.verbs.isdisjoint(self._question.verbs):
            fit *= _WEIGHTS.like_another
        strength, fit = self._by_id(operation, strength, fit)
        fit = self._by_condition(operation.action, fit)
        score = strength * (1 - _WEIGHTS.fit + _WEIGHTS.fit * fit)
        return Evidence(
            operation=operation,
            plain=plain,
            strength=strength,
            fit=fit,
            score=score,
            preference=self._preference[operation.owner[0]],
        )

    def _base(self, entity: EntityKey) -> float:
        """The part of the strength that all operations of an entity share."""
        votes = _WEIGHTS.entity * self._closeness.votes.get(entity, 0)
        return votes + _WEIGHTS.siblings * self._siblings.get(entity, 0)

    def _promise(self, entity: EntityKey) -> float:
        """An estimate of the strength of an entity's operations."""
        votes = _WEIGHTS.entity * self._closeness.votes.get(entity, 0) + self._siblings.get(entity, 0)
        return votes * self._preference[entity[0]] * self._share[entity[0]]

    def _strength(self, operation: IndexedOperation, base: float) -> float:
        votes, owner = self._closeness.votes, operation.owner
        strength = base + votes.get(owner, 0) + _WEIGHTS.text * self._texts.get(owner, 0)
        if owner[2] == SEARCH_ACTION:
            strength += _WEIGHTS.copy * max(votes.get((*owner[:2], action), 0) for action in ("list", "api_search"))
        return strength

    def _text_scores(self) -> dict[Owner, float]:
        """For each operation, the weight of the question's words in its description, params and fields."""
        scores: dict[Owner, float] = defaultdict(float)
        for term, component in self._closeness.vector.items():
            owners = self._corpus.texts_with.get(term, ())
            for owner in owners:
                scores[owner] += component / (1 + log(len(owners)))
        return scores

    def _closest(self, operation: IndexedOperation) -> float:
        best, owner = self._closeness.best, operation.owner
        closest = best.get(owner, 0.0)
        if owner[2] == SEARCH_ACTION:
            return max(closest, *(best.get((*owner[:2], action), 0.0) for action in ("list", "api_search")))
        return closest

    def _share_of_kind(self, kind: str) -> float:
        if self._named:
            return 1 if kind in self._named else _WEIGHTS.other_application
        return 1 if not self._kinds_in_words or kind in self._kinds_in_words else _WEIGHTS.other_kind

    def _entities_referred_to(self) -> Mapping[EntityKey, float]:
        """The entities that the id in the question may belong to, with weights."""
        if self._question.reference is None:
            return {}
        entities = self._corpus.nouns.get(self._question.reference.noun, {})
        return {key: weight for key, weight in entities.items() if not self._named or key[0] in self._named}

    def _by_id(self, operation: IndexedOperation, strength: float, fit: float) -> tuple[float, float]:
        """The strength and the fit, if the question names an id."""
        if not self._referred or self._question.reference is None:
            return strength, fit
        owner, is_aside = operation.owner, self._question.reference.is_aside
        taken = max(
            (weight * operation.taken[entity_id] for (kind, entity_id), weight in self._referred.items()
             if kind == owner[0] and entity_id in operation.taken),
            default=0.0,
        )  # fmt: skip
        if not taken:
            return strength * _WEIGHTS.takes_no_id, fit
        strength += _WEIGHTS.takes_id * taken * (_WEIGHTS.takes_id_aside if is_aside else 1)
        if owner[2] == "get" and owner[:2] in self._referred and not is_aside and self._asks_for_fields(operation):
            fit = max(fit, _WEIGHTS.get_by_id)
        return strength, fit

    def _asks_for_fields(self, operation: IndexedOperation) -> bool:
        """Whether the question asks for fields of the record that a get returns."""
        verbs = self._question.verbs.values()
        if self._question.is_command and max((affinity(verb.meanings, "get") for verb in verbs), default=1) < 0.6:
            return False
        if self._besides & self._corpus.listed_below.get(operation.entity, set()):
            return False
        return self._besides <= operation.text | self._corpus.terms_of(operation.owner)

    def _by_condition(self, action: str, fit: float) -> float:
        """The fit, if the question has a condition."""
        if not self._question.has_condition:
            return fit
        if action == SEARCH_ACTION and self._question.number is not Number.ONE:
            return fit * _WEIGHTS.copy_of_condition
        if action == "get" and self._question.number is Number.MANY:
            return fit * _WEIGHTS.get_of_condition
        return fit


def _by_entity(closeness: Closeness) -> dict[tuple[str, ...], float]:
    """The votes of all operations of each entity."""
    votes: dict[tuple[str, ...], float] = defaultdict(float)
    for owner, vote in closeness.votes.items():
        if len(owner) == 3:
            votes[owner[:2]] += vote
    return votes


def _shares(corpus: Corpus, question: Question) -> dict[str, float]:
    """The share of each kind in the question's words; the sum of all kinds is 1."""
    scores: dict[str, float] = defaultdict(float)
    for term, weight in question.terms.items():
        for kind, share in corpus.shares.get(term, {}).items():
            scores[kind] += weight * share
    total = sum(scores.values()) or 1.0
    return {kind: score / total for kind, score in scores.items()}
