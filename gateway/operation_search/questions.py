"""What a question asks for: its words by weight, the verbs in it, and whether it is about one record or many."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from gateway.operation_search.words import ACTIONS_OF_VERB, ASKING, COMMANDS, EMPTY, NOUNS_TOO, affinity, stem, words

#: values that the task is about, rather than words of what to do: text in quotes, addresses, handles, emoji
_VALUES = re.compile(
    r"""'[^']{2,}'(?!\w)|"[^"]{2,}"|“[^“”]+”|‘[^‘’]+’|(?<![^\s@])[^\s@]+@[^\s@]+\.\w+|https?://\S+|(?<!\w)@[\w-]+|:\w+:"""
)
#: an id of an application: letters and digits mixed
_OPAQUE_ID = re.compile(r"(?=.*\d)(?=.*[a-z])[a-z0-9]{4,}")
_BY_ID = re.compile(r"\b(?:by|with|the) (?:its |the )?(?:id|number)\b", re.I)
#: what follows is about the thing asked for, or is the text that goes into it
_ASIDE = re.compile(r"(?<=\w)(?:\s+(?:with|including|saying|sorted|ordered|because|so that|that says)\b|:\s)", re.I)
_BEFORE_ASIDE = 2
#: what records are to be like, which is to search among all
_CONDITION = re.compile(
    r"\b(?:more|less|fewer|greater|larger|bigger|higher|lower|smaller|older|newer|longer) than\b"
    r"|(?<=\w) (?:that|whose|where) \w|\b(?:over|above|below|under|between) \$?\d|[<>]=? ?\d",
    re.I,
)
#: how much of a text is read: what matters stands at its beginning
_CHARACTERS, _WORDS = 1000, 60
#: what follows says where the thing is, or what it belongs to
_CONTEXT = frozenset("in from to into of on at below under across against for about by off".split())  # noqa: SIM905
#: those after which an id is that of something around the thing asked for
_AROUND = frozenset("in from to into on below under across".split())  # noqa: SIM905
#: plurals that speak of one thing
_OF_ONE = frozenset("details contents results totals properties attributes news".split())  # noqa: SIM905

_VALUE_WEIGHT = 0.25
_ASIDE_WEIGHT = 0.5
_CONTEXT_WEIGHT = 0.55
#: what each further word loses, and the least that one weighs for its place
_FADING, _LEAST = 0.04, 0.6
#: how much less each further verb says than the one before
_LATER_VERB = 0.5
_VERB_OF_A_QUESTION = 0.35
#: a verb in another form than that of a command: `files`, `posted`
_OTHER_FORM = 0.3
#: what an action is worth that nobody asked for, and that a command asks for something else than
_UNASKED, _REFUSED = 0.2, 0.1
_READS = frozenset(["list", "get", "api_search", "context_store_search", "download"])
#: what phrases of a write are worth to those who ask for knowledge
_COVERAGE_OF_WRITES = 0.5


class Number(Enum):
    """How many records a question is about."""

    #: one, which has an id
    ONE = "one"
    #: many
    MANY = "many"
    #: it does not tell
    OPEN = "open"


#: what actions are worth where no verb tells: in a question, and elsewhere
_ASKING: Mapping[str, float] = {"list": 1, "api_search": 0.75, "context_store_search": 0.7, "get": 0.6}
_TELLING: Mapping[str, float] = {"list": 0.6, "api_search": 0.5, "context_store_search": 0.45, "get": 0.4}
#: what a get and a list are worth by the number of records
_BY_NUMBER: Mapping[Number, Mapping[str, float]] = {
    Number.ONE: {"get": 1, "list": 0.5},
    Number.MANY: {"get": 0.5, "list": 1},
}


@dataclass(frozen=True, slots=True)
class Question:
    """A question taken apart."""

    #: stems and how much each says
    terms: Mapping[str, float]
    #: stems of verbs and how certainly each is what is to be done
    verbs: Mapping[str, float]
    #: whether one of them stands as a command does
    is_command: bool
    #: what each action is worth where no verb tells
    priors: Mapping[str, float]
    number: Number
    #: whether it asks for knowledge: a question, or a plural that is named
    is_about: bool


