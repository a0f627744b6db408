"""People who sign in, in a real browser: by the provider and by a secret, to the console and to let a host in."""

from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.async_api import Browser, Page

from gateway.access.identity.people import People
from tests.harness.browser import findings, needs_chromium, troubles_of
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.openid_provider import OpenIdProvider, openid_provider
from tests.harness.processes import free_port

REDIRECT = "http://127.0.0.1:9/callback"
LOGIN = "ada@example.com"

pytestmark = needs_chromium


@pytest.fixture(scope="module")
async def provider() -> AsyncIterator[OpenIdProvider]:
    async with openid_provider() as running:
        running.claims = {"email": LOGIN}
        yield running


@pytest.fixture(scope="module")
async def front(
    tmp_path_factory: pytest.TempPathFactory, database_url: str, redis_url: str, provider: OpenIdProvider
) -> AsyncIterator[FrontEnd]:
    """A front end at the address by which it knows itself; its provider knows Ada, who was added."""
    folder = tmp_path_factory.mktemp("front-end")
    settings = {**provider.settings, "oidc_name": "Example", "bind": f"127.0.0.1:{free_port()}"}
    async with front_end(folder, database_url, redis_url, **settings) as opened:
        people = People(opened.services.database, opened.services.identity)
        await people.add(LOGIN, [await opened.organization()], ["read"])
        yield opened


@pytest.fixture
async def page(chromium: Browser, front: FrontEnd) -> AsyncIterator[Page]:
    """A page that fails the test for what its policy forbids or its scripts throw."""
    context = await chromium.new_context(base_url=front.base_url)
    opened = await context.new_page()
    troubles = troubles_of(opened, front.base_url)
    yield opened
    await context.close()
    assert [
        each for each in troubles if not each.startswith("Failed to load resource")
    ] == []  # a refusal is a page too


@pytest.fixture
async def request_url(front: FrontEnd) -> str:
    """Where a host sends a person who is to let it in."""
    return f"/oauth/authorize?{urlencode(await front.authorization_query(REDIRECT))}"


async def code_after(page: Page, click: str) -> str:
    """The code with which the browser is sent on to the host, which nobody has started here."""
    async with page.expect_request(lambda request: request.url.startswith(REDIRECT)) as sent:
        await page.click(click)
    return parse_qs(urlsplit((await sent.value).url).query)["code"][0]


async def test_a_person_signs_in_to_the_console_by_the_provider(page: Page):
    await page.goto("/console/jobs")
    assert await findings(page) == []

    await page.click("text=Sign in with Example")

    await page.wait_for_url("**/console/jobs")
    assert LOGIN in await page.inner_text("header")


async def test_a_person_lets_a_host_in_by_the_provider(page: Page, request_url: str):
    await page.goto(request_url)
    assert await findings(page) == []

    await page.click("text=Sign in with Example")

    await page.wait_for_selector("text=Allow")
    assert await findings(page) == []
    assert LOGIN in await page.inner_text("main")
    assert await page.locator("[name=scope]").count() == 1  # no more than the person's own
    assert await code_after(page, "text=Allow")


async def test_a_person_lets_a_host_in_by_a_clients_secret(page: Page, request_url: str, front: FrontEnd):
    client_id, secret = await front.client(await front.organization())
    await page.goto(request_url)
    await page.fill("#client_id", client_id)
    await page.fill("#client_secret", secret)

    await page.click("text=Sign in >> nth=-1")

    await page.wait_for_selector("text=Allow")
    assert await code_after(page, "text=Allow")


async def test_why_somebody_is_not_let_in_stands_on_the_page(page: Page, provider: OpenIdProvider):
    provider.claims = {"email": "eve@example.com", "sub": "eve"}
    await page.goto("/console/sign-in")

    await page.click("text=Sign in with Example")

    await page.wait_for_selector("[role=alert]")
    provider.claims = {"email": LOGIN}
    assert "eve@example.com is not known here" in await page.inner_text("[role=alert]")
    assert await findings(page) == []
