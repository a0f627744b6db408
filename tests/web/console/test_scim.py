"""The SCIM tokens of providers in the console: shown once, revoked, and of one organization."""

import re
from uuid import UUID, uuid4

import pytest

from tests.harness.caller import Api
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import eventually
from tests.web.console.test_people import sent, shown
from tests.web.test_people import called

SCIM, USERS = "/console/scim", "/scim/v2/Users"
OKTA = {"name": "Okta <1>", "issuer": "https://acme.okta.com", "subject": "userName"}


async def created(browser: ConsoleBrowser) -> str:
    """A new token, which its page shows."""
    page = (await sent(browser, SCIM, **OKTA)).body.decode()
    [token] = re.findall(r"token <code>([\w-]+)</code>", page)
    return token


async def test_a_token_is_shown_once_works_and_is_revoked(front: FrontEnd, browser: ConsoleBrowser, api: Api):
    token = await created(browser)
    [listed] = (await api.get("/api/v1/scim/tokens")).document()["data"]
    page, before = await shown(browser, SCIM), await called(front.base_url, token, path=USERS)
    answer = await sent(browser, f"{SCIM}/{listed['id']}/revoke")

    async def is_revoked() -> bool:
        return await called(front.base_url, token, path=USERS) == 401

    assert {name: listed[name] for name in OKTA} == OKTA
    assert "Okta &lt;1&gt;" in page
    assert token not in page
    assert (before, answer.status) == (200, 303)
    await eventually(is_revoked)
    assert "No provider has a token." in await shown(browser, SCIM)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": ""}, "name"),
        ({"issuer": "http://acme.okta.com"}, "issuer: must be an https URL"),
        ({"subject": "email"}, "subject: choose externalId or userName"),
    ],
)
async def test_a_refused_token_keeps_the_form(browser: ConsoleBrowser, api: Api, fields: dict[str, str], words: str):
    form = {**OKTA, **fields}

    answer = await sent(browser, SCIM, **form)

    assert answer.status == 422
    assert words in answer.body.decode()
    assert f'value="{form["issuer"]}"' in answer.body.decode()
    assert (await api.get("/api/v1/scim/tokens")).document()["data"] == []


async def test_another_organization_sees_no_token(front: FrontEnd, browser: ConsoleBrowser, stranger, api: Api):
    token = await created(browser)
    [listed] = (await api.get("/api/v1/scim/tokens")).document()["data"]

    revoked = await sent(stranger, f"{SCIM}/{listed['id']}/revoke")

    assert revoked.status == 404
    assert "Okta" not in (await shown(stranger, SCIM)).partition("<table>")[2]
    assert await called(front.base_url, token, path=USERS) == 200


async def test_only_administrators_have_the_page(front: FrontEnd, organization_id: UUID):
    async with signed_in(front, *await front.client(organization_id, ["read", "write"])) as browser:
        statuses = [
            (await browser.get(SCIM)).status,
            (await sent(browser, SCIM, **OKTA)).status,
            (await sent(browser, f"{SCIM}/{uuid4()}/revoke")).status,
        ]

    assert statuses == [403] * 3
