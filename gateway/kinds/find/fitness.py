"""The fit of an action, from 0 to 1: how well it matches the verbs of a question or, without verbs, its form."""

from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.find.corpus import IndexedOperation
from gateway.kinds.find.questions import Number, Question, Verb
from gateway.kinds.find.verbs import OTHER, WRITES

_OF_MANY = frozenset(["list", "api_search", SEARCH_ACTION])
_READS = _OF_MANY | {"get", "download"}

#: the fit of another action that returns many records too; of another read or another write
_OF_MANY_TOO, _SAME_SORT = 0.7, 0.5
#: the certainty that a phrase without a verb asks to read, and that one of a new thing asks to create it
_STATED, _NEW = 0.6, 0.7
#: the fit of an action that nothing asks for
_UNASKED = 0.1


class Fitness:
    """The fits of actions for one question."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._fits: dict[tuple[str, frozenset[str]], float] = {}

    def of(self, operation: IndexedOperation) -> float:
        """The fit of an operation's action; verbs that begin its phrases fit it, whatever they usually mean."""
        key = operation.action, operation.verbs.intersection(self._question.verbs)
        if key not in self._fits:
            self._fits[key] = _fitness(self._question, *key)
        return self._fits[key]


def _fitness(question: Question, action: str, own_verbs: frozenset[str]) -> float:
    by_verbs = (_by_verb(question, stem, verb, action, own_verbs) for stem, verb in question.verbs.items())
    by_form = _UNASKED if question.is_command else _by_form(question, action)
    return max(by_form, max(by_verbs, default=0.0))


def _by_verb(question: Question, stem: str, verb: Verb, action: str, own_verbs: frozenset[str]) -> float:
    fit = max(_fit(_counted(question, meaning), action) for meaning in verb.meanings)
    return verb.weight * (1.0 if stem in own_verbs and fit and action not in _READS else fit)


def _counted(question: Question, asked: str) -> str:
    """What is asked for, given the number of records: one with an id is got, whatever the verb, and many are listed."""
    if question.number is Number.ONE and asked in _OF_MANY:
        return "get"
    return "list" if question.number is Number.MANY and asked == "get" else asked


def _fit(asked: str, action: str) -> float:
    if asked == action:
        return 1.0
    if asked in _OF_MANY and action in _OF_MANY:
        return _OF_MANY_TOO
    is_same_sort = action in WRITES if asked in WRITES or asked == OTHER else action in _READS
    return _SAME_SORT if is_same_sort else 0.0


def _by_form(question: Question, action: str) -> float:
    """The fit by the form of the question: an id, a plural, an article."""
    if action in _READS:
        certainty = 1.0 if question.is_asking else 1 - _NEW if question.is_new else _STATED
        return certainty * _fit("get" if question.number is Number.ONE else "list", action)
    if question.is_new and not question.is_asking:
        return _NEW * _fit("create", action)
    return _UNASKED
