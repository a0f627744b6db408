"""A person follows a connect link, consents at the application, and the program has its connector."""

import re
from html import unescape
from uuid import uuid4

import aiohttp
import pytest
from yarl import URL

SESSIONS = "/api/v1/connect/sessions"

pytestmark = pytest.mark.usefixtures("work_management_app")


@pytest.fixture
async def browser():
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


async def _link(api, **members):
    body = {"workspace_name": f"w-{uuid4().hex[:8]}", "connector_types": ["work-management"], **members}
    return (await api.post(SESSIONS, body)).json()


async def _consented(browser, url, decision):
    """The page at which the browser ends when the person has decided."""
    async with browser.post(url, data={"kind": "work-management", "method": "oauth"}) as answer:
        leaving = await answer.text()
    consent = unescape(re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', leaving)[1])
    async with browser.get(URL(consent, encoded=True)) as answer:
        page = answer.url
    async with browser.post(page, data={"decision": decision}) as answer:
        return answer.status, await answer.text()


async def test_a_consent_that_a_link_began_becomes_a_connector_that_works(api, browser):
    link = await _link(api)

    status, page = await _consented(browser, link["url"], "allow")

    session = (await api.get(f"{SESSIONS}/{link['id']}")).json()
    checked = await api.post(f"/api/v1/integrations/connectors/{session['connector_id']}/check")
    assert status == 200
    assert "Connected" in page
    assert session["status"] == "completed"
    assert checked.json()["status"] == "healthy"


async def test_who_says_no_connects_nothing_and_may_try_again(api, browser):
    link = await _link(api)

    _, page = await _consented(browser, link["url"], "deny")

    path = URL(link["url"]).path
    assert "You did not give consent" in page
    assert f'href="{path}"' in page
    assert (await api.get(f"{SESSIONS}/{link['id']}")).json()["status"] == "pending"


async def test_of_two_consents_that_a_link_began_only_the_last_connects(api, browser):
    link = await _link(api)
    async with browser.post(link["url"], data={"kind": "work-management", "method": "oauth"}) as answer:
        first = unescape(re.search(r'content="0;url=([^"]+)"', await answer.text())[1])
    await _consented(browser, link["url"], "allow")

    async with browser.get(URL(first, encoded=True)) as answer:
        status, text = answer.status, await answer.text()

    assert status == 400
    assert "Nothing was connected" in text


async def test_a_redirect_url_gets_the_id_of_the_connector(api, browser):
    link = await _link(api, redirect_url="http://127.0.0.1:1/back?a=1")

    _, page = await _consented(browser, link["url"], "allow")

    session = (await api.get(f"{SESSIONS}/{link['id']}")).json()
    assert f"http://127.0.0.1:1/back?a=1&amp;connector_id={session['connector_id']}" in page
    assert 'data-origin="http://127.0.0.1:1"' in page
