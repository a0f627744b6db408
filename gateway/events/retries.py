"""When a failed delivery is tried again, and when the gateway gives it up. Pure."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

#: seconds before the second attempt
_FIRST_PAUSE = 5.0
#: factor of each further pause
_GROWTH = 4
#: maximum seconds between two attempts
_MAX_PAUSE = 8 * 3600.0
#: seconds for which nothing is sent to a receiver after its first failed turn
_FIRST_HOLD = 1.0
#: maximum seconds for which nothing is sent to a receiver
_MAX_HOLD = 300.0
#: maximum seconds that a receiver may ask the gateway to wait
_MAX_RETRY_AFTER = 24 * 3600.0
#: share by which a pause varies, so that deliveries that failed together are not tried again together
_JITTER = 0.2

Random = Callable[[float, float], float]


def retry_pause(attempts: int, uniform: Random = random.uniform) -> float:
    """Seconds until a delivery is tried again after that many failed attempts."""
    pause: float = min(_FIRST_PAUSE * _GROWTH ** min(attempts - 1, 20), _MAX_PAUSE)
    return pause * uniform(1 - _JITTER, 1 + _JITTER)


def hold_pause(failures: int, uniform: Random = random.uniform) -> float:
    """Seconds for which nothing is sent to a receiver after that many consecutive failed turns."""
    pause: float = min(_FIRST_HOLD * 2 ** min(failures - 1, 20), _MAX_HOLD)
    return pause * uniform(1 - _JITTER, 1 + _JITTER)


def retry_after(header: str | None, now: datetime) -> float | None:
    """The seconds of a `Retry-After` header (RFC 9110 §10.2.3), a number or a date; None if it is invalid."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return min(float(text), _MAX_RETRY_AFTER)
    try:
        seconds = (parsedate_to_datetime(text) - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), _MAX_RETRY_AFTER)


def is_given_up(first_attempt_at: datetime, now: datetime, seconds: float) -> bool:
    """Whether the time for retries of a delivery is over."""
    return now - first_attempt_at >= timedelta(seconds=seconds)
