"""When a failed request may be sent again, and after how long."""

from dataclasses import dataclass
from random import SystemRandom

from gateway.errors import (
    GatewayError,
    UpstreamBusy,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamRateLimited,
    UpstreamTooLarge,
)
from gateway.kinds.spec import Effect

#: tries of one request, the first included
TRIES = 3
#: seconds; doubled for each further try and jittered by half
_BACK_OFF = 0.25
_RANDOM = SystemRandom()
#: refusals that say that nothing was done, and that the same may be sent again
NOTHING_DONE = (UpstreamRateLimited, UpstreamBusy)
#: what a proxy answers when the application's own answer did not reach it (RFC 9110 §15.6.3, §15.6.5)
_OF_PROXIES = (502, 504)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try that failed."""

    number: int
    error: GatewayError
    #: whether the application may have seen the request
    was_sent: bool


def delay(effect: Effect, attempt: Attempt, timeout: float) -> float | None:
    """Seconds until the next try, or None when there must be none within `timeout` seconds.

    A write is sent again only when it certainly did not arrive, or when the application said that it did nothing.
    """
    if attempt.number >= TRIES or not _may_repeat(effect, attempt):
        return None
    wait = float(attempt.error.retry_after or 0) or _BACK_OFF * 2 ** (attempt.number - 1) * _RANDOM.uniform(0.5, 1.5)
    return wait if wait <= timeout else None


def _may_repeat(effect: Effect, attempt: Attempt) -> bool:
    if isinstance(attempt.error, NOTHING_DONE):
        return True
    if not isinstance(attempt.error, UpstreamError) or not attempt.error.retryable:
        return False
    if isinstance(attempt.error, UpstreamInvalidResponse | UpstreamTooLarge):
        return False
    return effect is Effect.READ or not attempt.was_sent


def final(effect: Effect, attempt: Attempt) -> GatewayError:
    """The error of the last try; a write is not to be sent again, and if its answer was lost its outcome is unknown."""
    error = attempt.error
    if effect is not Effect.WRITE or not attempt.was_sent or isinstance(error, NOTHING_DONE):
        return error
    if not isinstance(error, UpstreamError):
        return error
    if error.upstream is not None and error.upstream.status not in _OF_PROXIES:
        error.retryable = False
        return error
    detail = f"{error.detail} after the write had been sent; look it up before sending it again"
    return type(error)(detail, upstream=error.upstream, extra={"outcome": "unknown"})
