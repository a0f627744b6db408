"""Converts between Unix seconds and the formats of applications' times."""

from datetime import UTC, datetime
from typing import Any, Literal

#: larger numbers are milliseconds: as seconds they would lie after the year 5000
_MILLISECONDS = 1e11

Format = Literal["iso", "seconds", "milliseconds"]


def moment_of(value: Any) -> float | None:
    """Unix seconds of a time in RFC 3339, or in seconds or milliseconds as number or text; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return _of_text(value)
    return number / 1000 if number > _MILLISECONDS else number


def written(seconds: float, format_: Format) -> str:
    """The time in this format, rounded down so that no change is missed."""
    if format_ == "milliseconds":
        return str(int(max(seconds, 0) * 1000))
    rounded = int(max(seconds, 0))
    if format_ == "iso":
        return datetime.fromtimestamp(rounded, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return str(rounded)


def _of_text(value: Any) -> float | None:
    try:
        parsed = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
