"""`gateway budget`: what clients, people and workspaces may use in an hour, a day or a month."""

from typing import Any

import click

from gateway.cli.client_session import calls_gateway, shows
from gateway.cli.failures import EXIT_CODES, note
from gateway.client import Gateway
from gateway.contract.budgets import BudgetPeriod

_COLUMNS = ("name", "per", "calls", "writes", "records", "spent", "resets_at")
_NUMBER = click.IntRange(min=0)


@click.group(epilog=EXIT_CODES)
def budget() -> None:
    """Budgets: what clients, people and workspaces may use in a period."""


@budget.command()
@click.argument("name")
@click.option("--per", type=click.Choice([each.value for each in BudgetPeriod]), required=True, help="The period.")
@click.option("--calls", type=_NUMBER, metavar="N", help="Maximum calls.")
@click.option("--writes", type=_NUMBER, metavar="N", help="Maximum writes.")
@click.option("--records", type=_NUMBER, metavar="N", help="Records after which no further call is made.")
@click.option(
    "--sum",
    "limit",
    type=(str, str, float),
    metavar="OPERATION PARAM NUMBER",
    help="Maximum sum of a param, such as `stripe.refunds.create amount 100000`.",
)
@click.option("--client", metavar="ID", help="The client whose calls count.")
@click.option("--person", metavar="ID", help="The person whose calls count.")
@click.option("--of-workspace", metavar="NAME", help="The workspace whose connectors count.")
@calls_gateway
async def put(
    gateway: Gateway,
    name: str,
    per: str,
    calls: int | None,
    writes: int | None,
    records: int | None,
    limit: tuple[str, str, float] | None,
    client: str | None,
    person: str | None,
    of_workspace: str | None,
) -> None:
    """Store a budget, or change it; without a client, a person and a workspace everything counts."""
    stored = await gateway.budgets.put(
        name,
        per=per,
        calls=calls,
        writes=writes,
        records=records,
        sum=None if limit is None else dict(zip(("operation", "param", "at_most"), limit, strict=True)),
        client_id=client,
        person_id=person,
        workspace_name=of_workspace,
    )
    note(f"{stored.name} is stored; it is whole again at {stored.resets_at:%Y-%m-%d %H:%M} UTC")


@budget.command("list")
@shows(*_COLUMNS)
async def list_budgets(gateway: Gateway) -> Any:
    """List the budgets and what is spent of them."""
    return await gateway.budgets.list()


@budget.command()
@click.argument("name")
@calls_gateway
async def delete(gateway: Gateway, name: str) -> None:
    """Delete a budget."""
    await gateway.budgets.delete(name)
    note(f"{name} is deleted")
