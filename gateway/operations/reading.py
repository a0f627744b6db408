"""Decides whether a caller may read a stored result: the policies of now decide, for whoever reads it."""

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from gateway.access.identity.model import Caller
from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.contract.policies import Surface
from gateway.errors import DeniedByPolicy, NotFound
from gateway.jobs.model import JobSummary
from gateway.jobs.store import JobStore
from gateway.jobs.tasks import BATCH, EXPORT, OPERATION
from gateway.operations.batches.inputs import BatchInputs
from gateway.operations.batches.model import BatchJob
from gateway.operations.exports.model import ExportParams
from gateway.operations.permission import Permission


@dataclass(frozen=True, slots=True)
class _Recipient:
    """The client that receives events."""

    organization_id: UUID
    client_id: UUID


@dataclass(frozen=True)
class ResultReading:
    """Permission to read results of jobs."""

    connectors: ConnectorResolver
    permission: Permission
    jobs: JobStore
    inputs: BatchInputs

    async def require(self, caller: Caller, job: JobSummary, surface: Surface) -> None:
        """Raise DeniedByPolicy unless the caller may run now what the job ran; without policies nothing is read.

        The result of an approved job may be read by who may run it with an approval.
        """
        if not await self.permission.is_needed(caller) or job.connector_id is None:
            return
        if job.task not in (OPERATION.name, EXPORT.name, BATCH.name):
            return  # the job has no records
        params = (await self.jobs.get_stored(job.organization_id, job.id)).params
        resolved = await self.connectors.get(job.organization_id, job.connector_id)
        if job.task == BATCH.name:
            await self._require_batch(caller, job, resolved, msgspec.convert(params, BatchJob))
            return
        if job.task == EXPORT.name:
            params = msgspec.convert(params, ExportParams).params
        await self._require(caller, resolved, job, job.entity or "", job.action or "", params, surface)

    async def may_read_records(self, organization_id: UUID, client_id: UUID, connector_id: UUID, entity: str) -> bool:
        """Whether events for a client may contain records of an entity: whether it may search the copy of them."""
        acting = _Recipient(organization_id, client_id)
        if not await self.permission.is_needed(acting):
            return True
        try:
            record = (await self.connectors.get(organization_id, connector_id)).record
            await self.permission.require_search(acting, record, entity, Surface.EVENTS)
        except (DeniedByPolicy, NotFound):
            return False
        return True

    async def _require_batch(
        self, caller: Caller, job: JobSummary, resolved: ResolvedConnector, batch: BatchJob
    ) -> None:
        """Decide every operation of a batch; their params are read part by part."""
        is_own = batch.steps and caller.client_id == job.client_id
        async with aclosing(self.inputs.parts(job, batch.total)) as parts:
            async for part in parts:
                for _, each in part:
                    if is_own:
                        # The params of steps are results of earlier ones, which were decided when they ran.
                        kind = resolved.connector.kind
                        await self.permission.require_possible(caller, resolved.record, kind, each.entity, each.action)
                    else:
                        await self._require(caller, resolved, job, each.entity, each.action, each.params, Surface.BATCH)

    async def _require(
        self,
        caller: Caller,
        resolved: ResolvedConnector,
        job: JobSummary,
        entity: str,
        action: str,
        params: Mapping[str, Any],
        surface: Surface,
    ) -> None:
        await self.permission.require(
            caller,
            resolved.record,
            kind=resolved.connector.kind,
            entity=entity,
            action=action,
            params=params,
            surface=surface,
            may_wait=job.approval is not None,
        )
