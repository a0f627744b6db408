"""`gateway.budgets`: what clients, people and workspaces may use in a period; for administrators."""

from collections.abc import Mapping
from typing import Any

from gateway.client.paths import segment
from gateway.client.session import ApiRequest, Session
from gateway.contract.budgets import BudgetList, BudgetView

_PATH = "/api/v1/budgets"


class Budgets:
    """The budgets of the organization."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def put(
        self,
        name: str,
        *,
        per: str,
        calls: int | None = None,
        writes: int | None = None,
        records: int | None = None,
        sum: Mapping[str, Any] | None = None,  # noqa: A002 - the member's name
        client_id: str | None = None,
        person_id: str | None = None,
        workspace_name: str | None = None,
    ) -> BudgetView:
        """Store a budget of a client, a person, a workspace or everything, or change it.

        `sum` has `operation`, `param` and `at_most`.

        Raises InvalidParams with all faults.
        """
        members = {
            "per": per,
            "calls": calls,
            "writes": writes,
            "records": records,
            "sum": sum,
            "client_id": client_id,
            "person_id": person_id,
            "workspace_name": workspace_name,
        }
        body = {member: value for member, value in members.items() if value is not None}
        call = ApiRequest(method="PUT", path=f"{_PATH}/{segment(name)}", body=body)
        return (await self._session.fetch(call)).into(BudgetView)

    async def list(self) -> list[BudgetView]:
        """The budgets with what is spent of them, by name."""
        return (await self._session.fetch(ApiRequest(method="GET", path=_PATH))).into(BudgetList).data

    async def get(self, name: str) -> BudgetView:
        """A budget with what is spent of it; raises NotFound."""
        return (await self._session.fetch(ApiRequest(method="GET", path=f"{_PATH}/{segment(name)}"))).into(BudgetView)

    async def delete(self, name: str) -> None:
        """Delete a budget; raises NotFound."""
        await self._session.fetch(ApiRequest(method="DELETE", path=f"{_PATH}/{segment(name)}"))
