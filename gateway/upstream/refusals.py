"""Reads an application's error response: the details that help to correct the call, and when to retry. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gateway import payloads
from gateway.aio.clock import CLOCK
from gateway.kinds.failures import Failure
from gateway.kinds.members import JsonPath

#: characters of an application's message that an error repeats
_CHARACTERS: Final = 2_000
#: levels of an error's details that are read
_DEPTH: Final = 20
#: seconds until a retry after a daily quota is used up: applications do not say when the day ends
_DAY: Final = 3600
#: a larger number in a header is a Unix time, not a number of seconds
_A_MOMENT: Final = 1_000_000_000
#: a larger Unix time is in milliseconds
_A_MOMENT_IN_MS: Final = 100_000_000_000


def with_details(spec: Failure, document: Any, code: str | None, message: str | None) -> str | None:
    """The application's message and what its details add, each text once."""
    texts = [message] if message else []
    for path in spec.details:
        for text in _texts_at(document, path):
            if text != code and not any(text in earlier for earlier in texts):
                texts.append(text)
    return "; ".join(texts)[:_CHARACTERS] or None


def field(spec: Failure, document: Any) -> str | None:
    """The members of the request that the application complains about, with commas between them."""
    names_by_path = (list(dict.fromkeys(_texts_at(document, path))) for path in spec.field)
    return ", ".join(next((names for names in names_by_path if names), [])) or None


def wait_of(spec: Failure, document: Any, code: str | None, status: int) -> tuple[int | None, bool]:
    """Seconds after which the spec allows another try, and whether a day's allowance is spent.

    The name of the limit takes precedence over the code, and the code over the status.
    """
    limits = [text for path in spec.limit_name for text in _texts_at(document, path)]
    for name in (*limits, code or "", str(status)):
        for pattern, wait in spec.retry_after.items():
            if name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1])):
                return (_DAY, True) if wait == "day" else (int(wait), False)
    return None, False


def reset_in(headers: Mapping[str, str], names: Sequence[str]) -> int | None:
    """Whole seconds until the allowance is full again, as one of these headers says: seconds, or a Unix time."""
    for name in names:
        text = headers.get(name, "").strip()
        if text.isascii() and text.isdigit() and len(text) < 15:
            number = seconds_of(int(text))
            return max(1, number - int(CLOCK.unix_time()) if number > _A_MOMENT else number)
    return None


def has_text(document: Any, path: JsonPath) -> bool:
    """Whether there is any text below a place."""
    return any(True for _ in _texts_at(document, path))


def seconds_of(number: int) -> int:
    """A number of a rate-limit header in seconds: a Unix time may be in milliseconds."""
    return number // 1000 if number > _A_MOMENT_IN_MS else number


def _texts_at(document: Any, path: JsonPath) -> Iterator[str]:
    """Every text below a place; `*` in it stands for each item of a list and each member of an object."""
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
        text = payloads.storable(str(value).strip())
        if text:
            yield text
        return
    for inner in _inner(value) if depth else ():
        yield from _texts(inner, depth - 1)


def _inner(value: Any) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else ()
