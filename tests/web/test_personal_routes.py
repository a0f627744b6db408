"""Every route with the ids of a person's things, called by everybody else: generated from the table of routes.

A stranger gets for an id that belongs to the person exactly the response that an unknown id gets, so that it learns
nothing, and no list shows it the person's things. A new route is walked without a change here; a new variable of a path
needs a line in `PERSONAL` or `COMMON`.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin
from urllib.parse import urlencode
from uuid import UUID, uuid4

import aiohttp
import pytest

from gateway.access.identity.tokens import hashed, new_secret
from gateway.web.route import Route
from gateway.web.routes import ROUTES
from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Answer, Api
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import eventually
from tests.web.belongings import STAFF, Belongings, acting_for, belongings_of, caller_of, session_of
from tests.web.test_personal_connectors import CONNECTORS, LIST, OAUTH_APP, REDIRECT_URL, connected
from tests.web.test_policies import run_jobs
from tests.web.test_uploads import DRIVE, UPLOAD

#: what the person wrote in params, names and URLs: nobody else reads it
MARK = "mark-of-ada"
#: the variables of paths that name something of a person
PERSONAL = {
    "connector_id", "job_id", "schedule_id", "webhook_id", "session_id", "flow_id", "upload_id", "person_session_id",
    "approval_id", "grant_id", "person_id", "user_id", "event_id",
}  # fmt: skip
#: those that name something of the organization, or of nobody
COMMON = {
    "entity": "attachments",
    "kind": "support-desk",
    "connector_type": "support-desk",
    "workspace_id": str(UUID(int=1)),
    "client_id": str(UUID(int=2)),
    "group_id": str(UUID(int=3)),
    "token_id": str(UUID(int=4)),
    "issuer_id": str(UUID(int=5)),
    "name": "main",
    "schema": "User",
    "version": "1",
    "page": "nothing",
}
#: members of queries that name something of a person, by the variable that does
IN_QUERY = {
    "connector_id": "connector_id",
    "connector": "connector_id",
    "job_id": "job_id",
    "target": "job_id",
    "actor": "person_id",
    "requested_by": "person_id",
}
#: members of bodies that do
IN_BODY = {"connector_id": "connector_id", "owner": "person_id", "person_id": "person_id"}
#: what administrators, approvers and the acting client do with the things of a person
ADMINISTERED = {
    ("DELETE", f"{CONNECTORS}/{{connector_id}}"),
    ("GET", "/api/v1/people/{person_id}"),
    ("PATCH", "/api/v1/people/{person_id}"),
    ("DELETE", "/api/v1/people/{person_id}"),
    ("GET", "/scim/v2/Users/{user_id}"),
    ("PUT", "/scim/v2/Users/{user_id}"),
    ("PATCH", "/scim/v2/Users/{user_id}"),
    ("DELETE", "/scim/v2/Users/{user_id}"),
    ("DELETE", "/api/v1/sessions/{person_session_id}"),
    ("DELETE", "/api/v1/grants/{grant_id}"),
    ("GET", "/api/v1/approvals/{approval_id}"),
    ("POST", "/api/v1/approvals/{approval_id}/approve"),
    ("POST", "/api/v1/approvals/{approval_id}/deny"),
    # created for the person
    ("POST", CONNECTORS),
    ("POST", f"{CONNECTORS}/oauth/initiate"),
    ("POST", "/api/v1/connect/sessions"),
    ("POST", "/api/v1/sessions"),
    ("PUT", "/api/v1/budgets/{name}"),
    ("POST", "/api/v1/policies/check"),
    # pages of the console
    ("GET", "/console/people/{person_id}"),
    ("POST", "/console/people/{person_id}"),
    ("POST", "/console/people/{person_id}/status"),
    ("POST", "/console/people/{person_id}/delete"),
    ("POST", "/console/sessions/{person_session_id}/end"),
    ("POST", "/console/grants/{grant_id}/revoke"),
    ("GET", "/console/approvals/{approval_id}"),
    ("POST", "/console/approvals/{approval_id}"),
    ("POST", "/console/connectors/{connector_id}/delete"),
    ("GET", "/console/connectors/{connector_id}"),
    ("POST", "/console/connectors/{connector_id}"),
}
POLICY = """
    permit(principal, action, resource) unless {{ resource == Connector::"{own}" }};
    permit(principal, action in Action::"read", resource);
    @id("ask") @approval("Ask first.")
    permit(principal, action in [Action::"write", Action::"idempotent"], resource == Connector::"{own}");
