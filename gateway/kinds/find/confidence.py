"""Decides whether the first operation does the task, or whether the search found only similar operations.

The decision is a linear rule. A low strength alone is no reason to refuse a task, because its wording may be unusual.
Reasons are: the entity does not have the action; the verb is rare and none of the first operations has it; the question
names another application; the question asks to read a thing that can only be written; a noun qualifies the entity as
another thing. The weights were fitted by logistic regression on questions with and without an answer: those of the
tests, phrases of specs left out of the index, operations left out of the catalog, and all of these in long requests.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from gateway.kinds.find.corpus import Corpus, IndexedOperation, noun_of
from gateway.kinds.find.fitness import WRITES
from gateway.kinds.find.phrases import groups_of
from gateway.kinds.find.questions import Number, Question
from gateway.kinds.find.verbs import ACTIONS_OF_VERB, OTHER, SPECIAL
from gateway.kinds.find.words import CONDITION_WORDS, stems

#: minimum fit of an action that does the task
_DOES = 0.5
#: minimum weight of a verb that commands
_COMMANDS = 0.5
#: number of first operations whose verbs are considered
_LEADING = 5
#: the rarity assumed for a word that the index does not have
_UNKNOWN = 7.0
#: weights of the reasons against an answer
_MISSING, _MISSING_NEW, _OTHER_KINDS, _OTHER_APPLICATION = 7.8, 2.9, 2.3, 5.8
_SPECIAL_VERB, _UNKNOWN_VERB, _OTHER_THING, _UNKNOWN_WORDS, _NO_READ = 3.4, 1.4, 2.2, 1.0, 2.0
#: weights of the reasons for an answer
_NAMED, _FIT, _STRENGTH = 1.35, 0.9, 0.45
#: no operation is returned if the reasons against exceed the reasons for an answer by this
_THRESHOLD = 0.8
#: the strength is divided by this power of the share of the question that asks, so that circumstances do not reduce it
_SHARE_POWER = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The measures of one operation for one question."""

    operation: IndexedOperation
    #: the strength before the application in the question is considered
    plain: float
    #: the strength
    strength: float
    #: the fit of its action
    fit: float
    score: float
    #: the factor that the strength has for a kind without a connector
    preference: float


@dataclass(frozen=True, slots=True)
class AnalyzedQuestion:
    """A question, and the applications that it names."""

    question: Question
    #: the kinds of the applications that it names
    named: frozenset[str]
    #: an application that it names and that has no kind
    other_application: str | None
    #: the share of the question's vector that is in the clauses that ask
    share: float


def is_found(analyzed: AnalyzedQuestion, found: Sequence[Evidence], corpus: Corpus) -> bool:
    """Whether the first operation of `found`, sorted by score, does the task."""
    question, first = analyzed.question, found[0]
    missing = _missing_action(question, found, corpus)
    strength = first.strength / first.preference / analyzed.share**_SHARE_POWER
    against = (
        (_MISSING if is_commanded(question) else _MISSING_NEW) * missing
        + _OTHER_KINDS * _other_kinds(question, found, analyzed.named)
        + _OTHER_APPLICATION * (analyzed.other_application is not None and not analyzed.named)
        + _unknown_verbs(question, found, corpus)
        + _OTHER_THING * _unrelated_nouns(question, first, corpus)
        + _UNKNOWN_WORDS * _unknown_words(question, corpus)
        + _NO_READ * _missing_read(question, found)
    )
    in_favor = _NAMED * is_named(question, subject(found)) + _FIT * first.fit + _STRENGTH * log(strength + 0.05)
    return against - in_favor < _THRESHOLD


def subject(found: Sequence[Evidence]) -> Evidence:
    """The strongest operation with any action; the question is about its entity."""
    return max(found, key=lambda each: each.strength)


def is_commanded(question: Question) -> bool:
    """Whether the question commands with a verb that always means a change."""
    writes = (verb for verb in question.verbs.values() if verb.meanings <= WRITES and verb.weight >= _COMMANDS)
    return question.is_command and any(writes)


def wants_write(question: Question) -> bool:
    """Whether the question asks for a change: with a command that means one, or by naming a new thing."""
    others = any(OTHER in verb.meanings and verb.weight >= _COMMANDS for verb in question.verbs.values())
    return is_commanded(question) or (question.is_command and others) or (question.is_new and not question.is_asking)


