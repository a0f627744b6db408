"""Retries: when a failed request may be sent again, and after how many seconds."""

from dataclasses import dataclass
from random import SystemRandom
from typing import Any

from gateway.contract.kinds import Effect
from gateway.errors import (
    GatewayError,
    RateLimited,
    RequestError,
    Unavailable,
    UpstreamBusy,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamRateLimited,
    UpstreamTooLarge,
    with_unknown_outcome,
)
from gateway.upstream.run_context import Effects, RunContext

#: tries of one request, the first included
TRIES = 3
#: seconds; doubled for each further try and jittered by half
_BACK_OFF = 0.25
_RANDOM = SystemRandom()
#: errors after which the application has certainly done nothing, and the request may be sent again
NOTHING_DONE = (UpstreamRateLimited, UpstreamBusy)
#: the status of an application that does not take requests now (RFC 9110 §15.6.4)
_UNAVAILABLE = 503


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
    wait = float(attempt.error.retry_after or 0) or back_off(attempt.number)
    return wait if wait <= timeout else None


def back_off(attempt: int) -> float:
    """Seconds to wait after the try of this number, from 1, if the application names none."""
    return float(_BACK_OFF * 2 ** (attempt - 1) * _RANDOM.uniform(0.5, 1.5))


def _may_repeat(effect: Effect, attempt: Attempt) -> bool:
    if isinstance(attempt.error, NOTHING_DONE):
        return True
    if not isinstance(attempt.error, UpstreamError) or not attempt.error.retryable:
        return False
    if isinstance(attempt.error, UpstreamInvalidResponse | UpstreamTooLarge):
        return False
    return effect is Effect.READ or not attempt.was_sent


def is_refusal(error: GatewayError) -> bool:
    """Whether the application itself stated that it did not execute the request.

    After a 5xx it may have been executed, unless the spec states what the response means.
    """
    if isinstance(error, NOTHING_DONE):
        return True
    if isinstance(error, UpstreamInvalidResponse | UpstreamTooLarge):
        return False
    if isinstance(error, UpstreamError):
        status = None if error.upstream is None else error.upstream.status
        return status is not None and (status < 500 or status == _UNAVAILABLE or error.nothing_done)
    return isinstance(error, RequestError)


async def note(run_context: RunContext, error: GatewayError, *, was_sent: bool) -> None:
    """Record the outcome of a failed request; that it was not executed is durable before a retry."""
    if not was_sent or isinstance(error, (RateLimited, *NOTHING_DONE)):
        await run_context.clear_in_flight()
    elif is_refusal(error):
        run_context.refused()


def final(effect: Effect, attempt: Attempt) -> GatewayError:
    """The error of the last try. A write must not be sent again; if its response was lost, its outcome is unknown."""
    error = attempt.error
    if effect is Effect.READ or not attempt.was_sent or isinstance(error, NOTHING_DONE):
        return error
    if not isinstance(error, UpstreamError):
        return error
    if not is_refusal(error):
        return answer_lost(effect, error)
    error.retryable = error.retryable and effect is Effect.IDEMPOTENT
    return error


def of_run(effect: Effect, error: GatewayError, effects: Effects) -> GatewayError:
    """The error of a long operation that nothing resumes: what it has started and not seen the end of is unknown.

    An operation that may be repeated is repeated as a whole if the error asks for it.
    """
    if effect is Effect.READ or error.is_outcome_unknown or not effects.known:
        return error
    is_safe = effect is Effect.IDEMPOTENT
    if is_safe and isinstance(error, UpstreamRateLimited | Unavailable):
        return error
    return with_unknown_outcome(error, effects.known, safe_to_retry=is_safe)


def answer_lost(effect: Effect, error: GatewayError) -> GatewayError:
    """The error of a request that was sent, and whose response is missing, unreadable or leaves its outcome open."""
    if effect is Effect.READ or error.is_outcome_unknown:
        return error
    is_safe = effect is Effect.IDEMPOTENT
    hint = "it can be sent again without harm" if is_safe else "look it up before sending it again"
    detail = f"{error.detail} after the write had been sent; {hint}"
    error = type(error)(detail, upstream=error.upstream)
    known: dict[str, Any] = {"request_sent": True}
    if error.upstream is not None and error.upstream.status is not None:
        known["response_status"] = error.upstream.status
    return with_unknown_outcome(error, known, safe_to_retry=is_safe)
