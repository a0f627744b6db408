"""The tools' backend in a gateway: connectors, execution and jobs of the caller's organization."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from msgspec.structs import replace

from gateway.access.identity.model import Caller, Scope
from gateway.agents.tools.backend import AgentBatch, AgentCall, ConnectorInfo, ConsentLink, FileUrl, Part
from gateway.agents.tools.ranges import part_of_file, part_of_records, part_of_text
from gateway.connectors.model import ConnectorRecord
from gateway.contract.batches import MAX_OPERATIONS, BatchCall, BatchOptions, received_operations
from gateway.contract.connectors import ConnectorStatus, SessionStatus
from gateway.contract.events import EventPage, EventSelection
from gateway.contract.kinds import Effect
from gateway.contract.policies import Surface
from gateway.errors import GatewayError, InsufficientScope, NotFound
from gateway.events.subscription import NewSubscription, SubscriptionState
from gateway.jobs import results
from gateway.jobs.model import JobSummary, NewJob
from gateway.jobs.stored_files.blobs import read_all
from gateway.jobs.stored_files.model import StoredFile
from gateway.jobs.tasks import has_file
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Catalog
from gateway.kinds.find.entries import OperationEntry
from gateway.kinds.find.index import OperationIndex
from gateway.operations.call import Done, OperationCall
from gateway.run.services import Services
from gateway.upstream.field_selection import FieldSelection
from gateway.upstream.responses import ROOT, OperationResult

log = logging.getLogger(__name__)

#: the workspace of new connectors of a client that may use none: the error names it
_WORKSPACE = "default"
#: seconds between checks whether a person has given consent
_POLL_INTERVAL = 1.0
#: creates the search for operations at the first call
Index = Callable[[], Awaitable[OperationIndex]]


@dataclass(frozen=True)
class HostedCaller:
    """The caller, and the members of the request that operations need."""

    caller: Caller
    request_id: str
    #: the URL of the gateway for this caller
    base_url: str
    #: context manager that marks the request as suspended while it waits
    suspended: Callable[[], AbstractContextManager[None]]

    @property
    def principal(self) -> str:
        """The identity to which sealed states are bound."""
        return f"{self.caller.client_id}:{self.caller.organization_id}"


class HostedBackend:
    """Runs operations with the gateway's use cases."""

    def __init__(self, services: Services, index: Index) -> None:
        self._services = services
        self._index = index

    @property
    def catalog(self) -> Catalog:
        return self._services.catalog

    async def index(self) -> OperationIndex:
        return await self._index()

    async def connectors(self, caller: HostedCaller) -> Sequence[ConnectorInfo]:
        caller.caller.require(Scope.READ)
        records = await self._services.connectors.access.find(caller.caller)
        return [_info(record) for record in records if record.status is not ConnectorStatus.DISABLED]

    async def connector(self, caller: HostedCaller, name: str) -> ConnectorInfo | None:
        """The connector, from the resolver's cache, so that a repeated call needs no query."""
        caller.caller.require(Scope.READ)
        try:
            resolved = await self._services.connectors.resolver.get_for(caller.caller, UUID(name))
        except (ValueError, GatewayError):
            return None
        return None if resolved.record.status is ConnectorStatus.DISABLED else _info(resolved.record)

    async def offered(self, caller: HostedCaller, entries: Iterable[OperationEntry]) -> Sequence[OperationEntry]:
        return await self._services.operations.offers.among(caller.caller, entries)

    async def execute(self, caller: HostedCaller, call: AgentCall) -> OperationResult | JobSummary:
        operation_call = self._call(caller, call)
        if operation_call.action == SEARCH_ACTION:
            return (await self._services.operations.copy_search.search(caller.caller, operation_call)).answer
        # A file is stored by a job, so that ranges of it can be read.
        is_file = call.entry.action is not None and call.entry.action.download is not None
        outcome = await self._services.operations.execution.execute(
            caller.caller, replace(operation_call, respond_async=is_file)
        )
        return outcome.answer if isinstance(outcome, Done) else outcome.job

    async def dry_run(self, caller: HostedCaller, call: AgentCall) -> list[dict[str, Any]]:
        return await self._services.operations.execution.dry_run(caller.caller, self._call(caller, call))

    def _call(self, caller: HostedCaller, call: AgentCall) -> OperationCall:
        return OperationCall(
            connector_id=UUID(call.connector.id),
            entity=call.entry.entity_id,
            action=call.entry.action_id,
            surface=Surface.MCP,
            params=call.params,
            selection=FieldSelection(select_fields=call.fields),
            idempotency_key=call.idempotency_key,
            request_id=caller.request_id,
            base_url=caller.base_url,
        )

    async def save(self, caller: HostedCaller, call: AgentCall, answer: OperationResult) -> str:
        """Store a long answer as the result of a job that has ended; returns the job's id."""
        new = NewJob(
            id=uuid4(),
            organization_id=caller.caller.organization_id,
            client_id=caller.caller.client_id,
            session=caller.caller.session,
            connector_id=UUID(call.connector.id),
            workspace_name=call.connector.workspace_name,
            kind=call.entry.kind.name,
            entity=call.entry.entity_id,
            action=call.entry.action_id,
            params=call.params,
            effect=Effect.READ,
            surface=Surface.MCP,
            request_id=caller.request_id,
        )
        return str((await self._services.operations.execution.keep(new, answer)).id)

    async def part(self, caller: HostedCaller, result_id: str, offset: int, limit: int | None) -> Part:
        caller.caller.require(Scope.READ)
        services = self._services
        job = await services.jobs.access.done(caller.caller, _job_id(result_id), _POLL_INTERVAL)
        result = await services.operations.reading.result(caller.caller, job, caller.base_url, Surface.MCP)
        head = result.head
        if has_file(job):
            file = StoredFile(**head["result"])
            async with services.jobs.files.open(job.organization_id, job.id, file) as blob:
                media_type = file.headers.get("Content-Type", "application/octet-stream")
                return await part_of_file(file.size, media_type, offset, limit, lambda part: read_all(blob, [part]))
        if head["collected"] == ROOT:
            return await part_of_records(result.lines, offset, limit)
        return await part_of_text(results.document(head, result.lines), offset, limit)


