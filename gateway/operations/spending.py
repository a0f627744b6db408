"""Takes calls from the budgets of their organization; every way to act for a client passes here before it acts."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from gateway.access.budgets.model import Use, budgets_of
from gateway.access.budgets.point import BudgetPoint
from gateway.access.policy.point import PolicyPoint
from gateway.connectors.model import ConnectorRecord
from gateway.contract.kinds import Effect
from gateway.errors import (
    GatewayError,
    IdempotencyInFlight,
    IdempotencyMismatch,
    NotCached,
    RateLimited,
    Unavailable,
    UpstreamBusy,
)
from gateway.foundation.aio.turns import in_thread
from gateway.kinds.actions import SEARCH_ACTION
from gateway.operations.permission import Acting
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.responses import OperationResult

#: errors of calls that were not made, for the moment or because their key was used before
_REFUSALS = (RateLimited, Unavailable, UpstreamBusy, NotCached, IdempotencyInFlight, IdempotencyMismatch)
#: the status of an application that does not take requests now
_UNAVAILABLE = 503
#: bytes of an answer whose records are counted in a thread
_LARGE = 64 << 10


@dataclass(frozen=True, slots=True)
class Meter:
    """Counts calls, for budgets and for policies that read what a client has called."""

    budgets: BudgetPoint
    policies: PolicyPoint

    async def spend(self, organization_id: UUID, use: Use) -> bool:
        """Count a use, and return whether anything counts it; raises BudgetSpent."""
        is_covered = await self.budgets.spend(organization_id, use)
        return (bool(use.calls) and await self.policies.count(organization_id, use)) or is_covered


@dataclass(frozen=True, slots=True)
class Spending:
    """What clients use. Dry runs and refused calls use nothing."""

    meter: Meter

    async def take(self, acting: Acting, record: ConnectorRecord, call: PreparedCall) -> "Taken":
        """Take a call; raises BudgetSpent."""
        return await self.take_named(
            acting, record, str(call.operation), call.params, is_write=call.effect is not Effect.READ
        )

    async def take_search(self, acting: Acting, record: ConnectorRecord, entity: str) -> "Taken":
        """Take a search of the copy; raises BudgetSpent."""
        return await self.take_named(acting, record, f"{entity}.{SEARCH_ACTION}", {})

    async def take_named(
        self,
        acting: Acting,
        record: ConnectorRecord,
        operation: str,
        params: Mapping[str, Any],
        *,
        is_write: bool = False,
    ) -> "Taken":
        """Take an operation by its name, `entity.action`; raises BudgetSpent."""
        taken = self.untaken(acting, record, operation, params, is_write=is_write)
        return replace(taken, is_covered=await self.meter.spend(acting.organization_id, taken.use))

    def untaken(
        self,
        acting: Acting,
        record: ConnectorRecord,
        operation: str,
        params: Mapping[str, Any],
        *,
        is_write: bool = False,
    ) -> "Taken":
        """A call that was taken when its job was accepted, for the records that it returns."""
        use = Use(
            client_id=acting.client_id,
            acting_client_id=None if acting.session is None else acting.session.client_id,
            budgets=budgets_of(acting.session),
            workspace_name=record.workspace_name,
            operation=f"{record.kind}.{operation}",
            params=params,
            is_write=is_write,
        )
        return Taken(meter=self.meter, organization_id=acting.organization_id, use=use)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A call that was taken from the budgets that cover it."""

    meter: Meter
    organization_id: UUID
    use: Use
    #: whether a budget or a policy may count it
    is_covered: bool = True

    async def give_back(self) -> None:
        """Give the call back, because it was not made."""
        if self.is_covered:
            await self.meter.spend(self.organization_id, replace(self.use, calls=-1))

    @asynccontextmanager
    async def until_failed(self) -> AsyncIterator[None]:
        """Give the call back if the block raises a temporary refusal, or the error of an earlier call with its key."""
        try:
            yield
        except GatewayError as error:
            is_unavailable = error.upstream is not None and error.upstream.status == _UNAVAILABLE
            is_refused = (is_unavailable or isinstance(error, _REFUSALS)) and not error.is_outcome_unknown
            if error.is_replayed or is_refused:
                await self.give_back()
            raise

    async def returned(self, answer: OperationResult) -> None:
        """Take the records that a read returned."""
        if not self.is_covered or self.use.is_write:
            return
        if not answer.is_list:
            await self.returned_records(1)
        elif len(memoryview(answer.result)) > _LARGE:
            await self.returned_records(await in_thread(_count, answer))
        else:
            await self.returned_records(_count(answer))

    async def returned_records(self, count: int) -> None:
        """Take records that were returned."""
        if self.is_covered and count:
            await self.meter.spend(self.organization_id, replace(self.use, calls=0, records=count))


async def give_back(taken: Sequence[Taken]) -> None:
    """Give calls back that were not made."""
    for each in taken:
        await each.give_back()


def _count(answer: OperationResult) -> int:
    return len(answer.records)
