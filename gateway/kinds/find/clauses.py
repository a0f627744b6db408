"""Splits a request into clauses, and finds those that ask for something; the others are circumstances."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from gateway.kinds.find.verbs import ASKING, COMMANDS, DETERMINERS
from gateway.kinds.find.words import EMPTY, words


class Role(Enum):
    """The role of a clause in a request."""

    #: it asks or commands: "show me its status"
    REQUEST = "request"
    #: it continues the clause before: "its tags and who is assigned"
    CONTINUATION = "continuation"
    #: it states a fact: "the office moved on Tuesday"
    STATEMENT = "statement"
    #: it says when or why: "because the case opens in May"
    CIRCUMSTANCE = "circumstance"


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause without the words that only introduce it, such as "could you please"."""

    text: str
    role: Role


_BOUNDARY = re.compile(
    r"\s*(?:[;!?]|\.(?=\s|$)|:\s|,\s|\s[-–]\s)\s*"
    r"|\s+(?=(?:because|so that|since|although|while|whereas|unless)\s)"
    # "before" begins a clause if a verb follows, else it is a preposition
    r"|(?<=\w)\s+(?=(?:before|after|until|as soon as)\s+(?:\w+\s+){1,3}?"
    r"(?:is|are|was|were|has|have|had|goes|go|can|will|anyone|anybody|we|he|she|they|i)\b)",
    re.I,
)
_CIRCUMSTANCE = re.compile(
    r"(?:and |but )?(?:because|since|so that|although|though|while|whereas|unless|until|before|after|as soon as"
    r"|ahead of|during|due to|despite|now that|given that|if"
    r"|for the (?:review|meeting|audit|report|call)|for (?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|as (?:she|he|they|we|i|it|the|our|my)\b|when (?!is|are|was|were|did|do|does|will|has|have|can))",
    re.I,
)
_FILLER = re.compile(
    r"(?:(?:and|so(?! that)|then|but|now|ok|okay|hi|hello|hey|dear|please|kindly|just|also|simply|quickly|therefore"
    r"|maybe|perhaps)\b[, ]*)+",
    re.I,
)
_INTRODUCTION = re.compile(
    r"(?:(?:i|we) (?:would|'d) (?:also )?like (?=an? |some |another |one more )"
    r"|(?:i|we) (?:want|need|could use|require) (?=an? |another |one more )"
    r"|(?:could|can|would|will) (?:you|we|i|someone|somebody) (?:please )?"
    r"|(?:i|we) (?:would like|want|need|have|wish)(?: you| us)? to |(?:i|we)'d like (?:you )?to |(?:i|we) must "
    r"|let us |let's |help (?:me|us) (?:to )?|how (?:do|can|could|should) (?:i|we|you) |how to |is it possible to "
    r"|be so kind (?:as to|and) |make sure (?:to |that )?|see to it that |remember to )",
    re.I,
)
#: followed by what a person wants: "Lena needs …", "she asks for …"
_WANTING = re.compile(
    r"\b(?:i|we|he|she|they|[A-Z]\w+|who|\w+s) (?:\w+ )?"
    r"(?:wants?|needs?|would like|asks? (?:for|to|whether|which|what|who|how)|asked (?:\w+ ){0,3}?for|wanted|needed"
    r"|requires?|wonders?|is asking|has to see|must (?:see|know|have))\b"
)
_INFINITIVE = re.compile(r"(?:you )?to ")


def clauses_of(text: str) -> list[Clause]:
    """The clauses of a text in their order; those without words are left out."""
    return list(_clauses(text))


def _clauses(text: str) -> Iterator[Clause]:
    before = Role.STATEMENT
    for part in _BOUNDARY.split(text):
        if not part:
            continue
        bare = _after(_FILLER, part.strip())
        wanting = _WANTING.search(bare)
        if wanting:
            bare = bare[wanting.end() :].strip() or bare
        bare = _after(_INFINITIVE, bare)
        content = _after(_INTRODUCTION, bare)
        listed = words(content)
        if listed:
            before = _role(bare, content, listed, bool(wanting), before)
            yield Clause(content, before)


def _role(bare: str, content: str, listed: list[str], is_wanted: bool, before: Role) -> Role:
    if _CIRCUMSTANCE.match(bare) and not is_wanted:
        return Role.CIRCUMSTANCE
    if is_wanted or content != bare or listed[0] in ASKING or is_imperative(listed):
        return Role.REQUEST
    return Role.CONTINUATION if before in (Role.REQUEST, Role.CONTINUATION) else Role.STATEMENT


def is_imperative(listed: Sequence[str]) -> bool:
    """Whether a clause begins like a command: with a known verb, or with a word before a determiner."""
    if listed[0] in COMMANDS:
        return True
    is_other_form = listed[0].endswith(("s", "ing"))
    return len(listed) > 2 and listed[1] in DETERMINERS and not (is_other_form or listed[0] in EMPTY)


def _after(introduction: re.Pattern[str], text: str) -> str:
    """The text without the introduction at its beginning."""
    match = introduction.match(text)
    return text[match.end() :] if match else text
