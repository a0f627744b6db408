"""Formats values as text, and makes text from applications safe for a terminal."""

import re
from datetime import datetime
from typing import Any

import msgspec

#: control characters, among them those that begin terminal commands
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")

#: a time in UTC (RFC 3339)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")


def printable(text: str) -> str:
    """The text on one line, without terminal control characters."""
    return _CONTROLS.sub(" ", text)


def shown(value: Any, max_length: int = 60) -> str:
    """The text of a value in a table."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str() if _MOMENT.fullmatch(value):
            text = f"{value[:10]} {value[11:19]}"
        case str():
            text = value
        case datetime():
            text = value.strftime("%Y-%m-%d %H:%M:%S")
        case int() | float():
            text = str(value)
        case _:
            text = msgspec.json.encode(value).decode()
    text = printable(text)
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def ago(value: Any, now: datetime) -> str | None:
    """The distance of a time from now: 3 min ago, in 2 h; None if the value is not a time."""
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        return None
    seconds = (now - value).total_seconds()
    distance = abs(seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if distance >= size:
            text = f"{distance / size:.0f} {unit}"
            break
    else:
        text = f"{distance:.0f} s"
    return f"{text} ago" if seconds >= 0 else f"in {text}"


def size_of(count: int) -> str:
    """A number of bytes with its unit: 1.5 MB."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
