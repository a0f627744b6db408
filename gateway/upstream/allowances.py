"""Reads what an application's headers say of its limits. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

import msgspec

from gateway.kinds.failures import Allowance

#: a larger number is a Unix time, not a number of seconds; an even larger one is in milliseconds
_A_MOMENT = 1_000_000_000
_A_MOMENT_IN_MS = 100_000_000_000
#: the first number of a header, which may be a list (RateLimit fields of older drafts); and a `name=number/number`
_NUMBER = re.compile(r"\s*([0-9]{1,18})\s*(?:[,;]|$)", re.ASCII)
_MEMBER = re.compile(r"(?<![\w-])([\w-]+)\s*=\s*([0-9]{1,18})(?![0-9])(?:/([0-9]{1,18})(?![0-9]))?", re.ASCII)
#: a header that is `number/number` and nothing else
_NUMBERS = re.compile(r"\s*([0-9]{1,18})(?:/([0-9]{1,18}))?\s*", re.ASCII)


class Reading(msgspec.Struct, frozen=True):
    """An allowance as a response reports it; what it does not report is None."""

    limit: int | None = None
    remaining: int | None = None
    #: seconds, or a Unix time, which may be in milliseconds
    reset: int | None = None


def left_until(number: float, unix_time: float) -> float:
    """Seconds until a time that is a number of seconds, or a Unix time in seconds or milliseconds."""
    if number <= _A_MOMENT:
        return number
    return (number / 1000 if number > _A_MOMENT_IN_MS else number) - unix_time


def readings(allowance: Allowance, headers: Mapping[str, str]) -> Iterator[Reading]:
    """The readings of an allowance in these headers (names in lower case): one for each header that matches."""
    if allowance.header is None:
        limit, remaining = _number(headers, allowance.limit), _number(headers, allowance.remaining)
        if limit is not None or remaining is not None:
            yield Reading(limit, remaining, _number(headers, allowance.reset))
        return
    if allowance.header.endswith("*"):
        prefix = allowance.header[:-1]
        yield from [_of_members(allowance, text) for name, text in headers.items() if name.startswith(prefix)]
    elif allowance.header in headers:
        yield _of_members(allowance, headers[allowance.header])


def spent(allowances: Sequence[Allowance], headers: Mapping[str, str]) -> list[Reading]:
    """The readings of allowances of which nothing is left."""
    found = (reading for allowance in allowances for reading in readings(allowance, headers))
    return [reading for reading in found if reading.remaining is not None and reading.remaining <= 0]


def full_again(spent_ones: Sequence[Reading], unix_time: float) -> int | None:
    """Whole seconds until all of these allowances are reset; None if no header says so."""
    return max((_whole(each.reset, unix_time) for each in spent_ones if each.reset is not None), default=None)


def scarcest_full(allowances: Sequence[Allowance], headers: Mapping[str, str], unix_time: float) -> int | None:
    """Whole seconds until the allowance of which least is left is reset; None if no header says so."""
    found = (reading for allowance in allowances for reading in readings(allowance, headers))
    known = [
        (each.remaining / each.limit, each.reset) for each in found if each.remaining and each.limit and each.reset
    ]
    return _whole(min(known)[1], unix_time) if known else None


def _whole(reset: int, unix_time: float) -> int:
    return max(1, ceil(left_until(reset, unix_time)))


def _of_members(allowance: Allowance, text: str) -> Reading:
    values = {name: (int(number), int(other) if other else None) for name, number, other in _MEMBER.findall(text)}
    alone = _NUMBERS.fullmatch(text)
    if alone is not None:
        values[""] = (int(alone[1]), int(alone[2]) if alone[2] else None)
    by_role = {role: values[name] for role, name in allowance.members.items() if name in values}
    used, of = by_role.get("used", (None, None))
    limit, remaining, reset = (by_role.get(role, (None, None))[0] for role in ("limit", "remaining", "reset"))
    limit = of if limit is None else limit
    if remaining is None and used is not None and limit is not None:
        remaining = limit - used
    return Reading(limit, remaining, reset)


def _number(headers: Mapping[str, str], name: str | None) -> int | None:
    text = headers.get(name) if name else None
    match = _NUMBER.match(text) if text else None
    return int(match[1]) if match else None