def _info(record: ConnectorRecord) -> ConnectorInfo:
    return ConnectorInfo(
        id=str(record.id),
        name=record.name,
        kind=record.kind,
        status=record.status.value,
        workspace_name=record.workspace_name,
        reason=record.status_reason,
        is_personal=record.owner_id is not None,
    )


class HostedJobs:
    """Jobs of the caller's organization, and links for people."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @property
    def is_stopping(self) -> bool:
        return self._services.jobs.waiters.is_shutting_down

    async def get(self, caller: HostedCaller, job_id: UUID) -> JobSummary:
        caller.caller.require(Scope.READ)
        return await self._services.jobs.access.get(caller.caller, job_id)

    async def changed(self, caller: HostedCaller, job: JobSummary, seconds: float) -> JobSummary:
        return await self._services.jobs.access.changed(caller.caller, job.id, job.version, seconds)

    async def cancel(self, caller: HostedCaller, job: JobSummary) -> JobSummary:
        return await self._services.operations.job_control.cancel(caller.caller, job)

    async def retry(self, caller: HostedCaller, job: JobSummary, *, confirm: bool) -> JobSummary:
        return await self._services.operations.job_control.retry(
            caller.caller, job, Surface.MCP, confirm=confirm, request_id=caller.request_id
        )

    async def answer(self, caller: HostedCaller, job: JobSummary) -> OperationResult:
        reading = self._services.operations.reading
        stored = await reading.result(caller.caller, job, caller.base_url, Surface.MCP)
        return await results.answer(stored.head, stored.lines)

    def file_link(self, caller: HostedCaller, job: JobSummary) -> FileUrl | None:
        if not caller.base_url:
            return None
        link = self._services.jobs.file_links.link(caller.caller, job)
        return FileUrl(f"{caller.base_url}{link.path}", link.expires_at)

    async def batch(self, caller: HostedCaller, batch: AgentBatch) -> JobSummary:
        call = BatchCall(
            connector_id=UUID(batch.connector.id),
            options=BatchOptions(steps=batch.is_steps),
            limit=MAX_OPERATIONS,
            idempotency_key=batch.idempotency_key,
            request_id=caller.request_id,
        )
        word = "steps" if batch.is_steps else "each"
        received = received_operations(batch.operations, word)
        return (await self._services.operations.batches.accept(caller.caller, call, received)).job

    async def connect_link(self, caller: HostedCaller, kind: str, connector: ConnectorInfo | None) -> ConsentLink:
        link = await self._services.connectors.links.create(
            caller.caller,
            await self._workspace(caller, connector),
            connector_types=[kind],
            connector_id=None if connector is None else UUID(connector.id),
            owner=None if caller.caller.person_id is None else "me",
        )
        return ConsentLink(link.url, link.id)

    async def _workspace(self, caller: HostedCaller, connector: ConnectorInfo | None) -> str:
        """The connector's workspace; else one that the client may use, or the organization's only one."""
        if connector is not None and connector.workspace_name is not None:
            return connector.workspace_name
        return await self._services.connectors.access.default_workspace(caller.caller) or _WORKSPACE

    async def is_connected(self, caller: HostedCaller, link_id: str, seconds: float) -> bool:
        links, clock = self._services.connectors.links, asyncio.get_running_loop().time
        deadline = clock() + seconds
        session = await links.get(caller.caller, UUID(link_id))
        while session.status is SessionStatus.PENDING and clock() < deadline:
            with caller.suspended():
                await asyncio.sleep(_POLL_INTERVAL)
            session = await links.get(caller.caller, UUID(link_id))
        return session.status is SessionStatus.COMPLETED


class HostedEvents:
    """The feed of the caller's organization, limited to the client's workspaces."""

    def __init__(self, services: Services) -> None:
        self._events = services.events.access
        self._connectors = services.connectors.access
        self._subscriptions = services.events.subscriptions

    async def require_connector(self, caller: HostedCaller, connector_id: UUID) -> None:
        caller.caller.require(Scope.READ)
        _require_no_session(caller)
        await self._connectors.get(caller.caller, connector_id)

    async def read(self, caller: HostedCaller, selection: EventSelection, after: int | None, limit: int) -> EventPage:
        caller.caller.require(Scope.READ)
        _require_no_session(caller)
        return await self._events.page(caller.caller, selection, after, limit)

    async def follow(
        self, caller: HostedCaller, selection: EventSelection, after: int, seconds: float
    ) -> AsyncGenerator[EventPage, None]:
        _require_no_session(caller)
        async with aclosing(self._events.follow(caller.caller, selection, after, seconds)) as pages:
            async for page in pages:
                yield page

    async def subscribe(self, caller: HostedCaller, new: NewSubscription) -> SubscriptionState:
        _require_no_session(caller)
        return await self._subscriptions.subscribe(caller.caller, new)

    async def unsubscribe(self, caller: HostedCaller, type_: str, arguments: Mapping[str, str], url: str) -> None:
        _require_no_session(caller)
        await self._subscriptions.unsubscribe(caller.caller, type_, arguments, url)


def _require_no_session(caller: HostedCaller) -> None:
    """Raise InsufficientScope in a session: events are of all connectors, and subscriptions outlive it."""
    if caller.caller.session is not None:
        raise InsufficientScope("a session runs operations; it has no events")


def _job_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise NotFound("there is no such result") from error