"""
UPDATE = {"entity": "tickets", "action": "update", "params": {"ticket_id": 1, "ticket": {"status": "solved"}}}
#: members of responses that differ from request to request
_CHANGING = re.compile(
    r'"[a-z_]*_ms":\d+|[0-9a-f]{32,64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)|'
    r"[A-Za-z0-9_-]{43}"
)


@dataclass(frozen=True)
class World:
    """Ada with one of everything, and the others."""

    front: FrontEnd
    ada: Belongings
    #: variable → the id of Ada's
    ids: Mapping[str, str]
    #: the connector to which Ada's upload goes
    drive: str
    #: those for whom nothing of Ada's exists
    strangers: Mapping[str, Api]
    administrator: Api
    #: Ada, acted for by another client
    by_another: Api
    #: Ada, in a session for one other connector
    narrowed: Api
    #: tokens that are good for nothing
    ended: Mapping[str, Api]
    #: those who look at lists: an audit log has the ids that its own clients have sent
    listing: Mapping[str, Api]
    #: the console, in which other people and an administrator are signed in
    other_browser: Api
    quiet_browser: Api
    browser: Api

    async def state(self) -> list[tuple[int, Any]]:
        """Ada's things as Ada sees them."""
        paths = ("/api/v1/schedules/{schedule_id}", "/api/v1/webhooks/{webhook_id}", "/api/v1/jobs/{job_id}")
        more = (f"{CONNECTORS}/{{connector_id}}", "/api/v1/connect/sessions/{session_id}", "/api/v1/jobs/{approved}")
        answers = [await self.ada.api.get(path.format(**self.ids)) for path in (*paths, *more)]
        return [(each.status, each.json()) for each in answers]


async def person(administrator: Api, **members: object) -> dict:
    body = {"scopes": ["read", "write", "delegate"], "workspaces": None, "groups": [STAFF], **members}
    return (await administrator.post("/api/v1/people", body)).document(201)


async def token_api(front: FrontEnd, administrator: Api, client_id: str) -> Api:
    token = new_secret()
    await front.services.identity.save_token(hashed(token), UUID(client_id), 900)
    return Api(administrator.session, {"Authorization": f"Bearer {token}"})


async def console_of(front: FrontEnd, administrator: Api, client_id: str) -> Api:
    """A browser in which the client is signed in; forms are sent with its token."""
    cookie = await front.access.console_sessions.begin(await caller_of(front, {"id": client_id}))
    return Api(administrator.session, {"Cookie": f"gateway-console={cookie}"})


