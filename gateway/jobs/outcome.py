"""The outcome of a job whose run did not succeed, and whether its idempotency key is released: pure.

`failed`: nothing was done, or the application refused it. `canceled`: nothing was done, or the document says what was.
`unknown`: something may have been done; the document has the known facts and whether a repetition is safe.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from gateway import errors
from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.contract.members import moment
from gateway.errors import (
    GatewayError,
    InternalError,
    JobCanceled,
    ReauthorizationRequired,
    Unavailable,
    UpstreamRateLimited,
)
from gateway.jobs.leases import JobOutcome
from gateway.jobs.model import StoredJob
from gateway.upstream.retries import is_refusal
from gateway.upstream.run_context import Effects

UNKNOWN = "outcome_unknown"
#: `known.request_sent` if it is not certain that the first byte of the request went out
MAYBE = "maybe"


def classify_outcome(
    job: StoredJob,
    error: GatewayError,
    sent_at: datetime | None,
    state: Mapping[str, Any] | None = None,
    *,
    is_sent: bool = False,
) -> JobOutcome:
    """How the job ends.

    `sent_at`: when a request was marked as about to be sent whose response is not stored. `is_sent`: whether its first
    byte was certainly sent. `state`: the last saved state of the run.
    """
    effects = Effects.of(job.state if state is None else state)
    sentence = _sentence(error, effects)
    document = {**errors.document(error), "detail": sentence}
    facts = {
        "known": {**known_facts(job, sent_at, effects, is_sent=is_sent), **_response(error)},
        "safe_to_retry": job.effect is not Effect.WRITE,
    }
    result = _partial(effects)
    if _may_have_been_done(job, error, sent_at, effects):
        document = {**document, "code": UNKNOWN, "outcome": "unknown", **facts}
        return JobOutcome(status=JobStatus.UNKNOWN, result=result, error=document, message=sentence)
    if not isinstance(error, JobCanceled):
        return JobOutcome(status=JobStatus.FAILED, error=document, message=sentence)
    says_why = type(error) is not JobCanceled
    was_done = {**document, **facts} if effects.known else document if says_why else None
    return JobOutcome(status=JobStatus.CANCELED, result=result, error=was_done, message=sentence)


def unreadable_outcome(row: Mapping[str, Any], error: GatewayError) -> JobOutcome:
    """How a job ends that cannot be read; `row` has its columns as they are stored, whose values may be wrong."""
    document, effect = errors.document(error), row["effect"]
    if effect == Effect.READ or (row["in_flight_since"] is None and row["state"] == "{}"):
        return JobOutcome(status=JobStatus.FAILED, error=document, message=error.detail)
    known = {"request_id": row["request_id"], "request_sent": MAYBE, "find_by": row["find_by"]}
    facts = {"outcome": "unknown", "known": known, "safe_to_retry": effect == Effect.IDEMPOTENT}
    return JobOutcome(status=JobStatus.UNKNOWN, error={**document, "code": UNKNOWN, **facts}, message=error.detail)


def _sentence(error: GatewayError, effects: Effects) -> str:
    """Why the job ended and, if some of it was done, how much."""
    if not effects.known:
        return error.detail
    if isinstance(error, JobCanceled):
        return f"{effects.summary} before it was canceled"
    return f"{error.detail}; {effects.summary}"


def _may_have_been_done(job: StoredJob, error: GatewayError, sent_at: datetime | None, effects: Effects) -> bool:
    """Whether the application may have done more of it than the outcome of a cancellation says.

    The application did not do what it refused; any other error leaves it open. If the response to an earlier attempt
    was lost, the answer to a later attempt does not change that.
    """
    if job.effect is Effect.READ:
        return False
    if error.is_outcome_unknown or effects.is_open:
        return True
    if isinstance(error, JobCanceled):
        return sent_at is not None
    if effects.known:
        return True
    return sent_at is not None and (job.in_flight_since is not None or not is_refusal(error))


def known_facts(job: StoredJob, sent_at: datetime | None, effects: Effects, *, is_sent: bool) -> dict[str, Any]:
    """The known facts of the write, and how to look it up.

    A killed process leaves only the mark from before the first byte, so the request was sent "maybe".
    """
    facts = {
        "request_id": job.request_id,
        "request_sent": None if sent_at is None else True if is_sent else MAYBE,
        "sent_at": moment(sent_at),
        "find_by": job.find_by,
        **effects.known,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def _response(error: GatewayError) -> dict[str, Any]:
    """The status of a response that leaves the outcome open."""
    status = None if error.upstream is None else error.upstream.status
    return {} if status is None or is_refusal(error) else {"response_status": status}


def _partial(effects: Effects) -> dict[str, Any] | None:
    """The head of a partial result; None if nothing of it is stored."""
    if not effects.known or effects.result is None:
        return None
    return {"result": dict(effects.result), "collected": effects.collected, "meta": None}


def is_requeued(job: StoredJob, error: GatewayError, sent_at: datetime | None) -> bool:
    """Whether the job waits and runs again instead of ending: it sent nothing, or what it sent can be repeated."""
    if job.is_inline or not isinstance(error, UpstreamRateLimited | Unavailable):
        return False
    return sent_at is None or job.effect is not Effect.WRITE


def must_continue(job: StoredJob, state: Mapping[str, Any]) -> bool:
    """Whether a canceled job still runs, to follow work in progress at the application or to report what was done."""
    effects = Effects.of(state)
    return job.effect is not Effect.READ and (effects.is_open or effects.needs_closing)


def releases_key(error: GatewayError) -> bool:
    """Whether an inline call that ends with this error changed nothing, so that its idempotency key can be used again.

    A final answer of the application is stored and replayed; a temporary refusal is not.
    """
    return error.retryable or isinstance(error, ReauthorizationRequired | InternalError)


def with_outcome(error: GatewayError, outcome: JobOutcome) -> GatewayError:
    """The error for a caller that waits, with the facts of an unknown outcome."""
    if outcome.status is not JobStatus.UNKNOWN or outcome.error is None:
        return error
    return errors.with_unknown_outcome(error, outcome.error["known"], safe_to_retry=outcome.error["safe_to_retry"])