def question_of(text: str, spelling_of: Callable[[str], str | None], applications: Collection[str] = ()) -> Question:
    """The question in a text.

    `spelling_of` gives a word as it is spelled rightly, or None for one that says nothing; `applications` are the stems
    of names.
    """
    text = text[:_CHARACTERS]
    bare, values = _VALUES.sub(" ", text), " ".join(_VALUES.findall(text))
    main, aside = _parted(bare)
    listed = words(main)[:_WORDS]
    is_asking = bool(listed) and listed[0] in ASKING
    terms, spelled = _terms(listed, spelling_of)
    verbs, is_command = _verbs(spelled, is_asking, applications)
    for part, weight in ((aside, _ASIDE_WEIGHT), (values, _VALUE_WEIGHT)):
        for term in _terms(words(part)[:_WORDS], spelling_of)[0]:
            terms.setdefault(term, weight)
    number = Number.ONE if _BY_ID.search(bare) else _number(words(bare), spelled)
    priors = _priors(is_asking, number, has_condition=bool(values) or bool(_CONDITION.search(bare)))
    is_about = is_asking or (number is Number.MANY and not is_command)
    return Question(terms, verbs, is_command, priors, number, is_about)


def _parted(text: str) -> tuple[str, str]:
    """What is asked for, and what is said about it."""
    for match in _ASIDE.finditer(text):
        if len(words(text[: match.start()])) >= _BEFORE_ASIDE:
            return text[: match.start()], text[match.start() :]
    return text, ""


def _terms(listed: Sequence[str], spelling_of: Callable[[str], str | None]) -> tuple[dict[str, float], list[str]]:
    """The stems with their weights, and the words as they are spelled rightly."""
    terms: dict[str, float] = {}
    spelled: list[str] = []
    within = 1.0
    for written in listed:
        if written in _CONTEXT and terms:
            within = _CONTEXT_WEIGHT
        word = None if written in EMPTY else spelling_of(written)
        if word is None:
            continue
        spelled.append(word)
        weight = within * max(1 - _FADING * len(terms), _LEAST)
        terms[stem(word)] = max(terms.get(stem(word), 0.0), weight)
    return terms, spelled


def _verbs(spelled: Sequence[str], is_asking: bool, applications: Collection[str]) -> tuple[dict[str, float], bool]:
    """The verbs with how certainly each is meant, and whether one of them is a command."""
    verbs: dict[str, float] = {}
    is_command = False
    next_verb = _VERB_OF_A_QUESTION if is_asking else 1.0
    others = [word for word in spelled if stem(word) not in applications]
    for place, word in enumerate(others):
        term = stem(word)
        if term not in ACTIONS_OF_VERB or term in verbs or (place > 0 and word in NOUNS_TOO):
            continue
        if word in COMMANDS:
            verbs[term] = next_verb
            is_command = is_command or not is_asking
            next_verb *= _LATER_VERB
        else:
            verbs[term] = next_verb * _OTHER_FORM
    return verbs, is_command


def _number(listed: Sequence[str], spelled: Sequence[str]) -> Number:
    """One where the thing asked for has an id; many where it is spoken of in the plural."""
    at = _place_of_id(listed)
    before = listed if at is None else listed[:at]
    if any(_is_plural(word) for word in before if word in spelled):
        return Number.MANY
    return Number.OPEN if at is None or _AROUND.intersection(before) else Number.ONE


def _place_of_id(listed: Sequence[str]) -> int | None:
    """Where an id stands: an opaque one, or a number after the word for what it numbers."""
    for at, word in enumerate(listed):
        is_numbered = word.isdigit() and at > 0 and listed[at - 1] not in EMPTY and not listed[at - 1].isdigit()
        if is_numbered or _OPAQUE_ID.fullmatch(word):
            return at
    return None


def _is_plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "us")) and word not in _OF_ONE and word not in COMMANDS


def _priors(is_asking: bool, number: Number, has_condition: bool) -> Mapping[str, float]:
    """What each action is worth by the look of the question, verbs aside."""
    worth = dict(_ASKING if is_asking else _TELLING)
    most = worth["list"]
    for action, share in _BY_NUMBER.get(number, {}).items():
        worth[action] = most * share
    if has_condition:
        worth["api_search"] = max(worth["api_search"], worth["list"] * 1.05)
    return worth


def fit(question: Question, action: str, own_verbs: frozenset[str], coverage: float) -> float:
    """How well an action does what the question wants, from 0 to 1; its own verbs fit it best.

    `coverage` is how far the question has a phrase of the action, which makes up for verbs as long as none commands.
    """
    if question.is_about and action not in _READS:
        coverage *= _COVERAGE_OF_WRITES
    best = _REFUSED if question.is_command else max(coverage, question.priors.get(action, _UNASKED))
    for verb, weight in question.verbs.items():
        best = max(best, weight * _fit_of_verb(verb, action, own_verbs, question.number))
    return best


def _fit_of_verb(verb: str, action: str, own_verbs: frozenset[str], number: Number) -> float:
    meanings = ACTIONS_OF_VERB[verb]
    by_number = _BY_NUMBER.get(number, {})
    if action in by_number:
        # To show or read what has an id is to get it, whatever the verb.
        return by_number[action] * max(affinity(meanings, each) for each in by_number)
    return 1.0 if verb in own_verbs else affinity(meanings, action)
