"""The fit of an action, from 0 to 1: how well it matches the verbs of a question or, without verbs, its form."""

from collections.abc import Mapping

from gateway.kinds.find.questions import Number, Question, Verb
from gateway.kinds.find.verbs import OTHER, SPECIAL, affinity

WRITES = frozenset(["create", "update", "delete"])

#: the fit of actions if there is no verb: in a question, in another text, and for a new thing
_ASKING: Mapping[str, float] = {"list": 1, "api_search": 0.75, "context_store_search": 0.7, "get": 0.6}
_STATING: Mapping[str, float] = {"list": 0.6, "api_search": 0.5, "context_store_search": 0.45, "get": 0.4}
_NEW: Mapping[str, float] = {"create": 0.7, "get": 0.4, "api_search": 0.4, "list": 0.3, "context_store_search": 0.25}
#: the fit of reads by the number of records
_BY_NUMBER: Mapping[Number, Mapping[str, float]] = {
    Number.ONE: {"get": 1, "list": 0.5, "api_search": 0.4, "context_store_search": 0.35},
    Number.MANY: {"get": 0.5, "list": 1},
}
#: the fit of other actions: in a question, in another text, for a new thing, and if there is a command
_UNASKED_IN_QUESTION, _UNASKED, _UNASKED_FOR_NEW, _UNASKED_BY_COMMAND = 0.1, 0.2, 0.3, 0.1
#: the fit of a write for a demand: "newcomers should read …"
_DEMANDED = 0.5
#: the factor for a write, if the question is about many records
_OF_MANY = 0.5
#: the fit of an action if there is no verb, multiplied by the cosine of its closest phrase
_PHRASE = 0.3
#: the factor for the same of a write, if the question only asks for knowledge
_PHRASE_OF_WRITE = 0.5
#: the factor for an action whose phrases lack a verb that few APIs have an operation for: "pin the message"
_UNKNOWN_VERB = 0.6
#: minimum cosine of a phrase that has the verb in the same sense
_SAME_SENSE = 0.55


def fitness(question: Question, action: str, own_verbs: frozenset[str], closest: float) -> float:
    """The fit of an action; `own_verbs` are the first words of its phrases, `closest` is the cosine of the nearest."""
    by_verbs = max(
        (
            _by_verb(question, stem, verb=verb, action=action, own_verbs=own_verbs, closest=closest)
            for stem, verb in question.verbs.items()
        ),
        default=0.0,
    )
    if question.is_command:
        return max(by_verbs, _UNASKED_BY_COMMAND)
    is_knowledge = question.is_asking or question.number is Number.MANY
    by_phrase = closest * _PHRASE * (_PHRASE_OF_WRITE if is_knowledge and action in WRITES else 1)
    return max(by_verbs, by_phrase, _by_form(question, action))


def _by_verb(
    question: Question, stem: str, verb: Verb, action: str, own_verbs: frozenset[str], closest: float
) -> float:
    by_number = _BY_NUMBER.get(question.number, {})
    if action in by_number:
        # A question about one record by its id asks for a get, whatever the verb.
        return verb.weight * by_number[action] * max(affinity(verb.meanings, each) for each in ("get", "list"))
    fit = affinity(verb.meanings, action)
    is_same_sort = OTHER in verb.meanings or (action in WRITES) == bool(verb.meanings & WRITES)
    if stem in SPECIAL and stem not in own_verbs:
        fit *= _UNKNOWN_VERB
    if stem in own_verbs and (fit > 0 or is_same_sort or closest >= _SAME_SENSE):
        fit = 1.0
    return verb.weight * fit


def _by_form(question: Question, action: str) -> float:
    """The fit by the form of the question: an id, a plural, an article."""
    if question.is_new and not question.is_asking:
        return _NEW.get(action, _UNASKED_FOR_NEW)
    worth = _ASKING if question.is_asking else _STATING
    unasked = _UNASKED_IN_QUESTION if question.is_asking else _UNASKED
    by_number = _BY_NUMBER.get(question.number, {})
    value = worth["list"] * by_number[action] if action in by_number else worth.get(action, unasked)
    if action in WRITES:
        value *= _OF_MANY if question.number is Number.MANY else 1
        return max(value, _DEMANDED) if question.is_demand else value
    return value
