"""What a run that did not succeed means for its job and for its idempotency key: pure."""

from datetime import datetime
from typing import Any

from gateway import errors
from gateway.errors import (
    GatewayError,
    InternalError,
    JobCanceled,
    ReauthorizationRequired,
    Unavailable,
    UpstreamInvalidResponse,
    UpstreamRateLimited,
)
from gateway.jobs.leases import Ending
from gateway.jobs.model import Job, JobStatus, moment
from gateway.kinds.spec import Effect

UNKNOWN = "outcome_unknown"


def classify_outcome(job: Job, error: GatewayError, sent_at: datetime | None) -> Ending:
    """How the job ends; `sent_at` is when a write went out whose answer is not stored."""
    if isinstance(error, JobCanceled):
        return Ending(JobStatus.CANCELED, message=error.detail)
    document = errors.document(error)
    if is_unknown(job, error, sent_at):
        document = {**document, "code": UNKNOWN, "known": known(job, sent_at)}
        return Ending(JobStatus.UNKNOWN, error=document, message=error.detail)
    return Ending(JobStatus.FAILED, error=document, message=error.detail)


def is_unknown(job: Job, error: GatewayError, sent_at: datetime | None) -> bool:
    """Whether a write may have happened all the same.

    What the application refused did not happen. A bug of ours, an answer that cannot be read and a record that cannot
    be kept say nothing about it.
    """
    if error.is_outcome_unknown:
        return True
    says_nothing = isinstance(error, InternalError | UpstreamInvalidResponse | Unavailable)
    return job.effect is Effect.WRITE and sent_at is not None and says_nothing


def known(job: Job, sent_at: datetime | None) -> dict[str, Any]:
    """What there is to go by for whoever looks the write up."""
    facts = {"request_id": job.request_id, "sent_at": moment(sent_at), "find_by": job.find_by}
    return {name: fact for name, fact in facts.items() if fact is not None}


def is_put_aside(error: GatewayError) -> bool:
    """Whether the job waits and is run again instead of ending."""
    return isinstance(error, UpstreamRateLimited | Unavailable)


def gives_key_back(error: GatewayError) -> bool:
    """Whether an inline call that ended so came to nothing, so that its idempotency key may be used again.

    An answer of the application is kept and replayed; a refusal that passes is not.
    """
    return error.retryable or isinstance(error, ReauthorizationRequired | InternalError)
