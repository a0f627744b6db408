"""A job, its states, and how callers see it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from gateway.contract.jobs import FINAL, JobStatus
from gateway.contract.kinds import Effect
from gateway.telemetry import tracing

#: what a canceled job says of which nothing was done
CANCELED_UNSTARTED, CANCELED_UNDONE = "canceled before it ran", "canceled; nothing was done"

#: the task that runs an operation of a connector; other tasks are the gateway's own
OPERATION_TASK = "operation"


class NewJob(msgspec.Struct, frozen=True):
    """A job to accept."""

    id: UUID
    organization_id: UUID
    client_id: UUID | None = None
    connector_id: UUID | None = None
    workspace_name: str | None = None
    task: str = OPERATION_TASK
    kind: str | None = None
    entity: str | None = None
    action: str | None = None
    params: Mapping[str, Any] = msgspec.field(default_factory=dict)
    selection: Mapping[str, Any] = msgspec.field(default_factory=dict)
    effect: Effect = Effect.READ
    is_inline: bool = False
    #: a background job: jobs that a caller waits for come first
    is_background: bool = False
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    request_id: str | None = None
    #: the webhook that receives the job's final event, for a job with a `callback_url`
    callback: UUID | None = None
    #: how to look up what a write whose answer was lost may have made
    find_by: str | None = None
    #: of a caller that can only follow redirects, perhaps for longer than its token lives
    token_hash: bytes | None = None
    #: the wrapped data key of what was sealed for the job before it is accepted; None makes one
    key_id: str | None = None
    wrapped_key: bytes | None = None
    #: the trace of the call that created it
    traceparent: str | None = msgspec.field(default_factory=tracing.traceparent)


class JobSummary(msgspec.Struct, frozen=True):
    """A job without its params and its result, which may be large."""

    id: UUID
    organization_id: UUID
    client_id: UUID | None
    connector_id: UUID | None
    workspace_name: str | None
    task: str
    kind: str | None
    entity: str | None
    action: str | None
    effect: Effect
    is_inline: bool
    is_background: bool
    labels: dict[str, str]
    request_id: str | None
    find_by: str | None
    traceparent: str | None
    status: JobStatus
    cancel_requested: bool
    total: int | None
    progress: int
    message: str | None
    error: dict[str, Any] | None
    #: whether a result is there, whole or in part
    is_stored: bool
    attempt: int
    worker_losses: int
    fence: int
    in_flight_since: datetime | None
    parts: int
    version: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    next_attempt_at: datetime | None
    expires_at: datetime | None
    #: of its data key, where its texts are sealed
    key_id: str | None
    wrapped_key: bytes | None

    @property
    def is_done(self) -> bool:
        return self.status in FINAL

    @property
    def has_result(self) -> bool:
        """Whether there is something to read: the whole result, or the part that was done before it ended."""
        return self.is_done and self.is_stored

    @property
    def is_poison_candidate(self) -> bool:
        """Whether workers were lost while they ran this job, perhaps because of it; one loss is no evidence."""
        return self.worker_losses >= 2

    @property
    def must_run_alone(self) -> bool:
        """Whether it lost a worker among few poison candidates, so that it is to run as the only one."""
        return self.worker_losses >= 3


def url_of(job: JobSummary, base_url: str) -> str:
    return f"{base_url}/api/v1/jobs/{job.id}"


class StoredJob(JobSummary, frozen=True):
    """A job with what running it takes."""

    params: dict[str, Any]
    selection: dict[str, Any]
    #: the checkpoint of an earlier attempt
    state: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JobChange:
    """One numbered change of a job."""

    number: int
    event: str
    data: str


class JobStep(msgspec.Struct, frozen=True):
    """A change of a job's state: when, in which attempt, and why."""

    status: JobStatus
    attempt: int
    message: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs a list shows."""

    statuses: Sequence[str] | None = None
    connector_id: UUID | None = None
    workspace_name: str | None = None
    #: names of the only workspaces; None is all
    workspaces: Collection[str] | None = None
    entity: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
