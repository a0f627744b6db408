"""The organization's budgets, for administrators."""

from typing import ClassVar
from uuid import UUID

from aiohttp import web
from pydantic import Field

from gateway.access.identity.model import Scope
from gateway.contract.budgets import BudgetList, BudgetPeriod, BudgetSum, BudgetView, NewBudget
from gateway.web.bodies import Body, Name, read_body
from gateway.web.keys import CALLER, SERVICES
from gateway.web.route import Route

_PATH = "/api/v1/budgets"
_NAMED = _PATH + "/{name}"
#: the largest number of a budget
MOST = 2**53 - 1


class PutSum(Body):
    """The sum that a param of an operation may reach."""

    operation: str = Field(max_length=200, description="`kind.entity.action`")
    param: str = Field(max_length=200, description="the param, with dots into objects; its value is a number")
    at_most: float = Field(ge=0, le=MOST, allow_inf_nan=False, description="the sum of a period")


class PutBudget(Body):
    """What a budget allows. Without a client, a person and a workspace it is that of the whole organization."""

    EXAMPLES: ClassVar = {
        "organization": {"per": "day", "calls": 10000, "writes": 500},
        "refunds": {
            "per": "month",
            "sum": {"operation": "stripe.refunds.create", "param": "amount", "at_most": 100000},
        },
    }

    client_id: UUID | None = Field(None, strict=False, description="the client whose calls count")
    person_id: UUID | None = Field(None, strict=False, description="the person whose calls count, by whichever client")
    workspace_name: Name | None = Field(None, description="the workspace whose connectors count")
    per: BudgetPeriod = Field(strict=False, description="`hour`, `day` or `month`, by the calendar in UTC")
    calls: int | None = Field(None, ge=0, le=MOST, description="maximum calls")
    writes: int | None = Field(None, ge=0, le=MOST, description="maximum writes")
    records: int | None = Field(None, ge=0, le=MOST, description="records after which no further call is made")
    sum: PutSum | None = Field(None, description="maximum sum of a param")


async def list_budgets(request: web.Request) -> BudgetList:
    """The budgets, by name, with what is spent of each in its current period."""
    return await request.app[SERVICES].policy.budgets.all(request[CALLER])


async def get_budget(request: web.Request) -> BudgetView:
    """A budget, with what is spent of it in its current period."""
    return await request.app[SERVICES].policy.budgets.get(request[CALLER], request.match_info["name"])


async def put_budget(request: web.Request) -> BudgetView:
    """Stores a budget under a name, or changes it; what was spent counts on. Every process obeys it within a second.

    Each execute, line of a batch, job, call of an agent, download, upload and search counts; dry runs, refused calls
    and repetitions of a call with its `Idempotency-Key` do not. A call for which a budget has too little is 429
    `budget_spent` with `budget`, `resets_at` and `Retry-After`, and nothing is sent.
    """
    body = await read_body(request, PutBudget)
    new = NewBudget(
        client_id=None if body.client_id is None else str(body.client_id),
        person_id=None if body.person_id is None else str(body.person_id),
        workspace_name=body.workspace_name,
        per=body.per,
        calls=body.calls,
        writes=body.writes,
        records=body.records,
        sum=None if body.sum is None else BudgetSum(**body.sum.model_dump()),
    )
    return await request.app[SERVICES].policy.budgets.put(request[CALLER], request.match_info["name"], new)


async def delete_budget(request: web.Request) -> web.Response:
    """Deletes a budget and what is spent of it."""
    await request.app[SERVICES].policy.budgets.delete(request[CALLER], request.match_info["name"])
    return web.Response(status=204)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        _PATH,
        list_budgets,
        "List the organization's budgets",
        "Budgets",
        response=BudgetList,
        scope=Scope.ADMIN,
        command="gateway budget list",
        python="print(await gateway.budgets.list())",
    ),
    Route(
        "GET",
        _NAMED,
        get_budget,
        "Get a budget",
        "Budgets",
        response=BudgetView,
        errors=(404,),
        scope=Scope.ADMIN,
    ),
    Route(
        "PUT",
        _NAMED,
        put_budget,
        "Store a budget, or change it",
        "Budgets",
        body=PutBudget,
        response=BudgetView,
        errors=(409,),
        scope=Scope.ADMIN,
        audit="budget.put",
        command="gateway budget put everything --per day --calls 10000 --writes 500",
        python='print(await gateway.budgets.put("everything", per="day", calls=10000, writes=500))',
    ),
    Route(
        "DELETE",
        _NAMED,
        delete_budget,
        "Delete a budget",
        "Budgets",
        answers={204: "The budget is deleted"},
        errors=(404,),
        scope=Scope.ADMIN,
        audit="budget.delete",
        command="gateway budget delete everything",
        python='await gateway.budgets.delete("everything")',
    ),
)
