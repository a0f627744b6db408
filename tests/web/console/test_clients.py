"""One client in the console: what may be changed of it, its secrets and its end."""

import asyncio
import re
from uuid import UUID

import pytest

from tests.harness.caller import Api
from tests.harness.console import ConsoleBrowser
from tests.harness.in_process import FrontEnd
from tests.web.console.test_people import sent, shown


@pytest.fixture
async def client(front: FrontEnd, organization_id: UUID) -> str:
    """The page of a client."""
    return f"/console/settings/clients/{(await front.client(organization_id, ['read']))[0]}"


async def test_the_lists_of_a_client_are_replaced_and_the_others_stay(
    browser: ConsoleBrowser, api: Api, client: str, front: FrontEnd
):
    await api.call("PUT", "/api/v1/groups/support", json={"workspaces": [], "scopes": []})
    lists = {"redirect_urls": "https://one.example/cb", "callback_urls": "", "delegate_for": "support"}

    await sent(browser, client, **lists)
    refused = await sent(browser, client, **{**lists, "delegate_for": "nobody"})

    [view] = [each for each in (await api.get("/api/v1/clients")).document()["data"] if each["id"] in client]
    assert (view["redirect_urls"], view["delegate_for"]) == (["https://one.example/cb"], ["support"])
    assert refused.status == 422
    assert "there is no group &#39;nobody&#39;" in refused.body.decode()
    assert ">nobody</textarea>" in refused.body.decode()


async def test_the_secret_of_a_clients_callbacks_is_shown_once(browser: ConsoleBrowser, client: str):
    lists = {"redirect_urls": "", "delegate_for": "", "callback_urls": "https://app.example.com/jobs"}

    answers = [(await sent(browser, client, **lists)), await sent(browser, client, **lists)]

    assert len(re.findall(r"whsec_[\w+/=]+", answers[0].body.decode())) == 1
    assert answers[1].status == 303
    assert "whsec_" not in await shown(browser, client)


async def test_a_new_secret_is_shown_once_and_works(browser: ConsoleBrowser, client: str, front: FrontEnd):
    page = (await sent(browser, f"{client}/secret")).body.decode()
    [secret] = re.findall(r"it is not shown again: <code>([\w-]+)</code>", page)

    async with Api.of(front.base_url, client.rpartition("/")[2], secret) as api:
        assert (await api.get("/api/v1/jobs")).status == 200

    assert secret not in await shown(browser, client)


async def test_a_clients_budgets_are_on_its_page(browser: ConsoleBrowser, api: Api, client: str):
    client_id = client.rpartition("/")[2]
    await api.call("PUT", "/api/v1/budgets/small", json={"client_id": client_id, "per": "day", "calls": 5})

    page, form = await shown(browser, client), await shown(browser, f"/console/budgets?client={client_id}")

    assert '<a href="/console/budgets?change=small">small</a>, for each day' in page
    assert f'value="{client_id}"' in form


async def test_a_client_that_cannot_be_created_stays_in_the_form(browser: ConsoleBrowser):
    answer = await sent(browser, "/console/settings/clients", name="nightly", write="on", read="on")
    refused = await sent(browser, "/console/settings/clients", name="a\nb", write="on")

    page = refused.body.decode()
    assert answer.status == 200
    assert refused.status == 422
    assert 'name="write" checked' in page
    assert 'name="read" checked' not in page


async def test_a_client_of_another_organization_has_no_page(stranger: ConsoleBrowser, client: str):
    assert (await stranger.get(client)).status == 404
    assert (await stranger.send(client, csrf=await stranger.csrf(), redirect_urls="")).status == 404


async def test_a_form_that_is_sent_twice_at_once_creates_one_client(browser: ConsoleBrowser, api: Api):
    page = await shown(browser, "/console/settings")
    [key] = re.findall(r'name="key" value="([\w-]+)"', page)
    form = {"csrf": await browser.csrf(), "name": "nightly", "read": "on", "key": key}

    answers = await asyncio.gather(*(browser.send("/console/settings/clients", **form) for _ in range(2)))
    other = await browser.send("/console/settings/clients", **{**form, "write": "on"})

    pages = [answer.body.decode() for answer in answers]
    [client] = [each for each in (await api.get("/api/v1/clients")).document()["data"] if each["name"] == "nightly"]
    link = f'This form has already created <a href="/console/settings/clients/{client["id"]}">'
    assert [answer.status for answer in (*answers, other)] == [200, 200, 422]
    assert sorted("Copy this secret now" in page for page in pages) == [False, True]
    assert sorted(link in page for page in pages) == [False, True]
    assert "this form has already created another client" in other.body.decode()
