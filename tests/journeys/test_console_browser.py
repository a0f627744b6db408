"""People at the console and at connect pages, in a real browser: every screen usable, nothing inline, nothing seriously
inaccessible."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = (Path(__file__).parents[1] / "pages" / "vendor" / "axe-4.14.1.min.js").read_text("utf-8")
#: set by `make screenshots`: where they go
SCREENSHOTS = os.environ.get("GATEWAY_SCREENSHOTS")
SCREENS = ("", "/connectors", "/playground?operation=support-desk.tickets.create", "/jobs", "/search", "/audit",
           "/settings", "/health")  # fmt: skip

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")


@pytest.fixture
async def chromium():
    async with playwright.async_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        await browser.close()


@pytest.fixture
async def page(chromium, running) -> AsyncIterator[object]:
    """A page that is signed in, and fails the test for what its policy forbids or its scripts throw."""
    context = await chromium.new_context(base_url=running.base_url)
    opened = await context.new_page()
    trouble: list[str] = []
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    await opened.goto("/console")
    await opened.fill("#client_id", running.client_id)
    await opened.fill("#client_secret", running.client_secret)
    await opened.click("text=Sign in >> nth=-1")
    await opened.wait_for_url("**/console")
    yield opened
    await context.close()
    assert trouble == []


async def serious_findings(page) -> list[str]:
    """What axe-core finds of serious or critical impact."""
    await page.evaluate(AXE)
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {each['nodes'][0]['html']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


async def taken(page, name: str) -> None:
    if SCREENSHOTS:
        await page.set_viewport_size({"width": 1200, "height": 760})
        await page.screenshot(path=f"{SCREENSHOTS}/{name}.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
async def test_every_screen_is_accessible_in_light_and_dark(page, api, screen, scheme):
    await api.connector()
    await page.emulate_media(color_scheme=scheme)

    await page.goto(f"/console{screen}")

    assert await serious_findings(page) == []


@pytest.mark.parametrize("screen", SCREENS)
async def test_every_screen_fits_a_telephone(page, screen):
    await page.set_viewport_size({"width": 320, "height": 640})

    await page.goto(f"/console{screen}")

    assert await page.evaluate("document.documentElement.scrollWidth") <= 320


async def test_a_bulk_update_is_followed_live_to_its_result(page, api):
    desk = await api.connector()
    await page.goto("/console/playground?operation=support-desk.ticket_bulk_updates.create")
    await page.select_option("#connector", desk.record["id"])
    await page.fill("[name='p.ids']", ",".join(map(str, range(1, 121))))
    await page.fill("[name='p.ticket']", '{"status": "pending"}')

    await page.click("button[value=run]")

    await page.wait_for_url("**/console/jobs/*")
    await page.wait_for_selector("#job .status.succeeded", timeout=60_000)
    assert "120" in await page.inner_text("#job")
    assert await page.locator("#job table").count() == 1
    await taken(page, "job")


async def test_a_failed_job_is_understood_and_run_again(page, api):
    desk = await api.connector()
    body = {"entity": "tickets", "action": "get", "params": {"ticket_id": 999_999_999}}
    path = f"/api/v1/integrations/connectors/{desk.record['id']}/execute"
    job = await api.post(path, body, headers={"Prefer": "respond-async"})
    await page.goto(f"/console/jobs/{job.json()['job']['id']}")
    await page.wait_for_selector("#job .status.failed", timeout=30_000)

    said = await page.inner_text("#job [role=alert]")
    await page.click("text=Run again")

    await page.wait_for_url(lambda url: not url.endswith(job.json()["job"]["id"]))
    assert "RecordNotFound" in said or "not found" in said.lower()


async def test_a_person_connects_by_key_from_the_console(page):
    workspace = f"w-{uuid4().hex[:8]}"
    await page.goto("/console/connectors")
    await page.fill("#workspace_name", workspace)
    await page.click("text=Connect >> nth=-1")
    await page.click("a[href$='kind=incident-management']")
    assert await serious_findings(page) == []
    await page.fill("[name=api_key]", "any-key")

    await page.click("button:has-text('Connect')")

    await page.wait_for_selector("text=The application is connected")
    await page.goto("/console/connectors")
    assert workspace in await page.inner_text("main")
    await taken(page, "connectors")


async def test_the_playground_shows_what_it_would_send_and_the_answer(page, api):
    await api.connector()
    await page.goto("/console/playground?query=list+open+tickets")
    await page.goto("/console/playground?operation=support-desk.tickets.list")
    await page.fill("[name='p.per_page']", "3")
    await page.click("button[value=dry_run]")
    sent = await page.inner_text("main")

    await page.click("button[value=run]")

    assert "/api/v2/tickets.json" in sent
    assert await page.locator("table tbody tr").count() == 3
    await taken(page, "playground")


async def test_the_connect_page_works_without_scripts(chromium, running, api):
    body = {"workspace_name": f"w-{uuid4().hex[:8]}", "connector_types": ["incident-management"]}
    link = (await api.post("/api/v1/connect/sessions", body)).json()
    context = await chromium.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(link["url"])
    await page.fill("[name=api_key]", "any-key")

    await page.click("button")

    assert await page.locator("text=The application is connected").count() == 1
    await context.close()


async def test_the_overview_draws_calls_and_their_duration(page, api):
    await api.connector()

    await page.goto("/console")

    await page.wait_for_selector(".plot canvas")
    assert await page.locator(".plot canvas").count() == 2
    await taken(page, "overview")
