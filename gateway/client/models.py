"""What the gateway answers, as frozen values; members that a newer gateway adds are passed over."""

from datetime import datetime
from typing import Any

import msgspec

#: the end of a job, which never changes
FINAL = frozenset({"succeeded", "failed", "canceled", "unknown"})


class Answer(msgspec.Struct, frozen=True):
    """What an operation came to."""

    #: the records of a list, the record, `{data, meta}` of a search, the requests of a dry run
    result: Any
    #: what the application says of the page, its cursor among it
    meta: dict[str, Any] | None = msgspec.field(default=None, name="connector_metadata")
    execution: dict[str, Any] = msgspec.field(default_factory=dict, name="execution_metadata")
    #: the params of the call for the next page of a list or search; None at the end and for anything else
    next: dict[str, Any] | None = None

    @property
    def records(self) -> list[Any]:
        """The result as records, whether it is a list, a search or a single record."""
        if isinstance(self.result, dict):
            for name in ("data", "searchRecords"):
                if isinstance(self.result.get(name), list):
                    return list(self.result[name])
        return self.result if isinstance(self.result, list) else [self.result]


class Connector(msgspec.Struct, frozen=True):
    """One account of an application, bound to a workspace."""

    id: str
    name: str
    kind: str
    connector_type: str
    workspace_name: str
    #: `pending`, `active`, `needs_reauth` or `disabled`
    status: str
    status_reason: str | None = None
    auth_method: str | None = None
    definition_id: str | None = None
    environment: dict[str, Any] = {}
    created_at: datetime | None = None
    updated_at: datetime | None = None


class JobView(msgspec.Struct, frozen=True):
    """A job at one moment."""

    id: str
    #: `queued`, `running`, `waiting`, and in the end `succeeded`, `failed`, `canceled` or `unknown`
    status: str
    done: bool = False
    total: int | None = None
    progress: int = 0
    message: str | None = None
    connector_id: str | None = None
    workspace_name: str | None = None
    entity: str | None = None
    action: str | None = None
    attempt: int = 0
    cancel_requested: bool = False
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    next_attempt_at: datetime | None = None
    expires_at: datetime | None = None
    error: dict[str, Any] | None = None
    labels: dict[str, str] = {}
    #: where the job is
    url: str | None = None
    #: where its result is, once there is one, whole or in part
    result_url: str | None = None
    #: what is certain about a write whose response was lost: whether and when it was sent, how to look it up
    known: dict[str, Any] | None = None
    #: whether a job that ended without success can be sent again without harm; None where that is no question
    safe_to_retry: bool | None = None


class JobEvent(msgspec.Struct, frozen=True):
    """One thing that happened to a job."""

    #: `progress`, `status`, and in the end `done`
    name: str
    data: dict[str, Any]
    #: names the place in the stream
    id: str


class Health(msgspec.Struct, frozen=True):
    """What a check of a connector found."""

    #: `healthy` or `unhealthy`
    status: str
    reason: Any = None
    message: str | None = None

    @property
    def is_healthy(self) -> bool:
        return self.status == "healthy"


class FlowView(msgspec.Struct, frozen=True):
    """How far an OAuth consent has come."""

    #: `pending`, `completed`, `failed` or `expired`
    status: str
    connector_id: str | None = None
    error: Any = None


class OperationMatch(msgspec.Struct, frozen=True):
    """An operation that fits a task."""

    #: `kind.entity.action`
    operation: str
    kind: str
    entity: str
    action: str
    #: `read`, `idempotent` or `write`
    effect: str
    title: str
    #: params and answer in one line
    signature: str
    description: str
    #: how well it fits; None where all were listed
    score: float | None = None
    #: those that could run it: `{id, name, workspace_name, status}`
    connectors: list[dict[str, Any]] = []
