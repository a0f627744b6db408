"""A page of another origin sends a person to a connect link, in a popup and in a frame, and is told how it ended."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, Frame, Page

from tests.harness.browser import needs_chromium

pytestmark = needs_chromium

#: opens the link in its own query, notes each message that it hears, and how the opening ended
SCRIPT = """
window.messages = [];
addEventListener("message", ({ origin, data }) => messages.push({ origin, ...data }));
const link = new URLSearchParams(location.search).get("link");
const open = (options) => GatewayConnect.open(link, options).then((end) => { window.end = end; });
document.getElementById("popup").onclick = () => open({});
document.getElementById("frame").onclick = () => open({ frame: document.getElementById("place") });
"""
PAGE = """<!doctype html><title>A customer's page</title><button id="popup">Connect</button>
<button id="frame">Connect here</button><div id="place"></div>
<script src="{gateway}/connect.js"></script><script>{script}</script>"""


@asynccontextmanager
async def site(gateway: str) -> AsyncIterator[str]:
    """The origin of a web site that is not the gateway's."""

    async def show(_: web.Request) -> web.Response:
        return web.Response(text=PAGE.format(gateway=gateway, script=SCRIPT), content_type="text/html")

    app = web.Application()
    app.router.add_get("/", show)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


@pytest.fixture
async def customer(running) -> AsyncIterator[str]:
    """The origin that links are made for."""
    async with site(running.base_url) as origin:
        yield origin


@pytest.fixture
async def third(running) -> AsyncIterator[str]:
    """An origin that has got hold of a link."""
    async with site(running.base_url) as origin:
        yield origin


@pytest.fixture
async def page(chromium: Browser) -> AsyncIterator[Page]:
    context = await chromium.new_context()
    yield await context.new_page()
    await context.close()


async def made(api, customer: str, kind: str = "incident-management") -> dict[str, Any]:
    """A link that the customer's site has asked for."""
    body = {
        "workspace_name": f"w-{uuid4().hex[:8]}",
        "connector_types": [kind],
        "redirect_url": f"{customer}/connected",
    }
    link: dict[str, Any] = (await api.post("/api/v1/connect/sessions", body)).json()
    return link


async def opened_in_a_popup(page: Page, origin: str, link: dict[str, Any]) -> Page:
    await page.goto(f"{origin}/?link={link['url']}")
    async with page.expect_popup() as popup:
        await page.click("#popup")
    return await popup.value


async def opened_in_a_frame(page: Page, origin: str, link: dict[str, Any]) -> Frame:
    await page.goto(f"{origin}/?link={link['url']}")
    await page.click("#frame")
    frame = await (await page.wait_for_selector("#place iframe")).content_frame()
    assert frame is not None
    return frame


async def connect_by_key(shown: Page | Frame) -> None:
    await shown.fill("[name=api_key]", "any-key")
    await shown.click("button:has-text('Connect')")


async def end_of(page: Page) -> dict[str, Any]:
    """How the opening ended, as the page's own script was told."""
    return dict(await (await page.wait_for_function("window.end")).json_value())


async def connector_of(api, link: dict[str, Any]) -> str | None:
    session = (await api.get(f"/api/v1/connect/sessions/{link['id']}")).json()
    return session.get("connector_id")


async def test_a_popup_connects_by_key_reports_to_the_page_and_closes(api, page: Page, customer: str):
    link = await made(api, customer)
    popup = await opened_in_a_popup(page, customer, link)

    async with popup.expect_event("close"):
        await connect_by_key(popup)

    end, connector_id = await end_of(page), await connector_of(api, link)
    assert end == {"status": "completed", "connector_id": connector_id}
    assert [message["origin"] for message in await page.evaluate("messages")] == [link["url"].split("/connect/")[0]]


async def test_a_frame_connects_by_key_and_reports_to_the_page(api, page: Page, customer: str):
    link = await made(api, customer)
    frame = await opened_in_a_frame(page, customer, link)

    await connect_by_key(frame)

    end, connector_id = await end_of(page), await connector_of(api, link)
    assert end == {"status": "completed", "connector_id": connector_id}
    assert await frame.inner_text("h1") == "Connected"


@pytest.mark.usefixtures("work_management_app")
async def test_a_refused_consent_is_reported_to_the_page_and_can_be_repeated(api, page: Page, customer: str):
    link = await made(api, customer, "work-management")
    popup = await opened_in_a_popup(page, customer, link)
    await popup.click("button:has-text('Continue')")

    await popup.click("#deny")

    end = await end_of(page)
    assert end == {"status": "failed", "connector_id": None}
    assert await popup.locator("a:has-text('Try again')").count() == 1
    assert await connector_of(api, link) is None


@pytest.mark.usefixtures("work_management_app")
async def test_a_popup_connects_by_consent_and_reports_to_the_page(api, page: Page, customer: str):
    link = await made(api, customer, "work-management")
    popup = await opened_in_a_popup(page, customer, link)
    await popup.click("button:has-text('Continue')")

    async with popup.expect_event("close"):
        await popup.click("#allow")

    assert await end_of(page) == {"status": "completed", "connector_id": await connector_of(api, link)}


async def test_a_third_origin_that_opens_the_popup_hears_nothing(api, page: Page, customer: str, third: str):
    link = await made(api, customer)
    popup = await opened_in_a_popup(page, third, link)

    async with popup.expect_event("close"):
        await connect_by_key(popup)

    assert await end_of(page) == {"status": "closed"}
    assert await page.evaluate("messages") == []
    assert await connector_of(api, link) is not None


async def test_a_third_origin_cannot_show_the_page_in_a_frame(api, page: Page, customer: str, third: str):
    link = await made(api, customer)
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))

    frame = await opened_in_a_frame(page, third, link)

    await page.wait_for_load_state("networkidle")
    assert await frame.locator("form").count() == 0
    assert any("frame-ancestors" in text for text in refused)


async def test_who_closes_the_popup_leaves_the_link_as_it_was(api, page: Page, customer: str):
    link = await made(api, customer)
    popup = await opened_in_a_popup(page, customer, link)

    await popup.close()

    assert await end_of(page) == {"status": "closed"}
    assert (await api.get(f"/api/v1/connect/sessions/{link['id']}")).json()["status"] == "pending"
