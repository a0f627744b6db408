"""What a question asks for: its words by weight, the verbs in it, and whether it names one record."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gateway.operations.words import ACTIONS_OF_VERB, ASKING, COMMANDS, EMPTY, NOUNS_TOO, affinity, stem, words

#: values that the task is about, rather than words of what to do: text in quotes, addresses, handles, names of files
_VALUES = re.compile(r"""'[^']{2,}'(?!\w)|"[^"]{2,}"|“[^”]+”|‘[^’]+’|\S+@\S+\.\w+|https?://\S+|(?<!\w)@[\w-]+|:\w+:""")
#: an id of an application: letters and digits mixed, or a number
_OPAQUE_ID = re.compile(r"(?=.*\d)(?=.*[a-z])[a-z0-9]{4,}")
#: what follows is about the thing asked for, or is the text that goes into it
_ASIDE = re.compile(r"(?<=\w)(?:\s+(?:with|including|saying|sorted|ordered|because|so that|that says)\b|:\s)", re.I)
_BEFORE_ASIDE = 2
#: what follows says where the thing is, or what it belongs to
_CONTEXT = frozenset("in from to into of on at below under across against for about by off".split())  # noqa: SIM905
#: those after which an id is that of something around the thing asked for
_AROUND = frozenset("in from to into on at below under across against".split())  # noqa: SIM905

_VALUE_WEIGHT = 0.25
_ASIDE_WEIGHT = 0.5
_CONTEXT_WEIGHT = 0.6
#: what each further word loses, and the least that one weighs for its place
_FADING, _LEAST = 0.04, 0.6
#: how much less each further verb says than the one before
_LATER_VERB = 0.5
_VERB_OF_A_QUESTION = 0.35
#: a verb in another form than that of a command: `files`, `posted`
_OTHER_FORM = 0.3
#: what actions are worth where no verb tells, in a question and elsewhere; and those that nobody asked for
_ASKING: Mapping[str, float] = {"list": 1, "api_search": 0.75, "context_store_search": 0.7, "get": 0.6}
_TELLING: Mapping[str, float] = {"list": 0.6, "api_search": 0.5, "context_store_search": 0.45, "get": 0.4}
_UNASKED = 0.2
_READS = ("list", "get")
#: how much a list is worth where one record is named
_LIST_OF_ONE = 0.5
#: how much less a get is worth where many are spoken of
_GET_OF_MANY = 0.75


@dataclass(frozen=True, slots=True)
class Question:
    """A question taken apart."""

    #: stems and how much each says
    terms: Mapping[str, float]
    #: stems of verbs and how retry_until_available each is what is to be done
    verbs: Mapping[str, float]
    #: what each action is worth where no verb tells
    wanted: Mapping[str, float]
    #: whether it names one record by its id
    has_id: bool


def question_of(text: str, known: Callable[[str], str | None]) -> Question:
    """The question in a text; `known` gives a word as it is spelt rightly, or None for one that says nothing."""
    bare, values = _VALUES.sub(" ", text), " ".join(_VALUES.findall(text))
    main, aside = _parted(bare)
    listed = words(main)
    is_asking = bool(listed) and listed[0] in ASKING
    terms: dict[str, float] = {}
    verbs: dict[str, float] = {}
    next_verb = _VERB_OF_A_QUESTION if is_asking else 1.0
    within = 1.0
    for written in listed:
        if written in _CONTEXT and terms:
            within = _CONTEXT_WEIGHT
        word = None if written in EMPTY else known(written)
        if word is None:
            continue
        term = stem(word)
        weight = within * max(1 - _FADING * len(terms), _LEAST)
        terms[term] = max(terms.get(term, 0.0), weight)
        if term in ACTIONS_OF_VERB and term not in verbs and (len(terms) == 1 or word not in NOUNS_TOO):
            verbs[term] = next_verb * (1.0 if word in COMMANDS else _OTHER_FORM)
            next_verb *= _LATER_VERB if word in COMMANDS else 1
    for later, weight in ((aside, _ASIDE_WEIGHT), (values, _VALUE_WEIGHT)):
        for written in words(later):
            word = None if written in EMPTY else known(written)
            if word is not None:
                terms.setdefault(stem(word), weight)
    first = next((word for word in listed if word not in EMPTY and word not in COMMANDS and known(word)), "")
    has_id = _names_a_record(words(bare))
    wanted = _wanted(first, is_asking, has_id, has_value=bool(values))
    return Question(terms, verbs, wanted, has_id)


def _wanted(noun: str, is_asking: bool, has_id: bool, has_value: bool) -> Mapping[str, float]:
    """What each action is worth by the look of the question, verbs aside."""
    worth = dict(_ASKING if is_asking else _TELLING)
    if has_id:
        worth["get"], worth["list"] = worth["list"], worth["get"]
    elif noun.endswith("s") and not noun.endswith("ss"):
        worth["get"] *= _GET_OF_MANY
    if has_value:
        worth["api_search"] = max(worth["api_search"], worth["list"] * 1.05)
    return worth


def _names_a_record(listed: Sequence[str]) -> bool:
    """Whether the thing asked for has an id: an opaque one, or a number after the word for what it numbers."""
    for at, word in enumerate(listed):
        is_numbered = word.isdigit() and at > 0 and listed[at - 1] not in EMPTY and not listed[at - 1].isdigit()
        if is_numbered or _OPAQUE_ID.fullmatch(word):
            return not _AROUND.intersection(listed[:at])
    return False


def _parted(text: str) -> tuple[str, str]:
    """What is asked for, and what is said about it."""
    for found in _ASIDE.finditer(text):
        if len(words(text[: found.start()])) >= _BEFORE_ASIDE:
            return text[: found.start()], text[found.start() :]
    return text, ""


def fit(question: Question, action: str, own_verbs: frozenset[str]) -> float:
    """How well an action does what the question wants, from 0 to 1; its own verbs fit it best."""
    best = question.wanted.get(action, _UNASKED)
    for verb, weight in question.verbs.items():
        best = max(best, weight * _fit_of_verb(verb, action, own_verbs, question.has_id))
    return best


def _fit_of_verb(verb: str, action: str, own_verbs: frozenset[str], has_id: bool) -> float:
    meanings = ACTIONS_OF_VERB[verb]
    if has_id and action in _READS:
        # To show or read what has an id is to get it.
        fitting = max(affinity(meanings, each) for each in _READS)
        return fitting if action == "get" else fitting * _LIST_OF_ONE
    return 1.0 if verb in own_verbs else affinity(meanings, action)