def is_named(question: Question, about: Evidence) -> bool:
    """Whether the question contains the entity's name or a synonym."""
    entity = about.operation.entry.entity
    names = (about.operation.entry.entity_id.replace("_", " "), *entity.synonyms)
    return any(terms and set(terms) <= question.terms.keys() for terms in map(stems, names))


def _missing_action(question: Question, found: Sequence[Evidence], corpus: Corpus) -> float:
    """How much weaker operations with a fitting action are than the strongest one, if the question asks for a change.

    0 if the first operation has a fitting action and is of the entity that the question names.
    """
    if not (is_commanded(question) or (question.is_new and not question.is_asking)):
        return 0.0
    about, first = subject(found), found[0]
    if first.fit >= _DOES and _are_own(question, first, corpus)[-1:] == [True] and is_named(question, first):
        return 0.0
    doing = [each for each in found if each.fit >= _DOES]
    if any(noun_of(each.operation.owner) == noun_of(about.operation.owner) for each in doing):
        return 0.0
    return 1 - max((each.strength for each in doing), default=0.0) / about.strength


def _missing_read(question: Question, found: Sequence[Evidence]) -> float:
    """How much weaker reading operations are than the strongest one, if the question asks to read something.

    0 if the entity that the question is about can be read.
    """
    writes = wants_write(question) or question.is_demand
    changes = any(verb.meanings <= WRITES and verb.weight >= _COMMANDS for verb in question.verbs.values())
    asks = question.is_asking or question.is_command or question.number is Number.MANY
    if writes or changes or not asks:
        return 0.0
    about = subject(found)
    reading = [each for each in found if each.operation.action not in WRITES]
    if any(noun_of(each.operation.owner) == noun_of(about.operation.owner) for each in reading):
        return 0.0
    return 1 - max((each.strength for each in reading), default=0.0) / about.strength


def _other_kinds(question: Question, found: Sequence[Evidence], named: frozenset[str]) -> float:
    """How much weaker the operations of the named kinds are than those of all kinds."""
    if not named or not question.head:
        return 0.0
    of_named = max((each.plain for each in found if each.operation.owner[0] in named), default=0.0)
    return 1 - of_named / max(each.plain for each in found)


def _unknown_verbs(question: Question, found: Sequence[Evidence], corpus: Corpus) -> float:
    """The weight of commands for a change whose verbs no leading operation that changes something has.

    Verbs that few APIs have an operation for count more.
    """
    commands = {stem for stem, verb in question.verbs.items() if verb.weight >= _COMMANDS}
    changes = {stem for stem in commands if question.verbs[stem].meanings <= WRITES | {OTHER}}
    known = {verb for each in found[:_LEADING] if each.operation.action in WRITES for verb in each.operation.verbs}
    known |= corpus.verbs_of.get(noun_of(found[0].operation.owner), set())
    special = commands & SPECIAL
    return (_SPECIAL_VERB if special and special.isdisjoint(known) else 0.0) + (
        _UNKNOWN_VERB if question.is_command and changes and changes.isdisjoint(known) else 0.0
    )


def _unrelated_nouns(question: Question, first: Evidence, corpus: Corpus) -> float:
    """The share of nouns that the entity does not have, before one that it has: `exchange rate`, `custom emoji`."""
    own = _are_own(question, first, corpus)
    return own.count(False) / len(own) if own and own[-1] else 0.0


def _are_own(question: Question, evidence: Evidence, corpus: Corpus) -> list[bool]:
    """For each noun before the first preposition, whether the phrases of the entity contain it."""
    names = corpus.names[evidence.operation.entity]
    return [noun is not None and (noun in names or not names.isdisjoint(groups_of([noun]))) for noun in question.nouns]


def _unknown_words(question: Question, corpus: Corpus) -> float:
    """The share of words that the index does not have; rare words count more."""
    rarity = corpus.phrases.rarity
    known = sum(
        weight * rarity.get(term, _UNKNOWN)
        for term, weight in question.terms.items()
        if term not in CONDITION_WORDS and term not in ACTIONS_OF_VERB
    )
    unknown = question.unknown * _UNKNOWN
    return unknown / (unknown + known) if unknown else 0.0