@asynccontextmanager
async def opened_world(front: FrontEnd) -> AsyncIterator[World]:
    organization_id = await front.organization()
    async with (
        front.api(organization_id) as administrator,
        front.api() as outsider,
        front.api() as bystander,
    ):
        await administrator.call("PUT", f"/api/v1/groups/{STAFF}", json={"workspaces": None, "scopes": []})
        await administrator.call("PUT", "/api/v1/oauth/credentials", json=OAUTH_APP)
        new = await person(administrator)
        await front.services.identity.change_redirect_urls(UUID(new["id"]), [REDIRECT_URL])
        ada = await belongings_of(front, organization_id, administrator, new, MARK)
        other, quiet = await person(administrator), await person(administrator)
        reader_id, _ = await front.client(organization_id, ["read", "write"])
        admin_id, _ = await front.client(organization_id)
        (await connected(administrator, None)).document(201)
        drive = (
            await connected(ada.api, "me", connector_type="google-drive", credentials=DRIVE, name="Drive")
        ).document(201)
        headers = {"Upload-Complete": "?0", "Upload-Length": "100"}
        upload = await ada.api.call(
            "POST", f"{CONNECTORS}/{drive['id']}/upload/files_upload", params=UPLOAD, headers=headers
        )
        consent = {"workspace_name": "acme", "connector_type": "Team-Chat", "redirect_url": REDIRECT_URL, "owner": "me"}
        flow = (await ada.api.post(f"{CONNECTORS}/oauth/initiate", consent)).document()
        policy = {"cedar": POLICY.format(own=ada.own["id"]), "mode": "enforce"}
        (await administrator.call("PUT", "/api/v1/policies/main", json=policy)).document()
        asked = (await ada.api.post(f"{CONNECTORS}/{ada.own['id']}/execute", UPDATE)).document(202)["job"]
        await ada.api.post(f"{CONNECTORS}/{ada.own['id']}/execute", LIST)
        await run_jobs(front)
        approved = (await ada.api.get(f"/api/v1/jobs/{asked['id']}")).document()
        grants = (await administrator.get("/api/v1/grants")).document()["data"]
        another = await acting_for(front, organization_id, administrator, [STAFF])
        narrowed = await session_of(ada.program, ada.person, connectors=[drive["id"]], effects=["read"])
        revoked = await session_of(ada.program, ada.person)
        await ada.program.call("DELETE", f"/api/v1/sessions/{revoked['id']}")
        expired = await session_of(ada.program, ada.person)
        async with front.services.database.system() as connection:
            past = "SET expires_at = now() - interval '1 second' WHERE"
            await connection.execute(f"UPDATE person_sessions {past} id = $1", UUID(expired["id"]))
            await connection.execute(f"UPDATE tokens {past} session_id = $1", UUID(expired["id"]))
            await connection.execute(USED, organization_id, UUID(ada.person["id"]))
        ids = {
            "connector_id": ada.own["id"],
            "job_id": ada.job["id"],
            "schedule_id": ada.schedule["id"],
            "webhook_id": ada.webhook["id"],
            "session_id": ada.link["id"],
            "flow_id": flow["flow_id"],
            "upload_id": upload.headers["Location"].rpartition("/")[2],
            "person_session_id": ada.session["id"],
            "approval_id": approved["approval"]["id"],
            "grant_id": grants[0]["id"],
            "person_id": ada.person["id"],
            "user_id": ada.person["id"],
            "event_id": "1",
            "approved": asked["id"],
        }

        def by_token(token: str) -> Api:
            return Api(administrator.session, {"Authorization": f"Bearer {token}"})

        async def is_recorded() -> bool:
            listed = [await ada.api.get("/api/v1/requests"), await administrator.get("/api/v1/audit?operation=batch")]
            found = (await administrator.get(f"/api/v1/audit?connector_id={ada.own['id']}")).document()["data"]
            return bool(listed[0].document()["data"]) and {"tickets.list"} <= {each["what"] for each in found}

        await eventually(is_recorded)
        strangers = {
            "another person": await token_api(front, administrator, other["id"]),
            "another person by the same client": by_token((await session_of(ada.program, other))["token"]),
            "a client without delegate": await token_api(front, administrator, reader_id),
            "the client that acts": ada.program,
            "an administrator of another organization": outsider,
        }
        yield World(
            front=front,
            ada=ada,
            ids=ids,
            drive=drive["id"],
            strangers=strangers,
            listing={**strangers, "an administrator of another organization": bystander},
            administrator=administrator,
            by_another=by_token((await session_of(another, ada.person))["token"]),
            narrowed=by_token(narrowed["token"]),
            ended={"expired": by_token(expired["token"]), "revoked": by_token(revoked["token"])},
            quiet_browser=await console_of(front, administrator, quiet["id"]),
            other_browser=await console_of(front, administrator, other["id"]),
            browser=await console_of(front, administrator, admin_id),
        )


# Usage for billing is published after its hour.
USED = """
    INSERT INTO usage_events (id, organization_id, hour, client_id, person_id, workspace_name, writes, succeeded,
                              failed, unknown)
    VALUES (gen_random_uuid(), $1, date_trunc('hour', now()) - interval '1 hour', $2, $2, 'acme', 1, 1, 0, 0)
"""


@pytest.fixture(scope="module")
async def world(front: FrontEnd) -> AsyncIterator[World]:
    """One for all tests, because strangers change nothing; each test looks whether that is so."""
    async with opened_world(front) as opened:
        yield opened


@pytest.fixture
async def own_world(front: FrontEnd) -> AsyncIterator[World]:
    """One for a test that changes Ada's things."""
    async with opened_world(front) as opened:
        yield opened


# Requests


