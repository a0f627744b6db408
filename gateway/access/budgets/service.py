"""The use cases of administrators: store, read and delete budgets."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from gateway.access.audit.log import Audit
from gateway.access.budgets.model import StoredBudget, spending_limit
from gateway.access.budgets.point import BudgetPoint
from gateway.access.budgets.store import BudgetStore
from gateway.access.identity.model import Caller, Scope
from gateway.access.names import require_name, require_possible
from gateway.contract.budgets import BudgetLimits, BudgetList, BudgetSpendingView, BudgetSum, BudgetView, NewBudget
from gateway.errors import FieldError, GatewayError, InvalidParams
from gateway.kinds.catalog import Catalog

_OWNERS = ("client_id", "person_id", "workspace_name")
_LIMITS = ("calls", "writes", "records", "sum")
#: types of JSON Schema whose values are no single number
_NOT_NUMBERS = ("array", "boolean", "object")


class BudgetService:
    """The budgets of the caller's organization."""

    def __init__(self, audit: Audit, store: BudgetStore, point: BudgetPoint, catalog: Catalog) -> None:
        self._audit = audit
        self._store = store
        self._point = point
        self._catalog = catalog

    async def all(self, caller: Caller) -> BudgetList:
        """The budgets, by name."""
        _require(caller)
        return BudgetList([_view(each) for each in await self._store.all(caller.organization_id)])

    async def get(self, caller: Caller, name: str) -> BudgetView:
        """A budget; raises NotFound."""
        _require(caller)
        require_possible(name, "budget")
        return _view(await self._store.get(caller.organization_id, name))

    async def put(self, caller: Caller, name: str, new: NewBudget) -> BudgetView:
        """Store a budget, or change it; what was spent counts on. Raises InvalidParams with all faults."""
        changed = [each for each in (*_OWNERS, *_LIMITS, "per") if getattr(new, each) is not None]
        with self._audit.record("budget.put", caller, target=name, changed=changed):
            _require(caller)
            require_name(name)
            faults = [*_owner_faults(new), *limit_faults(new, self._catalog)]
            if faults:
                raise InvalidParams(faults=faults)
            owner, is_person = new.client_id or new.person_id, new.person_id is not None
            budget = spending_limit(name, new, None if owner is None else UUID(owner), new.workspace_name)
            stored = await self._store.put(caller.organization_id, budget, is_person, caller.client_id)
            self._forget(caller.organization_id)
        return _view(stored)

    async def delete(self, caller: Caller, name: str) -> None:
        """Delete a budget and what is spent of it; raises NotFound."""
        with self._audit.record("budget.delete", caller, target=name):
            _require(caller)
            require_possible(name, "budget")
            await self._store.delete(caller.organization_id, name)
            self._forget(caller.organization_id)

    def _forget(self, organization_id: UUID) -> None:
        """The caller's next call counts by the change, even before this process is notified."""
        self._point.on_notify(str(organization_id))


def _owner_faults(new: NewBudget) -> list[FieldError]:
    """Several owners."""
    owners = [each for each in _OWNERS if getattr(new, each) is not None]
    if len(owners) <= 1:
        return []
    message = f"{' and '.join(owners)}: a budget is of one of them, or without any of the whole organization"
    return [FieldError(f"/{owners[1]}", owners[1], "conflict", message)]


def limit_faults(limits: BudgetLimits, catalog: Catalog) -> list[FieldError]:
    """No limit, or a sum of an operation or a param that no kind has."""
    faults = []
    if all(getattr(limits, each) is None for each in _LIMITS):
        faults.append(FieldError("/calls", "calls", "required", "a budget has calls, writes, records or sum"))
    if limits.sum is not None:
        faults += _sum_faults(limits.sum, catalog)
    return faults


def _sum_faults(limit: BudgetSum, catalog: Catalog) -> list[FieldError]:
    kind, _, rest = limit.operation.partition(".")
    entity, _, action = rest.partition(".")
    try:
        operation = catalog.served(kind).operation(entity, action)
    except GatewayError as error:
        return [FieldError("/sum/operation", "sum.operation", "unknown", f"sum.operation: {error.detail}")]
    schema: Mapping[str, Any] = operation.schema
    for name in limit.param.split("."):
        if schema.get("type") == "array":
            break
        properties = schema.get("properties")
        if properties is not None and name not in properties:
            message = f"sum.param: {limit.operation} has no param {name!r}"
            return [FieldError("/sum/param", "sum.param", "unknown", message)]
        schema = {} if properties is None else operation.resolved(properties[name])
    if schema.get("type") in _NOT_NUMBERS:
        message = f"sum.param: {limit.param} of {limit.operation} is no single number, but of the type {schema['type']}"
        return [FieldError("/sum/param", "sum.param", "type", message)]
    return []


def _view(stored: StoredBudget) -> BudgetView:
    budget, total = stored.budget, stored.spent.total
    owner = None if budget.client_id is None else str(budget.client_id)
    limit = None
    if budget.sum_operation is not None and budget.sum_param is not None and budget.sum_at_most is not None:
        limit = BudgetSum(operation=budget.sum_operation, param=budget.sum_param, at_most=float(budget.sum_at_most))
    return BudgetView(
        name=budget.name,
        client_id=None if stored.is_person else owner,
        person_id=owner if stored.is_person else None,
        workspace_name=budget.workspace_name,
        per=budget.per,
        calls=budget.calls,
        writes=budget.writes,
        records=budget.records,
        sum=limit,
        spent=BudgetSpendingView(calls=total.calls, writes=total.writes, records=total.records, sum=float(total.sum)),
        resets_at=stored.spent.resets_at,
        created_at=stored.created_at,
        created_by=None if stored.created_by is None else str(stored.created_by),
    )


def _require(caller: Caller) -> None:
    """Raise InsufficientScope unless the caller administers the whole organization."""
    caller.require(Scope.ADMIN)
    caller.require_whole_organization()
