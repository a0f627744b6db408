"""Whether an operation does the task, or the search found only operations that come close.

A linear rule over four measures. Its weights were fitted by logistic regression on questions with and without an answer
(`python -m tests.operation_search.evaluation`). A positive sum means "no such operation".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from gateway.operation_search.corpus import Corpus, Known
from gateway.operation_search.fitness import WRITES
from gateway.operation_search.phrases import groups_of
from gateway.operation_search.questions import Question
from gateway.operation_search.verbs import OTHER
from gateway.operation_search.words import CONDITION_WORDS, stems

#: the least fit of an action that does the task, and the least weight of a verb that commands
_DOES, _COMMANDS = 0.5, 0.5
#: the rarity assumed for a word that the index does not have
_UNKNOWN = 7.0
#: the words of this many leading operations count as known
_FIRST = 5
#: the weights of the measures, and the constant
_MISSING, _ELSEWHERE, _UNSAID, _WEAK, _CONSTANT = 7.2, 2.1, 3.7, 1.1, -2.7


@dataclass(frozen=True, slots=True)
class Evidence:
    """The measures of one operation for one question."""

    known: Known
    #: the strength before the application in the question is considered
    plain: float
    #: the strength
    strength: float
    #: the fit of its action
    fit: float
    score: float


def is_found(question: Question, found: Sequence[Evidence], named: frozenset[str], corpus: Corpus) -> bool:
    """Whether the first operation of `found`, sorted by score, does the task; `named` are the kinds in the question."""
    doubt = (
        _CONSTANT
        + _MISSING * _missing_action(question, found)
        + _ELSEWHERE * _elsewhere(question, found, named)
        + _UNSAID * _unsaid(question, found, corpus)
        - _WEAK * log(found[0].strength + 0.05)
    )
    return doubt < 0


def subject(found: Sequence[Evidence]) -> Evidence:
    """The strongest operation, whatever its action; the question is about its entity."""
    return max(found, key=lambda each: each.strength)


def wants_write(question: Question) -> bool:
    """Whether the question asks for a change: by a command that means one, or by naming a new thing."""
    writes = (verb for verb in question.verbs.values() if verb.meanings <= WRITES or OTHER in verb.meanings)
    commanded = question.is_command and any(verb.weight >= _COMMANDS for verb in writes)
    return commanded or (question.is_new and not question.is_asking)


def _missing_action(question: Question, found: Sequence[Evidence]) -> float:
    """How much weaker the operations with a fitting action are than the strongest one, if a change is wanted."""
    if not wants_write(question):
        return 0.0
    about = subject(found)
    doing = [each for each in found if each.fit >= _DOES]
    if any(_noun(each) == _noun(about) for each in doing):
        return 0.0
    return 1 - max((each.strength for each in doing), default=0.0) / about.strength


def _noun(evidence: Evidence) -> tuple[str, ...]:
    """The kind and the noun of an entity: `project_sections` and `sections` have the same."""
    kind, entity_id, _ = evidence.known.owner
    return kind, *stems(entity_id.replace("_", " "))[-1:]


def _elsewhere(question: Question, found: Sequence[Evidence], named: frozenset[str]) -> float:
    """How much weaker the operations of the named kinds are than those of others."""
    if not named or not question.head:
        return 0.0
    there = max((each.plain for each in found if each.known.owner[0] in named), default=0.0)
    return 1 - there / max(each.plain for each in found)


def _unsaid(question: Question, found: Sequence[Evidence], corpus: Corpus) -> float:
    """The share of the question's words that the leading entities do not have; rare words count more."""
    entities = {(each.known.owner[0], each.known.owner[1]) for each in found[:_FIRST]}
    said = frozenset().union(*(corpus.vocabularies[key] for key in entities))
    total = missing = question.unknown * _UNKNOWN
    for term, weight in question.terms.items():
        if term not in CONDITION_WORDS:
            rarity = weight * corpus.phrases.rarity.get(term, _UNKNOWN)
            total += rarity
            missing += 0 if term in said or not said.isdisjoint(groups_of([term])) else rarity
    return missing / total if total else 1.0
