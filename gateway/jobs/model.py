"""A job and its row: the members of `NewJob`, `JobSummary` and `StoredJob` are the inserted and selected columns."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args, get_type_hints
from uuid import UUID

import msgspec

from gateway.access.identity.model import PersonSession
from gateway.contract.jobs import FINAL, JobStatus
from gateway.contract.kinds import Effect
from gateway.contract.policies import Surface
from gateway.contract.problems import JobErrorView
from gateway.errors import InternalError
from gateway.foundation.telemetry import tracing
from gateway.jobs.sealing import JobKey, JobSealing

#: the message of a job that was canceled before it ran
CANCELED_UNSTARTED = "canceled before it ran"
#: the message of a job that ran and was canceled before it did anything
CANCELED_UNDONE = "canceled; nothing was done"

#: the task that runs an operation of a connector; other tasks are the gateway's own
OPERATION_TASK = "operation"
#: the task that collects a list into a file
EXPORT_TASK = "export"


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job to accept."""

    id: UUID
    organization_id: UUID
    client_id: UUID | None = None
    #: the session in which it was requested
    session: PersonSession | None = None
    connector_id: UUID | None = None
    workspace_name: str | None = None
    task: str = OPERATION_TASK
    kind: str | None = None
    entity: str | None = None
    action: str | None = None
    params: Mapping[str, Any] = msgspec.field(default_factory=dict)
    selection: Mapping[str, Any] = msgspec.field(default_factory=dict)
    effect: Effect = Effect.READ
    #: where the call came from, for policies
    surface: Surface = Surface.HTTP
    is_inline: bool = False
    #: whether no caller waits for it, so that other jobs come first
    is_background: bool = False
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    request_id: str | None = None
    #: the webhook that receives the job's final event, for a job with a `callback_url`
    callback: UUID | None = None
    #: how to look up what the write may have made if its response is lost
    find_by: str | None = None
    #: the record that it changes, for the audit entry at its end; None if it makes one
    target: str | None = None
    #: SHA-256 of the token of a caller that follows redirects to the result, possibly after the token expires
    token_hash: bytes | None = None
    #: whether its call was counted, for budgets and policies, when it was accepted; else it is when it starts
    is_counted: bool = True
    #: whether it only stores the answer of a call that has its own audit entry
    is_answer: bool = False
    #: the wrapped data key, if texts were sealed for the job before it is accepted; None creates one
    key_id: str | None = None
    wrapped_key: bytes | None = None
    #: the trace of the call that created it
    traceparent: str | None = msgspec.field(default_factory=tracing.traceparent)


class JobSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A job without params, state and result, which may be large."""

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
    surface: Surface = Surface.HTTP
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
    #: whether a result is stored, whole or in part
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
    #: id of the encryption key that wraps its data key; None if its texts are not sealed
    key_id: str | None
    wrapped_key: bytes | None
    #: the person whose own connector it runs on
    owner_id: UUID | None = None
    is_counted: bool = True
    #: its latest approval: `{id, status, reason, expires_at}`
    approval: dict[str, Any] | None = None
    #: the session in which it was requested
    session: PersonSession | None = None

    @property
    def is_done(self) -> bool:
        return self.status in FINAL

    @property
    def asks(self) -> bool:
        """Whether it waits until a person approves it."""
        return self.status is JobStatus.WAITING and self.approval is not None and self.approval["status"] == "pending"

    @property
    def has_result(self) -> bool:
        """Whether it has ended with a result, or with the part that was done before it ended."""
        return self.is_done and self.is_stored

    @property
    def is_poison_candidate(self) -> bool:
        """Whether several workers were lost while they ran this job, perhaps because of it."""
        return self.worker_losses >= 2

    @property
    def must_run_alone(self) -> bool:
        """Whether it lost a worker in a small group of poison candidates too, so that it must run as the only one."""
        return self.worker_losses >= 3


class StoredJob(JobSummary, frozen=True, kw_only=True):
    """A job with params and state, as its run needs it."""

    params: dict[str, Any]
    selection: dict[str, Any]
    #: the checkpoint of an earlier attempt
    state: dict[str, Any]
    callback: UUID | None = None
    target: str | None = None


#: columns that are selected by an expression
_READ_AS = {
    "labels": "jobs.labels::text AS labels",
    "is_stored": "jobs.result IS NOT NULL AS is_stored",
    "session": "jobs.session::text AS session",
}
#: the PostgreSQL types of a `NewJob`'s members
_TYPES = {
    UUID: "uuid",
    str: "text",
    bool: "boolean",
    bytes: "bytea",
    Effect: "text",
    Surface: "text",
    Mapping[str, Any]: "text",
    Mapping[str, str]: "jsonb",
    PersonSession: "jsonb",
}


def _selected(struct: type[msgspec.Struct]) -> str:
    """The columns of a Struct, which have the names of its members."""
    return ", ".join(_READ_AS.get(name, f"jobs.{name}") for name in struct.__struct_fields__)


def _type_of(annotation: Any) -> str:
    """The PostgreSQL type of a member, optional or not."""
    return next(_TYPES[each] for each in (annotation, *get_args(annotation)) if each in _TYPES)


# Without the members that may be large: params, selection, state and result.
SUMMARY_COLUMNS = _selected(JobSummary)
COLUMNS = _selected(StoredJob)
#: inserted column → its type
_INSERTED = {name: _type_of(hint) for name, hint in get_type_hints(NewJob).items()}
INSERTED_COLUMNS = ", ".join(_INSERTED)
#: new jobs as one array for each column, in the order of `INSERTED_COLUMNS`
NEW_JOBS = f"unnest({', '.join(f'${number}::{type_}[]' for number, type_ in enumerate(_INSERTED.values(), 1))})"
#: the number of the first argument after those of `NEW_JOBS`
NEXT_ARGUMENT = len(_INSERTED) + 1


def inserted_columns(new: Sequence[NewJob], sealing: JobSealing) -> list[list[Any]]:
    """New jobs as the arguments of `NEW_JOBS`: an array for each column."""
    return [list(column) for column in zip(*(_inserted_row(each, sealing) for each in new), strict=True)]


def _inserted_row(new: NewJob, sealing: JobSealing) -> tuple[Any, ...]:
    key = sealing.new_key(new.organization_id, new.id) if new.wrapped_key is None else new
    members = {name: getattr(new, name) for name in new.__struct_fields__}
    # Params may be 1 MiB, which `json.dumps` takes 50 ms to encode, and this 3 ms.
    members["params"] = sealing.seal(key, "params", msgspec.json.encode(new.params).decode())
    members["selection"] = json.dumps(dict(new.selection))
    members["labels"] = json.dumps(dict(new.labels))
    members["session"] = None if new.session is None else msgspec.json.encode(new.session).decode()
    members["key_id"], members["wrapped_key"] = key.key_id, key.wrapped_key
    return tuple(members.values())


def summary_of(row: Any) -> JobSummary:
    """The job in a row of `SUMMARY_COLUMNS`."""
    return JobSummary(**_members(row))


def job_of(row: Any, sealing: JobSealing) -> StoredJob:
    """The job in a row of `COLUMNS`, decrypted."""
    members = _members(row)
    key = JobKey(members["organization_id"], members["id"], members["key_id"], members["wrapped_key"])
    for name in ("params", "state"):
        members[name] = json.loads(sealing.open(key, name, members[name]))
    members["selection"] = json.loads(members["selection"])
    return StoredJob(**members)


def accepted_job(row: Any, new: NewJob) -> StoredJob:
    """The job in a row of `SUMMARY_COLUMNS` that was just inserted for `new`."""
    return StoredJob(
        **_members(row),
        params=dict(new.params),
        selection=dict(new.selection),
        state={},
        callback=new.callback,
        target=new.target,
    )


def _members(row: Any) -> dict[str, Any]:
    members = dict(row)
    members["labels"] = json.loads(members["labels"])
    members["error"] = None if members["error"] is None else _error_of(members["error"])
    if members["approval"] is not None:
        members["approval"] = msgspec.json.decode(members["approval"], type=dict[str, Any])
    if members["session"] is not None:
        members["session"] = msgspec.json.decode(members["session"], type=PersonSession)
    members["effect"] = Effect(members["effect"])
    members["surface"] = Surface(members["surface"])
    members["status"] = JobStatus(members["status"])
    return members


def _error_of(text: str) -> dict[str, Any]:
    """The error of a job. One that cannot be read is an error too, so that the job is seen, canceled and ended."""
    try:
        error = msgspec.json.decode(text, type=dict[str, Any])
        msgspec.convert(error, JobErrorView)
    except (msgspec.DecodeError, RecursionError):
        return {"code": InternalError.code, "detail": "the error of this job cannot be read"}
    return error


def url_of(job: JobSummary, base_url: str) -> str:
    return f"{base_url}/api/v1/jobs/{job.id}"


def approval_url(base_url: str, approval_id: object) -> str:
    """The page on which a person decides about a call."""
    return f"{base_url}/console/approvals/{approval_id}"


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


#: jobs of each status that `EndedJobs` counts at most
MAX_COUNTED = 1_000


@dataclass(frozen=True, slots=True)
class EndedJobs:
    """How many jobs failed, and of how many the outcome is unknown."""

    failed: int
    unknown: int

    @property
    def total(self) -> int:
        return self.failed + self.unknown

    @property
    def shown(self) -> tuple[str, ...]:
        """Both numbers for people."""
        return counted(self.failed), counted(self.unknown)


def counted(count: int) -> str:
    """A number of jobs, of which at most `MAX_COUNTED` were counted, for people."""
    return f"{MAX_COUNTED} or more" if count == MAX_COUNTED else str(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs a list shows."""

    statuses: Sequence[str] | None = None
    connector_id: UUID | None = None
    workspace_name: str | None = None
    #: names of the workspaces that the caller may see; None for all
    workspaces: Collection[str] | None = None
    #: the caller's person; jobs of other people's connectors are left out
    person_id: UUID | None = None
    #: the caller's session, which has its own jobs only
    session_id: UUID | None = None
    entity: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
