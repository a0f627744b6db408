"""Views of jobs, their states and events."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Struct

from gateway.contract.approvals import JobApprovalView
from gateway.contract.members import ID, TIME, Id, PageAsOf, Time, Url, member
from gateway.contract.problems import JobErrorView


class JobStatus(StrEnum):
    """queued → running ⇄ waiting → one of the final states, which never change."""

    #: accepted; no worker has claimed it
    QUEUED = "queued"
    #: a worker holds its lease
    RUNNING = "running"
    #: held back by a back-off, the application's rate limit, or until a person approves it
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    #: a write was sent and its response was lost; the gateway does not resend it unless asked
    UNKNOWN = "unknown"


FINAL = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELED, JobStatus.UNKNOWN})

_URL = f"https://gateway.example.com/api/v1/jobs/{ID}"
_KNOWN = "Of an `unknown` job: the facts known about the write."


class JobView(Struct, frozen=True, kw_only=True):
    """The state of a job."""

    id: Annotated[Id, member("The job's id.")]
    status: Annotated[JobStatus, member("The state of the job.", "running")]
    url: Annotated[Url, member("The job's URL.", _URL)] = ""
    done: Annotated[bool, member("Whether the job has ended.", False)] = False
    total: Annotated[int | None, member("The number of items, once known.", 250)] = None
    progress: Annotated[int, member("The number of items that are done.", 100)] = 0
    message: Annotated[str | None, member("The progress in words.", "100 of 250 tickets updated")] = None
    connector_id: Annotated[Id | None, member("The connector.", ID)] = None
    workspace_name: Annotated[str | None, member("The connector's workspace.", "acme")] = None
    entity: Annotated[str | None, member("The operation's entity.", "ticket_bulk_updates")] = None
    action: Annotated[str, member("The operation's action, or the task.", "create")] = ""
    attempt: Annotated[int, member("How often the job was started.", 1)] = 0
    cancel_requested: Annotated[bool, member("Whether a client asked to cancel the job.", False)] = False
    created_at: Annotated[Time | None, member("When the job was accepted.", TIME)] = None
    started_at: Annotated[Time | None, member("When the job was first started.", TIME)] = None
    finished_at: Annotated[Time | None, member("When the job ended.")] = None
    next_attempt_at: Annotated[Time | None, member("Of a waiting job: when it is started again.")] = None
    expires_at: Annotated[Time | None, member("When the result is deleted.")] = None
    result_url: Annotated[Url | None, member("The URL of the result, once there is one.")] = None
    error: Annotated[JobErrorView | None, member("The error, unless the job succeeded.")] = None
    known: Annotated[dict[str, Any] | None, member(_KNOWN)] = None
    safe_to_retry: Annotated[bool | None, member("Of an `unknown` job: whether a repetition does no harm.")] = None
    labels: Annotated[dict[str, str], member("The caller's labels.")] = {}
    session_id: Annotated[Id | None, member("The session in which a client requested it for a person.", None)] = None
    approval: Annotated[JobApprovalView | None, member("The approval for which the job waits or waited.")] = None


class JobPage(PageAsOf[JobView], frozen=True):
    """Jobs, the newest first."""


class AcceptedJobView(Struct, frozen=True):
    """The response 202, with the accepted job."""

    status: Annotated[Literal["accepted"], member("Always `accepted`.")]
    result: Annotated[JobView, member("The job.")]
    job: Annotated[JobView, member("The job.")]


class DeletionView(Struct, frozen=True):
    """A deletion in progress."""

    job_id: Annotated[Id, member("The job that deletes it.")]


class JobEvent(Struct, frozen=True):
    """One Server-Sent Event of a job: its name, data and id."""

    #: `progress`, `status`, and at the end `done`
    name: str
    data: dict[str, Any]
    #: the position in the stream, for `Last-Event-ID`
    id: str
