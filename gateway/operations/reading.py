"""Decides what a caller may read of a stored result: the policies of now decide, for whoever reads it."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import msgspec

from gateway.access.identity.model import Caller, Scope
from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.contract.policies import Surface
from gateway.errors import DeniedByPolicy, InsufficientScope, NotFound
from gateway.jobs import results
from gateway.jobs.access import JobAccess, JobResult
from gateway.jobs.model import JobSummary, StoredJob
from gateway.jobs.store import JobStore
from gateway.jobs.tasks import BATCH, EXPORT, OPERATION, REPLAY, has_file
from gateway.operations.approvals.gate import is_approved
from gateway.operations.batches.inputs import BatchInputs
from gateway.operations.batches.model import BatchJob
from gateway.operations.exports.model import ExportParams
from gateway.operations.permission import Permission
from gateway.upstream.withheld import withheld


@dataclass(frozen=True, slots=True)
class _Recipient:
    """The client that receives events."""

    organization_id: UUID
    client_id: UUID
    session: None = None


@dataclass(frozen=True, slots=True)
class _Hidden:
    """Paths of members that the reader of a result does not see."""

    paths: Sequence[str] = ()
    #: of a batch: by the index of each operation
    by_index: Mapping[int, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ResultReading:
    """Reads results of jobs as far as policies allow."""

    connectors: ConnectorResolver
    permission: Permission
    jobs: JobStore
    access: JobAccess
    inputs: BatchInputs

    async def result(self, caller: Caller, job: JobSummary, base_url: str, surface: Surface) -> JobResult:
        """The result of a job that is done, without the members that policies redact for the caller now.

        Raises the error that the job ended with, ResultExpired, and DeniedByPolicy.
        """
        hidden = await self._hidden(caller, job, surface)
        with withheld(hidden.paths):
            result = await self.access.result(job, base_url)
        head, lines = results.redacted(job.effect, result.head, result.lines, hidden.paths, hidden.by_index)
        return replace(result, head=head, lines=lines)

    async def require(self, caller: Caller, job: JobSummary, surface: Surface) -> None:
        """Raise DeniedByPolicy unless the caller may read the file that is the job's result."""
        await self._hidden(caller, job, surface)

    async def _hidden(self, caller: Caller, job: JobSummary, surface: Surface) -> _Hidden:
        """Decide whether the caller may run now what the job ran; without policies nothing is read.

        The result of an approved job may be read by who may run it with an approval.
        """
        if job.task == REPLAY.name:
            caller.require(Scope.ADMIN)
        if not await self.permission.is_needed(caller) or job.connector_id is None:
            return _Hidden()
        if job.task not in (OPERATION.name, EXPORT.name, BATCH.name):
            return _Hidden()  # the job has no records
        stored = await self.jobs.get_stored(job.organization_id, job.id)
        params = stored.params
        resolved = await self.connectors.get(job.organization_id, job.connector_id)
        if job.task == BATCH.name:
            return _Hidden(
                by_index=await self._batch_redactions(caller, job, resolved, msgspec.convert(params, BatchJob))
            )
        if job.task == EXPORT.name:
            params = msgspec.convert(params, ExportParams).params
        redact = await self._require(caller, resolved, job, job.entity or "", job.action or "", params, surface)
        if job.task == EXPORT.name and not set(redact) <= await self._left_out(stored):
            raise DeniedByPolicy("the stored file has members that policies redact for you now; run the export again")
        return _Hidden(() if has_file(job) else redact)

    async def _left_out(self, job: StoredJob) -> set[str]:
        """The paths of members that the stored file of an export leaves out: more than when the job was accepted, if
        policies changed or a schedule or a retry began it.
        """
        head = await self.jobs.head(job)
        return {*job.selection.get("redact", ()), *(head or {}).get("redacted", ())}

    async def records_redaction(
        self, organization_id: UUID, client_id: UUID, connector_id: UUID, entity: str
    ) -> Sequence[str] | None:
        """The paths that events for a client leave out of an entity's records, as its searches of the copy do; None if
        it may not search them.
        """
        acting = _Recipient(organization_id, client_id)
        if not await self.permission.is_needed(acting) and await self.permission.point.rights_of(client_id) is None:
            return ()
        try:
            record = (await self.connectors.get(organization_id, connector_id)).record
            decision = await self.permission.require_search(acting, record, entity, Surface.EVENTS, is_counted=True)
            return decision.redact
        except (DeniedByPolicy, InsufficientScope, NotFound):
            return None

    async def _batch_redactions(
        self, caller: Caller, job: JobSummary, resolved: ResolvedConnector, batch: BatchJob
    ) -> Mapping[int, Sequence[str]]:
        """Decide every operation of a batch; their params are read part by part."""
        redactions: dict[int, Sequence[str]] = {}
        is_own = batch.steps and caller.client_id == job.client_id
        async with aclosing(self.inputs.parts(job, batch.total)) as parts:
            async for part in parts:
                for index, each in part:
                    if is_own:
                        # The params of steps are results of earlier ones, which were decided when they ran.
                        redact = await self.permission.require_possible(
                            caller, resolved.record, resolved.connector.kind, each.entity, each.action
                        )
                    else:
                        redact = await self._require(
                            caller, resolved, job, each.entity, each.action, each.params, Surface.BATCH
                        )
                    if redact:
                        redactions[index] = redact
        return redactions

    async def _require(
        self,
        caller: Caller,
        resolved: ResolvedConnector,
        job: JobSummary,
        entity: str,
        action: str,
        params: Mapping[str, Any],
        surface: Surface,
    ) -> Sequence[str]:
        """The paths that are redacted; raises DeniedByPolicy."""
        decision = await self.permission.require(
            caller,
            resolved.record,
            kind=resolved.connector.kind,
            entity=entity,
            action=action,
            params=params,
            surface=surface,
            may_wait=job.approval is not None,
            is_counted=True,
            is_approved=is_approved(job),
        )
        return decision.redact
