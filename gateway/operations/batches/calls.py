"""Prepares the calls of a batch for the current connector, groups them for bulk requests, and runs them."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.contract.policies import Surface
from gateway.errors import GatewayError
from gateway.jobs.model import StoredJob
from gateway.kinds.catalog import Kind
from gateway.operations.batches.grouping import Numbered, grouped
from gateway.operations.batches.model import BatchJob, StoredOperation
from gateway.operations.permission import Permission
from gateway.operations.runs import OperationRuns
from gateway.upstream.bulk import Outcome
from gateway.upstream.prepared import PreparedCall, prepare
from gateway.upstream.responses import OperationResult
from gateway.upstream.run_context import InMemoryRunContext


@dataclass(frozen=True, slots=True)
class _Actor:
    """The sender of a batch, for the audit log."""

    organization_id: UUID
    client_id: UUID


class BatchCalls:
    """Prepares, groups and sends the operations of one batch."""

    def __init__(
        self,
        connectors: ConnectorResolver,
        permission: Permission,
        runs: OperationRuns,
        job: StoredJob,
        options: BatchJob,
    ) -> None:
        assert job.connector_id is not None
        assert job.client_id is not None
        self._connectors = connectors
        self._permission = permission
        self._runs = runs
        self._connector_id = job.connector_id
        self._actor = _Actor(job.organization_id, job.client_id)
        self._options = options

    async def groups(self, operations: Sequence[Numbered]) -> list[list[Numbered]]:
        """The operations in groups: several for one bulk request, or a single one."""
        alone = [[numbered] for numbered in operations]
        if self._options.steps or self._options.stop_on_error:
            return alone
        try:
            kind = (await self._resolved()).connector.kind
        except GatewayError:
            return alone  # each operation ends with this error
        return grouped((numbered, _call_of(kind, numbered[1])) for numbered in operations)

    async def prepared(self, operation: StoredOperation) -> PreparedCall:
        """The call of an operation; raises InvalidParams, DeniedByPolicy, NotFound and ConnectorNotReady."""
        resolved = await self._resolved()
        kind = resolved.connector.kind
        if self._options.steps:
            call = prepare(kind.operation(operation.entity, operation.action), operation.params)
        else:
            call = _call(kind, operation)
        await self._permission.require_call(self._actor, resolved.record, call, Surface.BATCH)
        return call

    async def run(self, call: PreparedCall, context: InMemoryRunContext) -> OperationResult:
        """Run a call until it has a result; raises GatewayError."""
        return await self._runs.run_call(self._actor, await self._resolved(), call, context)

    async def run_bulk(self, calls: Sequence[PreparedCall], context: InMemoryRunContext) -> list[Outcome]:
        """Run the calls of one group by one request; raises UpstreamRateLimited and Unavailable."""
        return await self._runs.run_bulk(self._actor, await self._resolved(), calls, context)

    async def _resolved(self) -> ResolvedConnector:
        current = await self._connectors.get(self._actor.organization_id, self._connector_id)
        current.require_active()
        return current


def _call(kind: Kind, operation: StoredOperation) -> PreparedCall:
    """The call of params that were validated when the batch was received."""
    kind_operation = kind.operation(operation.entity, operation.action)
    return PreparedCall.of(kind_operation, operation.params, limit=operation.limit)


def _call_of(kind: Kind, operation: StoredOperation) -> PreparedCall | None:
    """The call of an operation; None if the kind no longer has it."""
    try:
        return _call(kind, operation)
    except GatewayError:
        return None