@dataclass(frozen=True)
class Walk:
    """A request to a route that may name something of a person: in its path, one member of its query, or its body."""

    route: Route
    #: the member of the query that names something
    member: str | None = None
    #: a member of the query and one of its values
    option: tuple[str, str] | None = None

    def __str__(self) -> str:
        query = f"?{self.member}" if self.member else f"?{'='.join(self.option)}" if self.option else ""
        return f"{self.route.method} {self.route.path}{query}"

    @property
    def variables(self) -> set[str]:
        """The variables of the path."""
        return set(re.findall(r"{(\w+)(?::[^}]*)?}", self.route.path))

    @property
    def names(self) -> set[str]:
        """What of a person the request names, by the variable."""
        in_query = {IN_QUERY[self.member]} if self.member else set()
        in_body = {each for each in ("connector_id", "person_id") if self.route.body and _marker(each) in self._body()}
        return (self.variables & PERSONAL) | in_query | in_body

    async def send(self, api: Api, front: FrontEnd, ids: Mapping[str, str]) -> Answer:
        """The response to the request with these ids."""
        route, path = self.route, re.sub(r"{(\w+)(?::[^}]*)?}", lambda found: _value(found[1], ids), self.route.path)
        if self.member or self.option:
            path += f"?{urlencode([self.option or (str(self.member), ids[IN_QUERY[str(self.member)]])])}"
        if route.is_page:
            return await _opened(api, front, route, path)
        if route.file_media:
            headers = {"Content-Type": route.file_media, "Upload-Offset": "0", "Upload-Complete": "?1"}
            return await _sent(api, route.method, path, data=b"x", headers=headers)
        if route.body is None:
            return await _sent(api, route.method, path)
        return await _sent(api, route.method, path, json=json.loads(_filled(self._body(), ids)))

    def _body(self) -> str:
        """The example of the route's body, with the ids of a person wherever the body may have them."""
        body = self.route.body
        examples = getattr(body, "EXAMPLES", {})
        example = dict(next(iter(examples.values()), {}))
        fields = set(getattr(body, "model_fields", ()))
        named = {name: _marker(variable) for name, variable in IN_BODY.items() if name in fields}
        if "person" in fields:
            named["person"] = {"id": _marker("person_id")}
        if "cases" in example:
            named["cases"] = [{**each, "person": _marker("person_id")} for each in example["cases"]]
        if "connectors" in fields:
            named["connectors"] = [_marker("connector_id")]
        return json.dumps({**example, **named})


def _marker(variable: str) -> str:
    return f"<{variable}>"


def _filled(text: str, ids: Mapping[str, str]) -> str:
    for name in ("connector_id", "person_id"):
        text = text.replace(_marker(name), ids[name])
    return text


def _value(variable: str, ids: Mapping[str, str]) -> str:
    return ids[variable] if variable in PERSONAL else COMMON[variable]


async def _sent(api: Api, method: str, path: str, **options: Any) -> Answer:
    """The response, which the OpenAPI document describes elsewhere: here it may be to a faulty request."""
    headers = {**api.headers, **options.pop("headers", {})}
    timeout = aiohttp.ClientTimeout(total=20)
    async with api.session.request(
        method, path, headers=headers, allow_redirects=False, timeout=timeout, **options
    ) as response:
        if response.content_type == "text/event-stream":
            return Answer(response.status, response.headers, b"")  # it has no end
        return Answer(response.status, response.headers, await response.read())


async def _opened(api: Api, front: FrontEnd, route: Route, path: str) -> Answer:
    """The page, or the response to its form."""
    if route.method == "GET":
        return await _sent(api, "GET", path)
    cookie = api.headers["Cookie"].partition("=")[2]
    return await _sent(api, "POST", path, data={"csrf": front.access.console_sessions.csrf_token(cookie)})


def told(answer: Answer, ids: Mapping[str, str]) -> tuple[int, str | None, str]:
    """What a caller learns by a response, without the ids that it sent itself and without what always changes."""
    text, location = answer.body.decode(errors="replace"), answer.headers.get("Location")
    for name, id_ in ids.items():
        if name == "event_id":
            continue
        text, location = text.replace(id_, name), location and location.replace(id_, name)
    return answer.status, location and _CHANGING.sub("…", location), _CHANGING.sub("…", text)


def options_of(route: Route) -> Iterator[tuple[str, str]]:
    """Each value of the members of the query that have a closed list of values."""
    for name, field in (route.query.model_fields if route.query else {}).items():
        for each in (field.annotation, *get_args(field.annotation)):
            if get_origin(each) is Literal:
                yield from ((name, str(value)) for value in get_args(each))
            elif isinstance(each, type) and issubclass(each, Enum):
                yield from ((name, str(member.value)) for member in each)
            elif get_origin(each) in (Union, UnionType):
                continue


