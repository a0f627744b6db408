"""The page of a person: own applications, who acts for the person, and what was done; nothing of anybody else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID, uuid4

import aiohttp
import pytest

from gateway.access.identity.model import Caller
from gateway.contract.oauth import NewGrant
from tests.harness.caller import Api
from tests.harness.console import ConsoleBrowser, new_browser, signed_in
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import eventually
from tests.web.test_personal_connectors import CONNECTORS, connected, person_of

PAGE, SESSIONS = "/console/me", "/api/v1/sessions"
LIST = {"entity": "tickets", "action": "list", "params": {"per_page": 1}}


@dataclass(frozen=True)
class Desk:
    """A person in a browser, another person, and a program that may act for both."""

    front: FrontEnd
    admin: Api
    program: Api
    person_id: str
    person: Api
    browser: ConsoleBrowser
    other_id: str
    other: Api
    other_browser: ConsoleBrowser

    async def session(self, person_id: str) -> dict:
        return (await self.program.post(SESSIONS, {"person": {"id": person_id}})).document(201)

    async def page(self) -> str:
        answer = await self.browser.get(PAGE)
        assert answer.status == 200
        return answer.body.decode()

    async def send(self, path: str, browser: ConsoleBrowser | None = None) -> int:
        used = browser or self.browser
        return (await used.send(f"{PAGE}{path}", csrf=await used.csrf())).status

    def of(self, session: dict) -> Api:
        return Api(self.admin.session, {"Authorization": f"Bearer {session['token']}"})


@asynccontextmanager
async def browser_of(front: FrontEnd, person_id: str, organization_id: UUID) -> AsyncIterator[ConsoleBrowser]:
    """A browser in which the person is signed in."""
    caller = await front.services.identity.caller(UUID(person_id), organization_id)
    assert caller is not None
    token = await front.access.console_sessions.begin(caller)
    async with aiohttp.ClientSession(front.base_url, cookies={"gateway-console": token}) as session:
        yield ConsoleBrowser(session)


@pytest.fixture
async def desk(front: FrontEnd) -> AsyncIterator[Desk]:
    organization_id = await front.organization()
    program_id, secret = await front.client(organization_id, ["read", "write", "delegate"])
    async with front.api(organization_id) as admin, Api.of(front.base_url, program_id, secret) as program:
        rights = {"workspaces": None, "scopes": []}
        await admin.call("PUT", "/api/v1/groups/staff", json=rights)
        await admin.call("PATCH", f"/api/v1/clients/{program_id}", json={"delegate_for": ["staff"]})
        person_id, person = await person_of(front, admin, ["read", "write"], groups=["staff"])
        other_id, other = await person_of(front, admin, ["read", "write", "admin"], groups=["staff"])
        async with (
            browser_of(front, person_id, organization_id) as browser,
            browser_of(front, other_id, organization_id) as other_browser,
        ):
            yield Desk(front, admin, program, person_id, person, browser, other_id, other, other_browser)


async def granted(desk: Desk, person_id: str) -> str:
    """The id of a grant that the person gave a host."""
    client = await desk.front.services.identity.enabled_client(UUID(person_id))
    assert client is not None
    caller = Caller(client, next(iter(client.organization_ids)))
    await desk.front.granted(caller, NewGrant(scopes=("read",), workspaces=None))
    found = await desk.front.access.authorization.own_grants(caller, 1)
    return found[0].id


async def test_a_person_sees_own_applications_and_who_acts_and_nothing_of_others(desk: Desk):
    own = (await connected(desk.person, "me", name="My mail")).document(201)
    await connected(desk.other, "me", name="Foreign mail")
    await connected(desk.admin, None, name="Shared mail")
    session, foreign = await desk.session(desk.person_id), await desk.session(desk.other_id)
    grant, foreign_grant = await granted(desk, desk.person_id), await granted(desk, desk.other_id)
    await desk.of(session).post(f"{CONNECTORS}/{own['id']}/execute", LIST)

    async def shows_the_call() -> bool:
        return "tickets.list" in await desk.page()

    await eventually(shows_the_call)
    page = await desk.page()
    assert "My mail" in page
    assert session["id"] in page
    assert grant in page
    for absent in ("Foreign mail", "Shared mail", foreign["id"], foreign_grant):
        assert absent not in page


async def test_an_administrator_sees_own_matters_only_on_this_page(desk: Desk):
    session, own = await desk.session(desk.person_id), await desk.session(desk.other_id)
    page = (await desk.other_browser.get(PAGE)).body.decode()

    assert own["id"] in page
    assert session["id"] not in page


async def test_a_person_stops_a_client_that_acts(desk: Desk):
    session = await desk.session(desk.person_id)
    foreign = await desk.session(desk.other_id)

    assert await desk.send(f"/sessions/{session['id']}/end") == 303
    assert await desk.send(f"/sessions/{foreign['id']}/end") == 404
    assert await desk.send(f"/sessions/{session['id']}/end", desk.other_browser) == 404
    assert (await desk.of(session).get(CONNECTORS)).status == 401
    assert (await desk.of(foreign).get(CONNECTORS)).status == 200


async def test_a_person_stops_a_host(desk: Desk):
    own, foreign = await granted(desk, desk.person_id), await granted(desk, desk.other_id)

    assert await desk.send(f"/grants/{foreign}/revoke") == 404
    assert await desk.send(f"/grants/{own}/revoke", desk.other_browser) == 404
    assert await desk.send(f"/grants/{own}/revoke") == 303
    assert own not in await desk.page()


async def test_a_person_disconnects_own_applications_only(desk: Desk):
    own = (await connected(desk.person, "me", name="My mail")).document(201)
    shared = (await connected(desk.admin, None, name="Shared mail")).document(201)
    foreign = (await connected(desk.other, "me", name="Foreign mail")).document(201)

    assert await desk.send(f"/connectors/{shared['id']}/disconnect") == 404
    assert await desk.send(f"/connectors/{foreign['id']}/disconnect") == 404
    assert await desk.send(f"/connectors/{own['id']}/disconnect", desk.other_browser) in (403, 404)
    assert await desk.send(f"/connectors/{own['id']}/disconnect") == 303
    assert (await desk.person.get(f"{CONNECTORS}/{own['id']}")).status == 404
    assert (await desk.person.get(f"{CONNECTORS}/{shared['id']}")).status == 200


async def test_a_person_connects_an_own_application(desk: Desk):
    answer = await desk.browser.send(f"{PAGE}/connect", csrf=await desk.browser.csrf())
    link = await desk.front.services.connectors.links.open(answer.headers["Location"].rpartition("/")[2])

    assert answer.status == 303
    assert str(link.owner_id) == desk.person_id


async def test_a_person_who_only_reads_connects_nothing_and_stops_agents(desk: Desk):
    reader_id, _ = await person_of(desk.front, desk.admin, ["read"], groups=["staff"])
    session = await desk.session(reader_id)
    organization_id = next(iter((await desk.front.services.identity.enabled_client(UUID(reader_id))).organization_ids))
    async with browser_of(desk.front, reader_id, organization_id) as browser:
        page = (await browser.get(PAGE)).body.decode()
        connect = await desk.send("/connect", browser)
        stop = await desk.send(f"/sessions/{session['id']}/end", browser)

    assert "Connect an application" not in page
    assert (connect, stop) == (403, 303)


async def test_the_forms_need_the_token_of_the_browsers_session(desk: Desk):
    session = await desk.session(desk.person_id)
    for path in ("/connect", f"/sessions/{session['id']}/end", f"/grants/{uuid4()}/revoke"):
        assert (await desk.browser.send(f"{PAGE}{path}", csrf="foreign")).status == 403

    assert (await desk.of(session).get(CONNECTORS)).status == 200


async def test_the_short_address_leads_to_the_page(front: FrontEnd):
    async with new_browser(front) as stranger:
        short, page = await stranger.get("/me"), await stranger.get(PAGE)

    assert (short.status, short.headers["Location"]) == (303, PAGE)
    assert page.headers["Location"] == f"/console/sign-in?next={PAGE}"


async def test_a_program_has_no_such_page(front: FrontEnd):
    async with signed_in(front, *await front.client()) as browser:
        answer = await browser.get(PAGE)

    assert b"This page is for people" in answer.body
    assert b"My access</a>" not in answer.body
