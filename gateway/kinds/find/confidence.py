"""Decides whether the first operation does the task, or whether the search found only similar operations.

The decision is a linear rule over reasons against an answer. Its weights were fitted by logistic regression on the
questions with and without an answer of the tests, split `b` of the fresh ones left out, and then rounded.

Further reasons were tried and left out: the share of rare words that an operation's texts do not cover, exactly or by
the similarity of words; the object of a command that no phrase of the operation commands; the similarity of verb and
object alone. On questions that they were not fitted on they recognised 3 of 50 more, and refused 3 of 258 more.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.kinds.find.corpus import Corpus, IndexedOperation
from gateway.kinds.find.questions import Question
from gateway.kinds.find.verbs import ACTIONS_OF_VERB, OTHER, SPECIAL, WRITES
from gateway.kinds.find.words import COMMON_WORDS, CONDITION_WORDS, stem, stems

#: minimum fit of an action that does the task
_DOES = 0.5
#: minimum certainty of a verb that commands
_COMMANDS = 0.5
#: number of first operations whose verbs are considered
_LEADING = 5
#: a change is wanted, and the first operation makes no such change: its entity lacks the action
_NO_CHANGE = 4.5
#: the share by which the first operation is less close to the question than the closest one, whose action does not fit
_FARTHER = 3.0
#: the share by which the named application's operations are less close than those of others
_OTHER_KINDS = 3.3
#: a rare verb ("merge", "print"), and another verb, that none of the first operations has
_SPECIAL_VERB, _UNKNOWN_VERB = 3.0, 1.2
#: the share of rare words that the entity's operations lack, as far as the meaning differs too
_OTHER_THINGS = 2.5
#: no operation is returned if the reasons together reach this: 2 % of the questions with an answer do, and 2 to 5 % of
#: those that were not tuned on
_THRESHOLD = 2.3

_PLAIN = {stem(word) for word in COMMON_WORDS | CONDITION_WORDS} | ACTIONS_OF_VERB.keys()


class Topic(NamedTuple):
    """An operation that has something in common with what a question is about."""

    operation: IndexedOperation
    #: how close it is, whatever its action
    closeness: float
    #: the similarity of meaning, from 0 to 1
    meaning: float


class Candidate(NamedTuple):
    """A topic with the fit of its action, and its score."""

    topic: Topic
    fit: float
    score: float

    @property
    def operation(self) -> IndexedOperation:
        return self.topic.operation


def is_found(question: Question, found: Sequence[Candidate], closest: float, corpus: Corpus) -> bool:
    """Whether the first operation of `found`, sorted by score, does the task.

    `closest` is the closeness of the closest operation, also of applications that the question does not name.
    """
    weights = (_NO_CHANGE, _FARTHER, _OTHER_KINDS, _SPECIAL_VERB, _UNKNOWN_VERB, _OTHER_THINGS)
    reasons = reasons_against(question, found, closest, corpus)
    return sum(weight * reason for weight, reason in zip(weights, reasons, strict=True)) < _THRESHOLD


def reasons_against(
    question: Question, found: Sequence[Candidate], closest: float, corpus: Corpus
) -> tuple[float, float, float, float, float, float]:
    """The reasons against an answer, each from 0 to 1, in the order of their weights."""
    first, about = found[0], subject(found)
    commands = {stem for stem, verb in question.verbs.items() if verb.weight >= _COMMANDS}
    changes = {stem for stem in commands if question.verbs[stem].meanings <= WRITES | {OTHER}}
    known = {verb for each in found[:_LEADING] if each.operation.action in WRITES for verb in each.operation.verbs}
    known |= corpus.verbs_of.get(first.operation.noun, set())
    rare = commands & SPECIAL
    return (
        float(wants_write(question) and first.fit < _DOES),
        _distance(first.topic.closeness, about.topic.closeness),
        _distance(about.topic.closeness, closest),
        float(bool(rare) and rare.isdisjoint(known)),
        float(question.is_command and bool(changes) and changes.isdisjoint(known)),
        _other_things(question, first) * (1 - first.topic.meaning),
    )


def _distance(closeness: float, best: float) -> float:
    """The share by which an operation is less close than the best; all are far if even the best is not close."""
    return min(1 - closeness / best, 1.0) if best > 0 else 1.0


def subject(found: Sequence[Candidate]) -> Candidate:
    """The closest operation, whatever its action; the question is about its entity."""
    return max(found, key=lambda each: each.topic.closeness)


def wants_write(question: Question) -> bool:
    """Whether the question asks for a change: with a command that always means one, or by naming a new thing."""
    writes = (verb for verb in question.verbs.values() if verb.meanings <= WRITES and verb.weight >= _COMMANDS)
    return (question.is_command and any(writes)) or (question.is_new and not question.is_asking)


def is_named(question: Question, about: Candidate) -> bool:
    """Whether the question contains the entity's name or a synonym."""
    entity = about.operation.entry.entity
    names = (about.operation.entry.entity_id.replace("_", " "), *entity.synonyms)
    return any(terms and set(terms) <= question.terms.keys() for terms in map(stems, names))


def _other_things(question: Question, first: Candidate) -> float:
    """The share of the nouns asked for that neither the phrases of the operation nor the names of its entity have."""
    nouns = [noun for noun in question.nouns if not (noun in _PLAIN or noun.isdigit())]
    return sum(noun not in first.operation.terms for noun in nouns) / max(len(nouns), 1)
