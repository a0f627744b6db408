"""Sessions and issuers in the console: who acts for whom, and whose tokens are trusted."""

import re
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from tests.harness.caller import Api
from tests.harness.console import ConsoleBrowser
from tests.harness.in_process import FrontEnd
from tests.web.console.test_people import sent, shown
from tests.web.test_people import called
from tests.web.test_personal_connectors import CONNECTORS

SESSIONS, ISSUERS = "/console/sessions", "/console/issuers"
PROVIDER = {"issuer": "https://login.example.com", "audience": "company-app"}


@pytest.fixture
async def program(front: FrontEnd, organization_id: UUID) -> AsyncIterator[Api]:
    """A client that acts for the users of its product."""
    client_id, secret = await front.client(organization_id, ["read", "write", "delegate"])
    async with Api.of(front.base_url, client_id, secret) as opened:
        yield opened


async def opened(api: Api, subject: str, **members: object) -> dict:
    return (await api.post("/api/v1/sessions", {"person": {"subject": subject}, **members})).document(201)


def ids(page: str) -> list[str]:
    """The sessions of the table."""
    return re.findall(r'action="/console/sessions/([0-9a-f-]{36})/end"', page)


async def test_sessions_are_listed_with_what_they_may_do_in_pages_of_25(browser: ConsoleBrowser, program: Api):
    narrowed = await opened(
        program,
        "<user>",
        tools={"allow": ["support-desk.*"], "deny": ["*.delete*"]},
        effects=["read"],
        budget={"per": "day", "calls": 5},
        connectors=[],
    )
    others = [(await opened(program, f"user-{number}"))["id"] for number in range(25)]

    first = await shown(browser, SESSIONS)
    [more] = re.findall(r'href="(\?cursor=[^"]+)"', first)
    second = await shown(browser, SESSIONS + more)

    assert ids(first) == others[::-1]
    assert ids(second) == [narrowed["id"]]
    limits = (
        "only support-desk.*",
        "never *.delete*",
        "effects: read",
        "with a budget for each day",
        "0 connectors only",
    )
    assert all(words in second for words in ("&lt;user&gt;", *limits))


async def test_a_session_ends_with_those_that_were_opened_in_it(
    front: FrontEnd, browser: ConsoleBrowser, api: Api, program: Api
):
    outer, other = await opened(program, "user-7"), await opened(program, "user-8")
    within = Api(api.session, {"Authorization": f"Bearer {outer['token']}"})
    inner = (await within.post("/api/v1/sessions", {"effects": ["read"]})).document(201)
    assert "within another session" in await shown(browser, SESSIONS)

    answer = await sent(browser, f"{SESSIONS}/{outer['id']}/end")

    statuses = [await called(front.base_url, each["token"], path=CONNECTORS) for each in (outer, inner, other)]
    assert (answer.status, answer.headers["Location"]) == (303, SESSIONS)
    assert statuses == [401, 401, 200]
    assert ids(await shown(browser, SESSIONS)) == [other["id"]]


async def test_the_page_of_the_person_is_shown_again_after_its_form(browser: ConsoleBrowser, program: Api):
    session = await opened(program, "user-7")

    answer = await sent(browser, f"{SESSIONS}/{session['id']}/end", **{"from": "person"})

    assert answer.headers["Location"] == f"/console/people/{session['person']['id']}"


async def test_another_organization_sees_no_session(front: FrontEnd, stranger: ConsoleBrowser, program: Api):
    session = await opened(program, "user-7")

    ended = await sent(stranger, f"{SESSIONS}/{session['id']}/end")

    assert ended.status == 404
    assert ids(await shown(stranger, SESSIONS)) == []
    assert await called(front.base_url, session["token"], path=CONNECTORS) == 200


async def test_an_issuer_is_trusted_listed_and_trusted_no_longer(
    front: FrontEnd, browser: ConsoleBrowser, stranger: ConsoleBrowser, organization_id: UUID, api: Api
):
    client_id, _ = await front.client(organization_id, ["delegate"])
    more = {"client_ids": f"{client_id}\r\n", "groups_claim": "groups", "create_people": "on"}

    added = await sent(browser, ISSUERS, **PROVIDER, **more)
    [issuer] = (await api.get("/api/v1/issuers")).document()["data"]
    page, foreign = await shown(browser, ISSUERS), await shown(stranger, ISSUERS)
    path = f"{ISSUERS}/{issuer['id']}/delete"
    by_stranger = await sent(stranger, path)
    kept = (await api.get("/api/v1/issuers")).document()["data"]
    ended = await sent(browser, path)

    rest = {"client_ids": [client_id], "groups_claim": "groups", "create_people": True}
    assert {name: issuer[name] for name in (*PROVIDER, *rest)} == {**PROVIDER, **rest}
    assert (added.status, by_stranger.status, ended.status) == (303, 404, 303)
    assert all(each in page for each in ("https://login.example.com", "<td>test</td>", "are added"))
    assert "https://login.example.com</th>" not in foreign
    assert (len(kept), (await api.get("/api/v1/issuers")).document()["data"]) == (1, [])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"issuer": "http://login.example.com"}, "issuer: must be an https URL"),
        ({"audience": ""}, "audience: must be 1 to 255 printable characters"),
        ({"client_ids": "no id"}, "write up to 1000 ids of clients, one per line"),
        ({"client_ids": "6f1d7b8c-0000-4000-8000-000000000000"}, "the organization has no client 6f1d7b8c"),
    ],
)
async def test_a_refused_issuer_keeps_the_form(browser: ConsoleBrowser, api: Api, fields: dict[str, str], words: str):
    answer = await sent(browser, ISSUERS, **{**PROVIDER, **fields, "groups_claim": "<roles>"})

    page = answer.body.decode()
    assert answer.status == 422
    assert words in page
    assert 'value="&lt;roles&gt;"' in page
    assert (await api.get("/api/v1/issuers")).document()["data"] == []
