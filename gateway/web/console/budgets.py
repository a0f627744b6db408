"""Budgets in the console: what clients, people and workspaces may use, and what is spent of it."""

from collections.abc import Mapping
from math import isfinite
from urllib.parse import quote

from aiohttp import web

from gateway.access.identity.model import id_of
from gateway.contract.budgets import BudgetPeriod, BudgetSum, BudgetView, NewBudget
from gateway.errors import Conflict, FieldError, InvalidParams
from gateway.web.api.budgets import MOST
from gateway.web.bodies import whole_number
from gateway.web.console.page import console_page, is_found, see_other
from gateway.web.console.session import read_console_form
from gateway.web.keys import ACCESS, CALLER, SERVICES

_PAGE = "/console/budgets"
#: budgets of a page; and maximum suggested workspaces
_LIMIT, _SUGGESTED = 25, 100
#: whose budget it is: the value of the form → its label
_OWNERS = {
    "organization": "the whole organization",
    "client": "a client",
    "person": "a person",
    "workspace": "a workspace",
}


async def list_budgets(request: web.Request) -> web.Response:
    """GET /console/budgets: the budgets, and the form for a new one, also of a `client`, or to `change` one of them."""
    name, client = request.query.get("change"), request.query.get("client")
    if not name:
        return await _listed(request, fields={"whose": "client", "owner": client} if client else None)
    budget = await request.app[SERVICES].policy.budgets.get(request[CALLER], name)
    return await _listed(request, fields=_fields_of(budget))


async def put_budget(request: web.Request) -> web.Response:
    """POST /console/budgets: store a budget, or change it; what was spent counts on."""
    fields = await read_console_form(request)
    changed = fields.get("change")
    name = changed or fields.get("name", "").strip()
    try:
        if not changed and await is_found(request.app[SERVICES].policy.budgets.get(request[CALLER], name)):
            raise Conflict(f"there is a budget {name!r} already; change it in the list")
        await request.app[SERVICES].policy.budgets.put(request[CALLER], name, _budget_in(fields))
    except (InvalidParams, Conflict) as error:
        return await _listed(request, problem=error.detail, fields=fields)
    return see_other(_PAGE)


async def delete_budget(request: web.Request) -> web.Response:
    """POST /console/budgets/{name}/delete: delete it with what is spent of it."""
    await read_console_form(request)
    await request.app[SERVICES].policy.budgets.delete(request[CALLER], request.match_info["name"])
    return see_other(_PAGE)


def _budget_in(fields: Mapping[str, str]) -> NewBudget:
    """The budget of the form; raises InvalidParams."""
    whose, owner = fields.get("whose"), fields.get("owner", "").strip()
    if whose in ("client", "person") and id_of(owner) is None:
        raise _fault("owner", f"enter the id of the {whose}")
    if whose == "workspace" and not owner:
        raise _fault("owner", "enter the name of the workspace")
    operation, param = fields.get("sum_operation", "").strip(), fields.get("sum_param", "").strip()
    at_most = fields.get("sum_at_most", "").strip()
    has_sum = bool(operation or param or at_most)
    return NewBudget(
        client_id=owner if whose == "client" else None,
        person_id=owner if whose == "person" else None,
        workspace_name=owner if whose == "workspace" else None,
        per=_period_in(fields),
        calls=_number_in(fields, "calls"),
        writes=_number_in(fields, "writes"),
        records=_number_in(fields, "records"),
        sum=BudgetSum(operation=operation, param=param, at_most=_amount(at_most)) if has_sum else None,
    )


def _period_in(fields: Mapping[str, str]) -> BudgetPeriod:
    try:
        return BudgetPeriod(fields.get("per", ""))
    except ValueError as error:
        raise _fault("per", f"choose {', '.join(BudgetPeriod)}") from error


def _number_in(fields: Mapping[str, str], name: str) -> int | None:
    text = fields.get(name, "").strip()
    number = whole_number(text)
    if text and (number is None or number > MOST):
        raise _fault(name, f"enter a whole number from 0 to {MOST}")
    return number


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1
    if not isfinite(amount) or not 0 <= amount <= MOST:
        raise _fault("sum.at_most", f"enter a number from 0 to {MOST}")
    return amount


def _fault(name: str, message: str) -> InvalidParams:
    return InvalidParams(faults=[FieldError(f"/{name.replace('.', '/')}", name, "invalid", f"{name}: {message}")])


def _fields_of(budget: BudgetView) -> Mapping[str, str]:
    """The fields of a form that has this budget, as a browser would send them."""
    owners = {"client": budget.client_id, "person": budget.person_id, "workspace": budget.workspace_name}
    whose, owner = next(((each, name) for each, name in owners.items() if name is not None), ("organization", ""))
    numbers = {name: getattr(budget, name) for name in ("calls", "writes", "records")}
    total = budget.sum
    return {
        "change": budget.name,
        "name": budget.name,
        "whose": whose,
        "owner": owner,
        "per": budget.per.value,
        **{name: str(number) for name, number in numbers.items() if number is not None},
        "sum_operation": "" if total is None else total.operation,
        "sum_param": "" if total is None else total.param,
        "sum_at_most": "" if total is None else f"{total.at_most:.15g}",
    }


async def _listed(
    request: web.Request, *, problem: str | None = None, fields: Mapping[str, str] | None = None
) -> web.Response:
    services, access, caller = request.app[SERVICES], request.app[ACCESS], request[CALLER]
    after = request.query.get("after", "")
    found = [each for each in (await services.policy.budgets.all(caller)).data if each.name > after]
    page = sorted(found, key=lambda each: each.name)[: _LIMIT + 1]
    shown = page[:_LIMIT]
    return console_page(
        request,
        "budgets.html",
        active="policies",
        status=422 if problem else 200,
        budgets=shown,
        names=await access.clients.names(caller, (each.client_id or each.person_id for each in shown)),
        is_first=not after,
        more=f"after={quote(shown[-1].name)}" if len(page) > _LIMIT else None,
        owners=_OWNERS,
        periods=[period.value for period in BudgetPeriod],
        clients=await access.clients.programs(caller),
        workspaces=[each.name for each in await services.connectors.access.workspaces(caller, limit=_SUGGESTED)],
        fields=fields or {},
        problem=problem,
    )
