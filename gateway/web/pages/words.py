"""Times, names and sizes for pages. Pure."""

from datetime import datetime

#: units of a relative time: seconds, and the word for one
_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"))
#: seconds after which a date is shown instead of a number of days
_LONG_AGO = 30 * 86_400


def relative(moment: datetime | str, now: datetime) -> str:
    """`3 minutes ago`, `in 2 hours`, `just now`; a date beyond 30 days. A time as text is RFC 3339."""
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    seconds = (now - at).total_seconds()
    distance = abs(seconds)
    if distance < 5:
        return "just now"
    if distance >= _LONG_AGO:
        return at.strftime("%-d %b %Y")
    size, unit = next(((size, unit) for size, unit in _UNITS if distance >= size), (1, "second"))
    count = int(distance // size)
    words = f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{words} ago" if seconds > 0 else f"in {words}"


def exact(moment: datetime | str) -> str:
    """`2026-03-01 09:00:00 UTC`; a time as text is RFC 3339."""
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


def size(count: int | float) -> str:
    """A number of bytes for people: `512 B`, `1.2 KB`, `3.4 MB`."""
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