CLOSED = [route for route in ROUTES if not route.is_open]
API = [route for route in CLOSED if not route.is_page]
PAGES = [route for route in CLOSED if route.is_page]
WALKS = [
    Walk(route, member)
    for route in API
    for member in (None, *(route.query.model_fields if route.query else ()))
    if member is None or member in IN_QUERY
]
NAMING = [each for each in WALKS if each.names]
PAGES_NAMING = [Walk(route) for route in PAGES if Walk(route).names]
LISTS = [
    Walk(route, option=option)
    for route in API
    if route.method == "GET" and not Walk(route).variables & PERSONAL and not route.is_stream
    for option in (None, *options_of(route))
]
PAGE_LISTS = [Walk(route) for route in PAGES if route.method == "GET" and not Walk(route).variables & PERSONAL]


def unknown(world: World, names: set[str]) -> dict[str, str]:
    """The ids, of which these are nobody's."""
    return {**ids_of(world, names), **{name: str(uuid4()) for name in names if name != "event_id"}}


def ids_of(world: World, names: set[str]) -> dict[str, str]:
    """Ada's ids; her upload goes to another connector than her calls."""
    return {**world.ids, "connector_id": world.drive} if "upload_id" in names else dict(world.ids)


async def learned(world: World, walk: Walk, api: Api, names: set[str]) -> tuple[Any, Any]:
    """What the caller is told about Ada's things, and about things that do not exist."""
    theirs, nobodys = ids_of(world, walk.names), unknown(world, names)
    nobodys = {**nobodys, **({"connector_id": world.drive} if "upload_id" in walk.names - names else {})}
    known, missing = await walk.send(api, world.front, theirs), await walk.send(api, world.front, nobodys)
    return told(known, theirs), told(missing, nobodys)


# What strangers learn


def test_every_variable_of_a_path_is_known():
    """A variable that names something of a person belongs into PERSONAL, with an id of Ada's; another into COMMON."""
    assert {name for route in CLOSED for name in Walk(route).variables} <= PERSONAL | COMMON.keys()


@pytest.mark.parametrize("walk", NAMING, ids=str)
async def test_what_belongs_to_a_person_does_not_exist_for_strangers(world: World, walk: Walk):
    before = await world.state()

    strangers = world.listing if walk.member else world.strangers
    for name, api in strangers.items():
        if name == "the client that acts" and (walk.route.method, walk.route.path) in ADMINISTERED:
            continue
        theirs, nobodys = await learned(world, walk, api, walk.names)
        assert theirs == nobodys, name
    assert await world.state() == before


@pytest.mark.parametrize("walk", NAMING, ids=str)
async def test_an_administrator_uses_nothing_of_a_person(world: World, walk: Walk):
    if (walk.route.method, walk.route.path) in ADMINISTERED or walk.member:
        return
    before = await world.state()

    theirs, nobodys = await learned(world, walk, world.administrator, walk.names)

    assert theirs == nobodys or theirs[0] == 403, theirs
    assert theirs == nobodys or walk.route.method == "HEAD" or json.loads(theirs[2])["code"] == "personal_connector"
    assert await world.state() == before


@pytest.mark.parametrize("walk", NAMING, ids=str)
async def test_another_clients_session_for_the_person_has_the_connectors_and_nothing_else(world: World, walk: Walk):
    names = walk.names - {"connector_id", "person_id"}
    if not names:
        return
    before = await world.state()

    theirs, nobodys = await learned(world, walk, world.by_another, names)

    assert theirs == nobodys
    assert await world.state() == before


@pytest.mark.parametrize("walk", [each for each in NAMING if "upload_id" not in each.names], ids=str)
async def test_a_narrowed_session_has_what_it_was_given_and_nothing_else(world: World, walk: Walk):
    before = await world.state()

    theirs, nobodys = await learned(world, walk, world.narrowed, walk.names - {"person_id"})

    assert theirs == nobodys
    assert await world.state() == before


@pytest.mark.parametrize("route", API, ids=lambda route: f"{route.method} {route.path}")
async def test_a_token_of_an_ended_session_is_good_for_nothing(world: World, route: Route):
    for name, api in world.ended.items():
        answer = await Walk(route).send(api, world.front, world.ids)
        assert answer.status == 401, name


