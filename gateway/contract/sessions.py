"""Sessions: what a client does for a person, narrowed to connectors, tools, effects, a time and a budget."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from msgspec import Struct

from gateway.contract.budgets import BudgetLimits
from gateway.contract.kinds import Effect
from gateway.contract.members import ID, Id, NamedActorView, PageOf, Time, Url, member

#: seconds for which a session is valid, unless the client asks for others, and at most
SESSION_SECONDS, MAX_SESSION_SECONDS = 3600, 86_400
#: maximum connectors, and patterns of tools, of a session
MAX_SESSION_CONNECTORS, MAX_PATTERNS = 1000, 200


class SessionToolsView(Struct, frozen=True, kw_only=True):
    """The operations of a session, by patterns `application.entity.action` with `*`."""

    allow: Annotated[list[str] | None, member("The only operations; null for all.", ["support-desk.tickets.*"])] = None
    deny: Annotated[list[str], member("Operations that are never run.", ["*.delete*"])] = []


class SessionPersonView(Struct, frozen=True, kw_only=True):
    """The person for whom a session is."""

    id: Annotated[Id, member("The person's id.")]
    name: Annotated[str | None, member("The person's name.", "Ada")]
    email: Annotated[str | None, member("The email address.", "ada@example.com")]
    subject: Annotated[str | None, member("The person's id in the client's namespace, or at the issuer.", "user-7")]


class SessionView(Struct, frozen=True, kw_only=True):
    """A session, and what it may do."""

    id: Annotated[Id, member("The session's id.")]
    person: Annotated[NamedActorView, member("The person for whom the client acts.")]
    client: Annotated[NamedActorView, member("The client that acts.")]
    parent_id: Annotated[Id | None, member("The session in which it was opened.", None)]
    scopes: Annotated[list[str], member("`read`, and `write` if it may change anything.", ["read"])]
    workspaces: Annotated[list[str] | None, member("The only workspaces; null for all.", ["acme"])]
    connectors: Annotated[list[Id] | None, member("The only connectors; null for all.", None)]
    tools: Annotated[SessionToolsView, member("The operations.")]
    effects: Annotated[list[Effect] | None, member("The only effects; null for all.", None)]
    budget: Annotated[BudgetLimits | None, member("What its calls may use.", None)]
    created_at: Annotated[Time, member("When it was opened.")]
    expires_at: Annotated[Time, member("When it ends.")]


class SessionPage(PageOf[SessionView], frozen=True):
    """Sessions, the newest first."""


class OpenedSessionView(Struct, frozen=True, kw_only=True):
    """A new session with its token."""

    id: Annotated[Id, member("The session's id, to end it.")]
    token: Annotated[str, member("The bearer token, shown once: for the API and for MCP.", "2YotnFZFEjr1zCsicMWpAA")]
    mcp_url: Annotated[Url, member("The address for an agent's host.", "https://gateway.example.com/mcp")]
    connect_url: Annotated[
        Url | None,
        member(
            "The page on which the person connects an application, once and for half an hour; null if the session is "
            "limited to connectors, or nothing may be connected.",
            f"https://gateway.example.com/connect/{ID}",
        ),
    ]
    expires_at: Annotated[Time, member("When the session ends.")]
    person: Annotated[SessionPersonView, member("The person.")]


class NewSession(Struct, frozen=True, kw_only=True):
    """What a client asks for. The person is named by an id or by a subject of the client's namespace."""

    person_id: UUID | None = None
    subject: str | None = None
    email: str | None = None
    name: str | None = None
    workspace_name: str | None = None
    connectors: Sequence[UUID] | None = None
    allow: Sequence[str] | None = None
    deny: Sequence[str] = ()
    effects: Sequence[Effect] | None = None
    budget: BudgetLimits | None = None
    expires_in: int | None = None
