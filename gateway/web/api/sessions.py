"""Sessions: a client acts for a person."""

from typing import Annotated, ClassVar
from uuid import UUID

from aiohttp import web
from pydantic import Field, StringConstraints

from gateway.access.identity.model import Scope
from gateway.access.identity.patterns import PATTERN
from gateway.contract.budgets import BudgetLimits, BudgetPeriod, BudgetSum
from gateway.contract.kinds import Effect
from gateway.contract.members import ID
from gateway.contract.sessions import (
    MAX_PATTERNS,
    MAX_SESSION_CONNECTORS,
    MAX_SESSION_SECONDS,
    NewSession,
    OpenedSessionView,
    SessionPage,
)
from gateway.web.api.budgets import MOST, PutSum
from gateway.web.bodies import Body, Name, QueryString, json_response, path_id, read_body, read_query
from gateway.web.keys import ACCESS, CALLER, SERVICES
from gateway.web.route import PRIVATE, Route

_PATH = "/api/v1/sessions"
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
Pattern = Annotated[str, StringConstraints(pattern=PATTERN)]
Patterns = Annotated[list[Pattern], Field(max_length=MAX_PATTERNS)]


class NamedPerson(Body):
    """The person for whom the client acts: by `id`, or a user of the client's own product by `subject`."""

    id: UUID | None = Field(None, strict=False, description="a person of a group in the client's `delegate_for`")
    subject: Name | None = Field(None, description="the client's own id of its user, who is added at the first session")
    email: str | None = Field(None, description="of a new user: the email address, which never identifies the person")
    name: str | None = Field(None, description="of a new user: the name")


class OpenTools(Body):
    """The operations of a session, by patterns `application.entity.action` with `*`."""

    allow: Patterns | None = Field(None, description="the only operations; all when left out")
    deny: Patterns = Field([], description="operations that are never run, also if `allow` has them")


class OpenBudget(Body):
    """What the calls of a session may use."""

    per: BudgetPeriod = Field(strict=False, description="`hour`, `day` or `month`, by the calendar in UTC")
    calls: int | None = Field(None, ge=0, le=MOST, description="maximum calls")
    writes: int | None = Field(None, ge=0, le=MOST, description="maximum writes")
    records: int | None = Field(None, ge=0, le=MOST, description="records after which no further call is made")
    sum: PutSum | None = Field(None, description="maximum sum of a param")


class OpenSession(Body):
    """A session for a person. What is left out is not limited further than the person and the client are."""

    EXAMPLES: ClassVar = {
        "user of a product": {
            "person": {"subject": "user-7", "name": "Ada"},
            "tools": {"allow": ["zendesk.*"], "deny": ["*.delete*"]},
            "expires_in": 3600,
        },
        "employee": {"person": {"id": ID}, "effects": ["read"]},
    }

    person: NamedPerson | None = Field(None, description="the person; left out in a session, which has its person")
    workspace_name: Name | None = Field(None, description="the only workspace, which gets new connectors too")
    connectors: (
        Annotated[list[Annotated[UUID, Field(strict=False)]], Field(max_length=MAX_SESSION_CONNECTORS)] | None
    ) = Field(None, description="the only connectors")
    tools: OpenTools = Field(OpenTools(), description="the operations")
    effects: (
        Annotated[list[Annotated[Effect, Field(strict=False)]], Field(min_length=1, max_length=len(Effect))] | None
    ) = Field(None, description="the only effects: `read`, `idempotent`, `write`")
    budget: OpenBudget | None = Field(None, description="what its calls may use")
    expires_in: int | None = Field(
        None, ge=1, le=MAX_SESSION_SECONDS, description="seconds for which it is valid; an hour when left out"
    )


class SessionQuery(QueryString):
    """The page of sessions."""

    limit: int = Field(100, ge=1, le=1000, description="maximum sessions of a page")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


async def open_session(request: web.Request) -> web.Response:
    """Opens a session in which the client acts for a person, and returns its token once. The person's own connectors
    come first, then the shared ones. The session may do what both the client and the person may, without the scopes
    `admin` and `approve`, and no more than the body says.

    `subject` names a user of the client's own product, who is added if the client has no such user yet. `id` names a
    person of the groups in the client's `delegate_for`, which an administrator sets. With the token of a session, a
    narrower one is opened for the same person; what asks for more is 422. What a session does not allow is 403
    `insufficient_scope`.
    """
    body = await read_body(request, OpenSession)
    person, budget = body.person or NamedPerson(), body.budget
    limits = None
    if budget is not None:
        total = None if budget.sum is None else BudgetSum(**budget.sum.model_dump())
        limits = BudgetLimits(
            per=budget.per, calls=budget.calls, writes=budget.writes, records=budget.records, sum=total
        )
    new = NewSession(
        person_id=person.id,
        subject=person.subject,
        email=person.email,
        name=person.name,
        workspace_name=body.workspace_name,
        connectors=body.connectors,
        allow=body.tools.allow,
        deny=body.tools.deny,
        effects=body.effects,
        budget=limits,
        expires_in=body.expires_in,
    )
    opened = await request.app[SERVICES].operations.delegation.open(request[CALLER], new)
    return json_response(opened, 201, _HEADERS)


async def list_sessions(request: web.Request) -> SessionPage:
    """The open sessions: for an administrator all, for a client those that it opened, for a person those in which a
    client acts for the person, and in a session those that were opened in it.
    """
    query = read_query(request, SessionQuery)
    return await request.app[SERVICES].operations.delegation.all(request[CALLER], query.cursor, query.limit)


async def end_session(request: web.Request) -> web.Response:
    """Ends a session, in every process within a second, with the sessions that were opened in it and their unfinished
    jobs. A write that was sent already runs to its true end.
    """
    session_id = path_id(request, "person_session_id")
    person_id = await request.app[SERVICES].operations.delegation.end(request[CALLER], session_id)
    # This process forgets the token before it responds; the others are notified.
    request.app[ACCESS].tokens.on_notify(str(person_id))
    return web.Response(status=204)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        _PATH,
        open_session,
        "Open a session for a person",
        "Sessions",
        body=OpenSession,
        response=OpenedSessionView,
        answers={201: "The session, with its token"},
        sends={201: PRIVATE},
        errors=(409,),
        scope=Scope.DELEGATE,
        in_session=True,
        audit="session.open",
        command="gateway sessions open --subject user-7",
        python='session = await gateway.sessions.open(subject="user-7")\nprint(session.token, session.mcp_url)',
    ),
    Route(
        "GET",
        _PATH,
        list_sessions,
        "List the open sessions, the newest first",
        "Sessions",
        query=SessionQuery,
        response=SessionPage,
        scope=Scope.READ,
        in_session=True,
        command="gateway sessions list",
        python="print(await gateway.sessions.list())",
    ),
    Route(
        "DELETE",
        _PATH + "/{person_session_id}",
        end_session,
        "End a session",
        "Sessions",
        answers={204: "The session has ended"},
        errors=(404,),
        scope=Scope.READ,
        in_session=True,
        audit="session.end",
        command="gateway sessions end SESSION",
        python="await gateway.sessions.end(session_id)",
    ),
)
