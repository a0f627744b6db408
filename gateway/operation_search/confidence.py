"""Whether an operation does the task, or the search found only operations that come close.

A linear rule. A low strength alone is not a reason to refuse: the wording of a task may be unusual. A task is refused
for what speaks against it: an action that the entity does not have, a verb that few operations do and by which none of
the leading ones is known, another application's name, a thing that can only be written, a noun that qualifies the
entity as another thing. The weights were fitted by logistic regression on questions with and without an answer: those
of the tests, phrases of specs left out of the index, operations left out of the catalog, all of these in long requests
too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from gateway.operation_search.corpus import Corpus, Known, noun_of
from gateway.operation_search.fitness import WRITES
from gateway.operation_search.phrases import groups_of
from gateway.operation_search.questions import Number, Question
from gateway.operation_search.verbs import ACTIONS_OF_VERB, OTHER, SPECIAL
from gateway.operation_search.words import CONDITION_WORDS, stems

#: the least fit of an action that does the task, and the least weight of a verb that commands
_DOES, _COMMANDS = 0.5, 0.5
#: operations that lead
_LEADING = 5
#: the rarity assumed for a word that the index does not have
_UNKNOWN = 7.0
#: the weights of what speaks against an answer
_MISSING, _MISSING_NEW, _ELSEWHERE, _FOREIGN = 7.8, 2.9, 2.3, 5.8
_SPECIAL, _UNHEARD, _OTHER_THING, _UNKNOWN_WORDS, _UNREAD = 3.4, 1.4, 2.2, 1.0, 2.0
#: the weights of what speaks for one
_NAMED, _FIT, _STRENGTH = 1.35, 0.9, 0.45
#: the excess of reasons against over those for one from which none is given
_DOUBT = 0.8
#: the strength of a question with so much of it beside the point is compared as if there were none of that
_POWER = 1.1


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
    #: the factor of its strength for kinds without a connector
    preference: float


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and what of it is known beside its words."""

    question: Question
    #: the kinds of the applications that it names
    named: frozenset[str]
    #: an application that it names and that has no kind
    other_application: str | None
    #: how much of the question, as a vector, is in the clauses that ask
    share: float


def is_found(asked: Asked, found: Sequence[Evidence], corpus: Corpus) -> bool:
    """Whether the first operation of `found`, sorted by score, does the task."""
    question, first = asked.question, found[0]
    missing = _missing_action(question, found, corpus)
    strength = first.strength / first.preference / asked.share**_POWER
    against = (
        (_MISSING if is_commanded(question) else _MISSING_NEW) * missing
        + _ELSEWHERE * _elsewhere(question, found, asked.named)
        + _FOREIGN * (asked.other_application is not None and not asked.named)
        + _unheard(question, found, corpus)
        + _OTHER_THING * _qualified_otherwise(question, first, corpus)
        + _UNKNOWN_WORDS * _unknown_words(question, corpus)
        + _UNREAD * _missing_read(question, found)
    )
    in_favor = _NAMED * is_named(question, subject(found)) + _FIT * first.fit + _STRENGTH * log(strength + 0.05)
    return against - in_favor < _DOUBT


def subject(found: Sequence[Evidence]) -> Evidence:
    """The strongest operation, whatever its action; the question is about its entity."""
    return max(found, key=lambda each: each.strength)


def is_commanded(question: Question) -> bool:
    """Whether a verb that is known to mean a change commands."""
    writes = (verb for verb in question.verbs.values() if verb.meanings <= WRITES and verb.weight >= _COMMANDS)
    return question.is_command and any(writes)


def wants_write(question: Question) -> bool:
    """Whether the question asks for a change: by a command that means one, or by naming a new thing."""
    others = any(OTHER in verb.meanings and verb.weight >= _COMMANDS for verb in question.verbs.values())
    return is_commanded(question) or (question.is_command and others) or (question.is_new and not question.is_asking)


def is_named(question: Question, about: Evidence) -> bool:
    """Whether the question has the entity's name or a synonym."""
    entity = about.known.entry.entity
    names = (about.known.entry.entity_id.replace("_", " "), *entity.synonyms)
    return any(terms and set(terms) <= question.terms.keys() for terms in map(stems, names))


def _missing_action(question: Question, found: Sequence[Evidence], corpus: Corpus) -> float:
    """How much weaker the operations with a fitting action are than the strongest one, if a change is wanted.

    Nothing is missing if the first operation has a fitting action and the thing that is asked for.
    """
    if not (is_commanded(question) or (question.is_new and not question.is_asking)):
        return 0.0
    about, first = subject(found), found[0]
    if first.fit >= _DOES and _are_own(question, first, corpus)[-1:] == [True] and is_named(question, first):
        return 0.0
    doing = [each for each in found if each.fit >= _DOES]
    if any(noun_of(each.known.owner) == noun_of(about.known.owner) for each in doing):
        return 0.0
    return 1 - max((each.strength for each in doing), default=0.0) / about.strength


def _missing_read(question: Question, found: Sequence[Evidence]) -> float:
    """How much weaker the operations that read are than the strongest one, if the question asks to read something.

    Nothing is missing if the thing that the question is about can be read.
    """
    writes = wants_write(question) or question.is_demand
    changes = any(verb.meanings <= WRITES and verb.weight >= _COMMANDS for verb in question.verbs.values())
    asks = question.is_asking or question.is_command or question.number is Number.MANY
    if writes or changes or not asks:
        return 0.0
    about = subject(found)
    reading = [each for each in found if each.known.action not in WRITES]
    if any(noun_of(each.known.owner) == noun_of(about.known.owner) for each in reading):
        return 0.0
    return 1 - max((each.strength for each in reading), default=0.0) / about.strength


def _elsewhere(question: Question, found: Sequence[Evidence], named: frozenset[str]) -> float:
    """How much weaker the operations of the named kinds are than those of others."""
    if not named or not question.head:
        return 0.0
    there = max((each.plain for each in found if each.known.owner[0] in named), default=0.0)
    return 1 - there / max(each.plain for each in found)


def _unheard(question: Question, found: Sequence[Evidence], corpus: Corpus) -> float:
    """The weight of commands to change something by whose verbs no leading operation is known that changes something.

    Verbs that few APIs have an operation for count more.
    """
    commands = {stem for stem, verb in question.verbs.items() if verb.weight >= _COMMANDS}
    changes = {stem for stem in commands if question.verbs[stem].meanings <= WRITES | {OTHER}}
    heard = {verb for each in found[:_LEADING] if each.known.action in WRITES for verb in each.known.verbs}
    heard |= corpus.verbs_of[noun_of(found[0].known.owner)]
    special = commands & SPECIAL
    return (_SPECIAL if special and special.isdisjoint(heard) else 0.0) + (
        _UNHEARD if question.is_command and changes and changes.isdisjoint(heard) else 0.0
    )


def _qualified_otherwise(question: Question, first: Evidence, corpus: Corpus) -> float:
    """The share of nouns that the entity does not have before the one that it has: `exchange rate`, `custom emoji`."""
    own = _are_own(question, first, corpus)
    return own.count(False) / len(own) if own and own[-1] else 0.0


def _are_own(question: Question, evidence: Evidence, corpus: Corpus) -> list[bool]:
    """Of each noun before the first preposition, whether the phrases of the entity have it."""
    names = corpus.names[evidence.known.owner[0], evidence.known.owner[1]]
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
