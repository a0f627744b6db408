"""`gateway.sessions`: act for a person, narrowed and for a while; for clients with the scope `delegate`."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.client.paths import segment
from gateway.client.session import ApiRequest, Session
from gateway.contract.sessions import OpenedSessionView, SessionPage, SessionView

_PATH = "/api/v1/sessions"


class PersonSessions:
    """The sessions in which the client acts for people."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def open(
        self,
        *,
        subject: str | None = None,
        person_id: str | None = None,
        email: str | None = None,
        name: str | None = None,
        workspace_name: str | None = None,
        connectors: Sequence[str] | None = None,
        allow: Sequence[str] | None = None,
        deny: Sequence[str] | None = None,
        effects: Sequence[str] | None = None,
        budget: Mapping[str, Any] | None = None,
        expires_in: int | None = None,
    ) -> OpenedSessionView:
        """Open a session for a user of your product, by your own id of the user, or for an employee by the person's id.

        Give its `token` or its `mcp_url` with the token to the person's agent, and send the person to `connect_url` to
        connect an application. `allow` and `deny` are patterns `application.entity.action` with `*`; `budget` has
        `per` and limits.

        Raises InvalidParams with all faults, and Forbidden for a person for whom the client may not act.
        """
        person = {"id": person_id, "subject": subject, "email": email, "name": name}
        tools = {"allow": allow, "deny": deny}
        members = {
            "person": {member: value for member, value in person.items() if value is not None},
            "tools": {member: list(value) for member, value in tools.items() if value is not None},
            "workspace_name": workspace_name,
            "connectors": connectors,
            "effects": effects,
            "budget": budget,
            "expires_in": expires_in,
        }
        body = {member: value for member, value in members.items() if value not in (None, {})}
        call = ApiRequest(method="POST", path=_PATH, body=body)
        return (await self._session.fetch(call)).into(OpenedSessionView)

    async def list(self) -> list[SessionView]:
        """The newest 1,000 open sessions, the newest first."""
        call = ApiRequest(method="GET", path=_PATH, query={"limit": 1000})
        return (await self._session.fetch(call)).into(SessionPage).data

    async def end(self, session_id: str) -> None:
        """End a session with those that were opened in it; raises NotFound."""
        await self._session.fetch(ApiRequest(method="DELETE", path=f"{_PATH}/{segment(session_id)}"))