@pytest.mark.parametrize("walk", LISTS, ids=str)
async def test_no_list_shows_what_belongs_to_a_person(world: World, walk: Walk):
    secrets = {MARK, world.drive, *(each for name, each in world.ids.items() if name != "event_id")}

    for name, api in world.listing.items():
        # Its sessions, of which one is for this connector.
        own = {world.ids["person_session_id"], world.ids["person_id"], world.drive}
        own = own if name == "the client that acts" else set()
        text = (await walk.send(api, world.front, world.ids)).body.decode(errors="replace")
        assert {each for each in secrets - own if each in text} == set(), name
    assert MARK not in (await walk.send(world.administrator, world.front, world.ids)).body.decode(errors="replace")


# A client reads the whole stream until an event that it may see.
async def test_the_stream_of_events_has_nothing_that_belongs_to_a_person(world: World):
    last = (await connected(world.administrator, None, name="The last one")).document(201)["id"]
    for name in ("another person", "a client without delegate"):
        headers = world.strangers[name].headers
        async with world.administrator.session.get("/api/v1/events/stream?after=0", headers=headers) as response:
            text = ""
            while last not in text:
                text += (await response.content.readline()).decode()
        assert {each for each in (MARK, world.ids["connector_id"], world.ids["job_id"]) if each in text} == set(), name


@pytest.mark.parametrize("walk", PAGES_NAMING, ids=str)
async def test_pages_of_what_belongs_to_a_person_do_not_exist_for_others(world: World, walk: Walk):
    before = await world.state()

    theirs, nobodys = await learned(world, walk, world.other_browser, walk.names)
    assert theirs == nobodys
    if (walk.route.method, walk.route.path) not in ADMINISTERED:
        theirs, nobodys = await learned(world, walk, world.browser, walk.names)
        assert theirs == nobodys or theirs[0] == 403, theirs
    assert await world.state() == before


@pytest.mark.parametrize("walk", PAGE_LISTS, ids=str)
async def test_no_page_shows_what_belongs_to_a_person(world: World, walk: Walk):
    secrets = {MARK, world.drive, *(each for name, each in world.ids.items() if name != "event_id")}

    text = (await walk.send(world.quiet_browser, world.front, world.ids)).body.decode()
    assert {each for each in secrets if each in text} == set()
    assert MARK not in (await walk.send(world.browser, world.front, world.ids)).body.decode()


# What the person sees: the ids above are those of things that exist


@pytest.mark.parametrize("walk", [each for each in NAMING if each.route.method == "GET" and not each.member], ids=str)
async def test_the_person_reaches_what_is_the_persons(world: World, walk: Walk):
    ids = ids_of(world, walk.names)
    answer = await walk.send(world.ada.api, world.front, ids)

    assert answer.status != 404 or walk.route.path.endswith("/hook"), answer.body


# Tools of agents


AGENTS = [
    ("read", {"operation": "support-desk.tickets.list", "params": {"per_page": 1}, "connector": "{connector_id}"}),
    ("write", {"operation": "support-desk.tickets.update", "params": UPDATE["params"], "connector": "{connector_id}"}),
    ("connect", {"connector": "{connector_id}"}),
    ("job", {"job_id": "{job_id}"}),
    ("job", {"job_id": "{job_id}", "do": "cancel"}),
    ("job", {"job_id": "{job_id}", "do": "retry"}),
]


@pytest.mark.parametrize(("tool", "arguments"), AGENTS)
async def test_tools_of_agents_have_nothing_of_another_person(world: World, tool: str, arguments: dict[str, Any]):
    async def result(api: Api, ids: Mapping[str, str]) -> tuple[Any, ...]:
        filled = {name: each.format(**ids) if isinstance(each, str) else each for name, each in arguments.items()}
        async with aiohttp.ClientSession(headers=api.headers) as session:
            reply = await Raw(session, f"{world.front.base_url}/mcp")("tools/call", {"name": tool, "arguments": filled})
        return told(Answer(reply.status, {}, json.dumps(reply.document).encode()), ids)

    nobodys = {name: str(uuid4()) for name in world.ids}
    for name, api in {**world.strangers, "narrowed": world.narrowed}.items():
        assert await result(api, world.ids) == await result(api, nobodys), name
    assert await result(world.ada.api, world.ids) != await result(world.ada.api, nobodys)
