"""The interfaces of the tools' backend, which is a gateway or the engine in this process."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Any, Protocol
from uuid import UUID

from gateway.jobs.model import JobSummary
from gateway.kinds.catalog import Catalog
from gateway.kinds.find.entries import OperationEntry
from gateway.kinds.find.index import OperationIndex
from gateway.upstream.responses import OperationResult

#: the status of a connector that can be used
ACTIVE = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorInfo:
    """A connector, with the members that agents see."""

    id: str
    name: str
    kind: str
    status: str = ACTIVE
    workspace_name: str | None = None
    reason: str | None = None
    #: whether it is the caller's own, which comes before shared ones
    is_personal: bool = False

    def as_document(self) -> dict[str, Any]:
        members = {
            "id": self.id,
            "name": self.name,
            "kind": self.kind,
            "status": self.status,
            "workspace_name": self.workspace_name,
            "reason": self.reason,
            "personal": self.is_personal or None,
        }
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """One operation to run for an agent."""

    entry: OperationEntry
    connector: ConnectorInfo
    params: Mapping[str, Any] = field(default_factory=dict)
    fields: Sequence[str] | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class AgentBatch:
    """Operations of one connector to run as one job, each `{entity, action, params, id?}`."""

    connector: ConnectorInfo
    operations: Sequence[Mapping[str, Any]]
    #: whether they run in order and may refer to each other's results
    is_steps: bool
    idempotency_key: str | None = None


class ResultForm(Enum):
    """The form of a stored result."""

    #: a list, which is read by records
    RECORDS = auto()
    #: any other JSON, which is read by bytes
    DOCUMENT = auto()
    #: a file of any media type, which is read by bytes
    FILE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A range of a stored result: `data` is text, or bytes of a file; numbers count records of a list, else bytes."""

    form: ResultForm
    data: str | bytes
    media_type: str
    offset: int
    count: int
    #: the number in the whole result, if known
    total: int | None
    is_last: bool


@dataclass(frozen=True, slots=True)
class ConsentLink:
    """A page on which a person connects an application, and the id for `is_connected`."""

    url: str
    id: str


@dataclass(frozen=True, slots=True)
class FileUrl:
    """A signed link to a file, which a person can open without a token."""

    url: str
    expires_at: datetime


class Backend(Protocol):
    """Runs operations for callers, whom the tools only pass on."""

    @property
    def catalog(self) -> Catalog: ...

    async def index(self) -> OperationIndex:
        """The search for operations, created at the first call; other tools must not need it."""

    async def connectors(self, caller: Any) -> Sequence[ConnectorInfo]:
        """All connectors that the caller may use, in a fixed order."""

    async def connector(self, caller: Any, name: str) -> ConnectorInfo | None:
        """The connector with the id `name`, if the caller may use it."""

    async def offered(self, caller: Any, entries: Iterable[OperationEntry]) -> Sequence[OperationEntry]:
        """The operations among these that the caller may be allowed to run."""

    async def execute(self, caller: Any, call: AgentCall) -> OperationResult | JobSummary:
        """Run an operation: its answer, or the job that will have it; raises GatewayError."""

    async def dry_run(self, caller: Any, call: AgentCall) -> list[dict[str, Any]]:
        """The requests that the call would send, with masked secrets; nothing is sent."""

    async def save(self, caller: Any, call: AgentCall, answer: OperationResult) -> str:
        """Store an answer that is too long for a conversation; returns the result id for `part`."""

    async def part(self, caller: Any, result_id: str, offset: int, limit: int | None) -> Part:
        """A range of a stored result; raises NotFound and ResultExpired."""


class JobsBackend(Protocol):
    """Jobs that continue after a call, and links for people; only a hosted gateway has them."""

    @property
    def is_stopping(self) -> bool:
        """Whether the process is stopping; `changed` then returns at once."""

    async def get(self, caller: Any, job_id: UUID) -> JobSummary: ...

    async def changed(self, caller: Any, job: JobSummary, seconds: float) -> JobSummary:
        """The job as soon as it has changed or ended, or its current state after `seconds`."""

    async def cancel(self, caller: Any, job: JobSummary) -> JobSummary:
        """Cancel the job, or request its cancellation; raises JobNotCancelable."""

    async def retry(self, caller: Any, job: JobSummary, *, confirm: bool) -> JobSummary:
        """Run the work as a new job; raises OutcomeUnknown for a write that may have happened, unless `confirm`."""

    async def answer(self, caller: Any, job: JobSummary) -> OperationResult:
        """The answer of a job that has ended; raises the job's error."""

    def file_link(self, caller: Any, job: JobSummary) -> FileUrl | None:
        """A signed link to the job's file for a person; None if the gateway's URL is unknown."""

    async def batch(self, caller: Any, batch: AgentBatch) -> JobSummary:
        """Accept a job that runs many operations of a connector; raises InvalidParams with all faults."""

    async def connect_link(self, caller: Any, kind: str, connector: ConnectorInfo | None) -> ConsentLink:
        """Create a link for a person to connect a kind, or a connector again; raises GatewayError."""

    async def is_connected(self, caller: Any, link_id: str, seconds: float) -> bool:
        """Whether the person has connected the application; waits up to `seconds` for it."""
