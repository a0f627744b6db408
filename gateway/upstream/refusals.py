"""Reads an application's error response: the details that help to correct the call, and when to retry. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any, Final, NamedTuple

from gateway.foundation import payloads
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.texts import visible
from gateway.kinds.failures import Failure
from gateway.kinds.members import JsonPath
from gateway.upstream.allowances import left_until

#: characters of an application's message that an error repeats
_CHARACTERS: Final = 2_000
#: places of messages that most applications use
_USUAL_PLACES: Final = (
    "message", "error.message", "error_description", "error_message", "errorMessage", "errors.0.message",
    "errors.0.detail", "detail", "detail.0.msg", "errors.0.msg", "errors.0", "error.description", "error.detail",
    "error", "description", "msg", "reason", "title", "messages.0", "0.message", "fault.faultstring",
)  # fmt: skip
#: bytes of a body that may be plain text for people
_MAX_TEXT: Final = 2_000
#: bytes of its first line
_MAX_LINE: Final = 400
#: levels of an error's details that are read
_DEPTH: Final = 20
#: seconds until a retry after a daily quota is used up: applications do not say when the day ends
_DAY: Final = 3600
#: seconds of the longest wait that is believed; then one request finds out how things stand
LONGEST_WAIT: Final = 3600


def words_of(text: str) -> str:
    """A text of an application as errors repeat it: without characters that a reader does not see, and cut."""
    return visible(payloads.storable(text[:_CHARACTERS]))


def places_of(spec: Failure) -> tuple[str, ...]:
    """The names of the members of a response that say whether it is an error, and what failed."""
    stated = (*spec.code, *spec.message, *spec.request_id, *spec.details, *spec.field, *spec.limit_name)
    dotted = (*spec.when_equal, *_USUAL_PLACES)
    names = (*(place[0] for place in (*stated, *spec.when_present) if place), *(each.split(".")[0] for each in dotted))
    return tuple(dict.fromkeys((*names, *((spec.ok,) if spec.ok else ()))))


def with_details(spec: Failure, document: Any, code: str | None, message: str | None) -> str | None:
    """The application's message and what its details add, each text once."""
    texts = [message] if message else []
    for path in spec.details:
        for text in _texts_at(document, path):
            if text != code and not any(text in earlier for earlier in texts):
                texts.append(text)
    return "; ".join(texts)[:_CHARACTERS] or None


def usual_words(spec: Failure, document: Any, code: str | None) -> str | None:
    """The message in the usual places, for an error response without one if the spec expects it."""
    found = (_text_at(document, tuple(place.split("."))) for place in _USUAL_PLACES)
    return next((text[:_CHARACTERS] for text in found if text is not None and text != code), None)


def _text_at(document: Any, place: JsonPath) -> str | None:
    texts = (text for text in _texts_at(document, place) if not text.isdigit())
    value = next(texts, None)
    return value if value is None or next(texts, None) is None else None


def first_line(body: bytes) -> str | None:
    """The first line of an error response that is short plain text; None for markup and other content."""
    line = body[:_MAX_LINE].partition(b"\n")[0].decode("utf-8", "replace").strip()
    is_plain = line.isprintable() and line[:1] not in "<{[" and len(body) <= _MAX_TEXT and "\ufffd" not in line
    return line if line and is_plain else None


def field(spec: Failure, document: Any) -> str | None:
    """The members of the request that the application complains about, with commas between them."""
    names_by_path = (list(dict.fromkeys(_texts_at(document, path))) for path in spec.field)
    return ", ".join(next((names for names in names_by_path if names), [])) or None


class StatedWait(NamedTuple):
    """When the spec allows another try."""

    #: None if the spec does not say
    seconds: int | None = None
    #: whether the allowance of a day is spent
    is_day: bool = False
    #: whether the application named the limit that was hit
    is_limit: bool = False


def wait_of(spec: Failure, document: Any, code: str | None, status: int) -> StatedWait:
    """The wait of the limit that the application names, which takes precedence over that of the code and the status."""
    limits = [text for path in spec.limit_name for text in _texts_at(document, path)]
    for name in (*limits, code or "", str(status)):
        for pattern, wait in spec.retry_after.items():
            if _matches(name, pattern):
                return StatedWait(_DAY if wait == "day" else wait, wait == "day", name in limits)
    return StatedWait()


def says_no_records(spec: Failure, message: str | None) -> bool:
    """Whether the message of a 404 means that a list has no records."""
    return message is not None and any(_matches(message, pattern) for pattern in spec.no_records)


def _matches(text: str, pattern: str) -> bool:
    return text == pattern or (pattern.endswith("*") and text.startswith(pattern[:-1]))


def reset_in(headers: Mapping[str, str], names: Sequence[str]) -> int | None:
    """Whole seconds until the allowance is full again, as one of these headers says: seconds, or a Unix time."""
    for name in names:
        text = headers.get(name, "").strip()
        if text.isascii() and text.isdigit() and len(text) < 15:
            return max(1, ceil(left_until(int(text), CLOCK.unix_time())))
    return None


def has_text(document: Any, path: JsonPath) -> bool:
    """Whether there is any text below a place."""
    return any(True for _ in _texts_at(document, path))


def _texts_at(document: Any, path: JsonPath) -> Iterator[str]:
    """Every text below a place; `*` in it matches each item of a list and each member of an object."""
    if not path:
        yield from _texts(document)
        return
    member, rest = path[0], path[1:]
    if member == "*":
        for inner in _inner(document):
            yield from _texts_at(inner, rest)
    elif isinstance(document, Mapping):
        yield from _texts_at(document.get(member), rest)
    elif isinstance(document, list) and member.isdigit() and int(member) < len(document):
        yield from _texts_at(document[int(member)], rest)


def _texts(value: Any, depth: int = _DEPTH) -> Iterator[str]:
    if isinstance(value, str | int) and not isinstance(value, bool):
        text = words_of(str(value).strip())
        if text:
            yield text
        return
    for inner in _inner(value) if depth else ():
        yield from _texts(inner, depth - 1)


def _inner(value: Any) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else ()
