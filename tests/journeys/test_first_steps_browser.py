"""A person's first minutes with the console, and a customer who follows a connect link, in a real browser."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
from playwright.async_api import Browser, Page

from tests.harness.browser import needs_chromium
from tests.harness.caller import Api
from tests.harness.clients import NewClient, new_client_in
from tests.harness.waiting import eventually

#: clicks and fields of three minutes, at ten seconds for each
THREE_MINUTES = 18

pytestmark = needs_chromium


@dataclass
class Person:
    """Clicks and fills in fields, and counts both."""

    page: Page
    actions: int = 0

    async def click(self, selector: str) -> None:
        self.actions += 1
        await self.page.click(selector)

    async def fill(self, selector: str, text: str) -> None:
        self.actions += 1
        await self.page.fill(selector, text)


@pytest.fixture
async def newcomer(running) -> NewClient:
    """The client of an organization without any connector."""
    return await new_client_in(running.database_url)


@pytest.fixture
async def person(chromium: Browser, running) -> AsyncIterator[Person]:
    context = await chromium.new_context(base_url=running.base_url)
    yield Person(await context.new_page())
    await context.close()


async def shows_no_steps(page: Page) -> bool:
    """Whether the overview shows no first steps any longer; audit entries are written in batches."""
    await page.goto("/console")
    return await page.locator("ol.steps").count() == 0


async def test_a_fresh_gateway_is_connected_tried_and_given_to_an_agent_within_three_minutes(
    person: Person, newcomer: NewClient, running
):
    page = person.page
    await page.goto("/console")
    await person.fill("#client_id", newcomer.id)
    await person.fill("#client_secret", newcomer.secret)
    await person.click("button:has-text('Sign in')")

    await person.click("main a:has-text('Connect an application')")
    await person.fill("#workspace_name", "acme")
    await person.click("main button:has-text('Connect')")
    await person.click("a[href$='kind=incident-management']")
    await person.fill("[name=api_key]", "any-key")
    await person.click("button:has-text('Connect')")
    await page.wait_for_selector("text=is connected")

    await page.goto("/console")
    done = await page.locator("ol.steps li.done strong").all_inner_texts()
    await person.click("main a:has-text('Open the playground')")
    await person.fill("[name=query]", "list open incidents")
    await person.click("main form button >> nth=0")
    await person.click("main a[href*='operation=incident-management.incidents.list']")
    await person.click("button[value=run]")
    records = await page.locator("table tbody tr").count()

    await eventually(lambda: shows_no_steps(page))
    await person.click("nav a:has-text('Hosts')")
    configuration = await page.inner_text("main pre >> nth=0")

    assert done == ["Connect an application"]
    assert records > 0
    assert f"{running.base_url}/mcp" in configuration
    assert person.actions <= THREE_MINUTES


async def test_a_customer_reads_the_applications_name_on_every_page_of_a_consent(
    person: Person, api: Api, work_management_app
):
    body = {"workspace_name": f"w-{uuid4().hex[:8]}", "connector_types": ["work-management", "support-desk"]}
    link = (await api.post("/api/v1/connect/sessions", body)).json()
    page, texts = person.page, []

    await page.goto(link["url"])
    texts.append(await page.inner_text("main"))
    await person.click("a[href$='kind=work-management']")
    texts.append(await page.inner_text("main"))
    await person.click("button:has-text('Continue')")
    await person.click("#allow")
    await page.wait_for_selector("text=connected")
    texts.append(await page.inner_text("main"))

    assert all("Asana" in text for text in texts), texts
    assert not any("work-management" in text.lower() for text in texts)
