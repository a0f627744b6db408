"""What a question asks for: its words by weight, the verbs in it, and whether it names one record."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.operations.words import ACTIONS_OF_VERB, ASKING, EMPTY, affinity, words

#: values that the task is about, rather than words of what to do: text in quotes, mail addresses, tags and handles
_VALUES = re.compile(
    r"""'[^']{2,}'(?!\w)|"[^"]{2,}"|“[^”]+”|‘[^’]+’|\S+@\S+\.\w+|https?://\S+|[#@]\w[\w-]*|:\w+:|\b\w+\.(?:pdf|png|csv|docx?)\b"""
)
#: an id of an application: digits, or capitals and digits mixed
_ID = re.compile(r"\b(?:\d{2,}|(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9]{4,}|[A-Z]+-\d+|[0-9a-f]{8}-[0-9a-f-]{27})\b")
#: what follows is about the thing asked for, or is the text that goes into it
_ASIDE = re.compile(r"(?<=\w)(?:\s+(?:with|including|saying|sorted|ordered|because|so that|that says)\b|:\s)", re.I)
_BEFORE_ASIDE = 2

_VALUE_WEIGHT = 0.25
_ASIDE_WEIGHT = 0.5
#: what each further word loses, and the least that one weighs for its place
_FADING, _LEAST = 0.04, 0.6
#: how much less each further verb says than the one before
_LATER_VERB = 0.5
_VERB_OF_A_QUESTION = 0.35


@dataclass(frozen=True, slots=True)
class Question:
    """A question taken apart."""

    #: stems and how much each says
    terms: Mapping[str, float]
    #: stems of verbs and how retry_until_available each is what is to be done
    verbs: Mapping[str, float]
    #: whether it asks for knowledge rather than a deed
    is_asking: bool
    #: whether it names a record by an id
    has_id: bool


def question_of(text: str, known: Callable[[str], str | None]) -> Question:
    """The question in a text; `known` gives the known stem that a word means, or None."""
    bare, values = _VALUES.sub(" ", text), " ".join(_VALUES.findall(text))
    main, aside = _parted(bare)
    listed = words(main)
    is_asking = bool(listed) and listed[0] in ASKING
    terms: dict[str, float] = {}
    verbs: dict[str, float] = {}
    next_verb = _VERB_OF_A_QUESTION if is_asking else 1.0
    place = 0
    for word in listed:
        if word in EMPTY:
            continue
        term = known(word)
        if term is None:
            continue
        terms[term] = max(terms.get(term, 0.0), max(1 - _FADING * place, _LEAST))
        place += 1
        if term in ACTIONS_OF_VERB and term not in verbs:
            verbs[term] = next_verb
            next_verb *= _LATER_VERB
    for later, weight in ((aside, _ASIDE_WEIGHT), (values, _VALUE_WEIGHT)):
        for word in words(later):
            term = known(word) if word not in EMPTY else None
            if term is not None:
                terms.setdefault(term, weight)
    return Question(terms, verbs, is_asking, bool(_ID.search(main)))


def _parted(text: str) -> tuple[str, str]:
    """What is asked for, and what is said about it."""
    for found in _ASIDE.finditer(text):
        if len(words(text[: found.start()])) >= _BEFORE_ASIDE:
            return text[: found.start()], text[found.start() :]
    return text, ""


def fit(question: Question, action: str, own_verbs: frozenset[str]) -> float:
    """How well an action does what the question wants, from 0 to 1; its own verbs fit it best."""
    wanted = {**_DEFAULT_OF[question.is_asking, question.has_id]}
    best = wanted.get(action, 0.1)
    for verb, weight in question.verbs.items():
        fitting = 1.0 if verb in own_verbs else affinity(ACTIONS_OF_VERB[verb], action)
        best = max(best, weight * fitting)
    return best


#: what is wanted where no verb tells, by whether knowledge is asked for and whether one record is named
_DEFAULT_OF: Mapping[tuple[bool, bool], Mapping[str, float]] = {
    (True, False): {"list": 1, "api_search": 0.75, "context_store_search": 0.7, "get": 0.6},
    (True, True): {"get": 1, "list": 0.8, "api_search": 0.5, "context_store_search": 0.4},
    (False, False): {"list": 0.6, "api_search": 0.5, "context_store_search": 0.45, "get": 0.4},
    (False, True): {"get": 0.6, "list": 0.4, "api_search": 0.3, "context_store_search": 0.3},
}
