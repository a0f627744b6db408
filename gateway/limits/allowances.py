"""What the headers of an answer say of the application's limits: pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gateway.kinds.spec import Allowance

#: a reset beyond this is a moment (Unix time), not a number of seconds
_A_MOMENT = 1_000_000_000
#: parts of a window after which an allowance that does not say when it is full again is looked at, and at most how
#: many seconds: when a day ends, no application says
_PARTS, _LONGEST_LOOK = 10, 3600.0
#: the first number of a header, which may be a list (RateLimit fields of older drafts); and a `name=number/number`
_NUMBER = re.compile(r"\s*([0-9]{1,18})\s*(?:[,;]|$)", re.ASCII)
_MEMBER = re.compile(r"(?<![\w-])([\w-]+)\s*=\s*([0-9]{1,18})(?![0-9])(?:/([0-9]{1,18})(?![0-9]))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reading:
    """An allowance as an answer tells it; what it does not tell is None."""

    limit: int | None = None
    remaining: int | None = None
    #: seconds, or a Unix time
    reset: int | None = None


def readings(allowance: Allowance, headers: Mapping[str, str]) -> Iterator[Reading]:
    """What these headers (names in lower case) say of an allowance: nothing, once, or once for each that matches."""
    if allowance.header is None:
        told = Reading(*(_number(headers, name) for name in (allowance.limit, allowance.remaining, allowance.reset)))
        if told.remaining is not None or told.limit is not None:
            yield told
        return
    for name, text in headers.items():
        if name == allowance.header or (allowance.header.endswith("*") and name.startswith(allowance.header[:-1])):
            yield _of_members(allowance, text)


def full_in(reading: Reading, seconds: float, requests: int, unix_time: float) -> float:
    """Seconds until an allowance with a window of so many seconds is full again, or worth another look."""
    if reading.reset is None:
        return min(_LONGEST_LOOK, max(seconds / _PARTS, min(1.0, seconds), seconds / max(1, requests)))
    left = reading.reset - unix_time if reading.reset > _A_MOMENT else float(reading.reset)
    return min(float(seconds), max(0.0, left))


def _of_members(allowance: Allowance, text: str) -> Reading:
    found = {name: (int(number), int(other) if other else None) for name, number, other in _MEMBER.findall(text)}
    told = {what: found[name] for what, name in allowance.members.items() if name in found}
    used, of = told.get("used", (None, None))
    limit, remaining, reset = (told.get(what, (None, None))[0] for what in ("limit", "remaining", "reset"))
    limit = of if limit is None else limit
    if remaining is None and used is not None and limit is not None:
        remaining = limit - used
    return Reading(limit, remaining, reset)


def _number(headers: Mapping[str, str], name: str | None) -> int | None:
    found = _NUMBER.match(headers.get(name, "")) if name else None
    return int(found[1]) if found else None
