"""Whether a search found what was asked for, or only what comes closest to it.

A linear rule over four measures. Its weights were fitted by logistic regression on questions with and without an answer
(`python -m tests.operation_search.evaluation`); they say which share of the measures speaks for "no such operation".
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

#: the fit from which an action does what is wanted, and the certainty from which a verb commands
_DOES, _COMMANDS = 0.5, 0.5
#: how rare a word is taken for that the index does not have
_UNKNOWN = 7.0
#: how many of the operations found speak for a word
_FIRST = 5
#: the weights of the measures, and the constant
_MISSING, _ELSEWHERE, _UNSAID, _WEAK, _CONSTANT = 7.2, 2.1, 3.7, 1.1, -2.7


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for an operation."""

    known: Known
    #: how much speaks for it, whatever application is named
    plain: float
    #: how much speaks for it
    strength: float
    #: how well its action does what is wanted
    fit: float
    score: float


def is_found(question: Question, found: Sequence[Evidence], named: frozenset[str], corpus: Corpus) -> bool:
    """Whether the first of `found`, which is sorted, does what is asked for; `named` are the kinds that the question
    names."""
    doubt = (
        _CONSTANT
        + _MISSING * _missing_action(question, found)
        + _ELSEWHERE * _elsewhere(question, found, named)
        + _UNSAID * _unsaid(question, found, corpus)
        - _WEAK * log(found[0].strength + 0.05)
    )
    return doubt < 0


def subject(found: Sequence[Evidence]) -> Evidence:
    """The operation that most speaks for, whatever its action: its entity is what the question is about."""
    return max(found, key=lambda each: each.strength)


def wants_write(question: Question) -> bool:
    """Whether something is to be changed: by a command that means nothing else, or by the name of a new thing."""
    writes = (verb for verb in question.verbs.values() if verb.meanings <= WRITES or OTHER in verb.meanings)
    commanded = question.is_command and any(verb.weight >= _COMMANDS for verb in writes)
    return commanded or (question.is_new and not question.is_asking)


def _missing_action(question: Question, found: Sequence[Evidence]) -> float:
    """How much less speaks for operations that do what is wanted than for others, where a change is wanted."""
    if not wants_write(question):
        return 0.0
    about = subject(found)
    doing = [each for each in found if each.fit >= _DOES]
    if any(_noun(each) == _noun(about) for each in doing):
        return 0.0
    return 1 - max((each.strength for each in doing), default=0.0) / about.strength


def _noun(evidence: Evidence) -> tuple[str, ...]:
    """What an entity's records are called, in its kind: that of `project_sections` is that of `sections`."""
    kind, entity_id, _ = evidence.known.owner
    return kind, *stems(entity_id.replace("_", " "))[-1:]


def _elsewhere(question: Question, found: Sequence[Evidence], named: frozenset[str]) -> float:
    """How much less speaks for the kinds that are named than for others."""
    if not named or not question.head:
        return 0.0
    there = max((each.plain for each in found if each.known.owner[0] in named), default=0.0)
    return 1 - there / max(each.plain for each in found)


def _unsaid(question: Question, found: Sequence[Evidence], corpus: Corpus) -> float:
    """The share of the question's words that are said of none of the first entities, rare ones counting more."""
    entities = {(each.known.owner[0], each.known.owner[1]) for each in found[:_FIRST]}
    said = frozenset().union(*(corpus.vocabularies[key] for key in entities))
    total = missing = question.unknown * _UNKNOWN
    for term, weight in question.terms.items():
        if term not in CONDITION_WORDS:
            rarity = weight * corpus.phrases.rarity.get(term, _UNKNOWN)
            total += rarity
            missing += 0 if term in said or not said.isdisjoint(groups_of([term])) else rarity
    return missing / total if total else 1.0
