"""The documentation in a real browser: reading, search, copying, trying a call, and accessibility."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Page

from tests.harness.browser import (
    findings_in_light_and_dark,
    launched,
    needs_chromium,
    page_for_many,
    taken,
    troubles_of,
)

pytestmark = needs_chromium
PAGES = (
    "/docs",
    "/docs/how-to/call",
    "/docs/measurements",
    "/docs/api",
    "/docs/api/workspaces",
    "/docs/kinds",
    "/docs/kinds/airtable",
    "/docs/kinds/airtable/records",
    "/docs/errors",
    "/docs/errors/invalid_params",
    "/docs/search?q=rotate+keys",
    "/docs/nothing",
)


@pytest.fixture(scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with launched() as browser:
        yield browser


@pytest.fixture
async def page(chromium: Browser, front) -> AsyncIterator[Page]:
    """A page that fails the test if its policy is violated or a script throws."""
    context = await chromium.new_context(base_url=front.base_url, permissions=["clipboard-read", "clipboard-write"])
    opened = await context.new_page()
    troubles = troubles_of(opened, front.base_url)
    yield opened
    await context.close()
    assert [each for each in troubles if "404" not in each] == []


@pytest.fixture(scope="module")
async def page_for_all(chromium: Browser, front) -> AsyncIterator[tuple[Page, list[str]]]:
    async with page_for_many(chromium, front.base_url) as opened:
        yield opened


@pytest.mark.parametrize("address", PAGES)
async def test_every_sort_of_page_is_accessible_in_light_and_dark_and_fits_a_telephone(page_for_all, address):
    page, troubles = page_for_all
    troubles.clear()
    await page.goto(address)
    await taken(page, address.partition("?")[0].strip("/").replace("/", "-"))

    assert await findings_in_light_and_dark(page) == []
    await page.set_viewport_size({"width": 320, "height": 640})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    assert [each for each in troubles if "404" not in each] == []


async def test_a_reader_finds_a_page_by_its_words_and_by_the_contents(page):
    await page.goto("/docs")
    await page.fill("[role=search] input", "idempotency-key")
    await page.press("[role=search] input", "Enter")
    await page.click(".hits a >> nth=0")
    found = page.url

    await page.click("#contents a:text-is('Jobs')")

    assert "/docs/" in found
    assert "idempotency-key" in (await page.content()).lower() or found.endswith("idempotency-key")
    assert await page.get_attribute("#contents [aria-current=page]", "href") == "/docs/how-to/jobs"


async def test_the_contents_open_on_a_telephone(page):
    await page.set_viewport_size({"width": 360, "height": 740})
    await page.goto("/docs/how-to/call")
    before = await page.is_visible("#contents")

    await page.click("text=Contents")

    assert (before, await page.is_visible("#contents")) == (False, True)


async def test_examples_are_shown_in_the_last_chosen_language_and_can_be_copied(page):
    await page.goto("/docs/api/jobs#cancelJob")
    await page.click("#cancelJob [role=tab]:text-is('CLI')")
    await page.goto("/docs/kinds/support-desk/tickets#tickets.list")

    await page.click("[id='tickets.list'] .tab:visible .copy")

    assert await page.locator("[id='tickets.list'] .tab:visible").count() == 1
    assert (await page.evaluate("navigator.clipboard.readText()")).startswith("gateway call support-desk tickets list")


async def test_the_tabs_are_used_by_the_keyboard(page):
    await page.goto("/docs/api/jobs")
    await page.focus("#cancelJob [role=tab][aria-selected=true]")

    await page.keyboard.press("ArrowRight")

    assert await page.inner_text("#cancelJob [role=tab][aria-selected=true]") == "Python"
    assert await page.locator("#cancelJob .tab:visible").count() == 1


async def test_a_session_on_a_terminal_is_copied_without_its_prompts(page):
    await page.goto("/docs/how-to/call")
    block = page.locator(".code", has=page.locator("pre[data-language=console]")).first
    if not await block.is_visible():
        await page.click("[role=tab]:text-is('CLI')")

    await block.locator(".copy").click()

    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("gateway ")
    assert "$ " not in copied


async def test_a_call_is_tried_out_with_a_token(page, api):
    await page.goto("/docs/api/workspaces")
    operation = page.locator("#listWorkspaces")
    await operation.locator("summary:text-is('Try it')").click()
    await operation.locator(".try input[type=password]").fill(api.headers["Authorization"].removeprefix("Bearer "))

    await operation.locator(".try button:text-is('Send')").click()

    await operation.locator(".try [role=status] pre").wait_for()
    assert (await operation.locator(".try [role=status] p").inner_text()).startswith("200 in")
    assert '"next_cursor": null' in await operation.locator(".try [role=status] pre").inner_text()


async def test_the_operations_of_a_kind_are_searched_and_linked_to(page):
    await page.goto("/docs/kinds/support-desk")
    await page.fill("#search", "bulk update")
    found = await page.locator(".action:visible").evaluate_all("found => found.map((each) => each.id)")
    await page.goto("/docs/kinds/support-desk#tickets.update")

    assert "ticket_bulk_updates.create" in found
    assert len(found) < 5
    assert await page.locator("[id='tickets.update']").is_visible()
    assert await page.evaluate("document.querySelector(':target').id") == "tickets.update"


async def test_the_list_of_applications_is_filtered_while_a_person_types(page):
    await page.goto("/docs/kinds?q=invoices")
    await page.fill("#filter", "tickets desk")

    assert sorted(await page.locator("#kinds li:visible strong").all_inner_texts()) == ["Freshdesk", "Zendesk"]
    assert (await page.inner_text("#found")).startswith("2 of ")


async def test_everything_can_be_read_and_searched_without_scripts(chromium: Browser, front):
    context = await chromium.new_context(base_url=front.base_url, java_script_enabled=False)
    page = await context.new_page()
    await page.goto("/docs/api/jobs")
    languages = await page.locator("#cancelJob .tab:visible").count()
    await page.fill("[role=search] input", "cancel job")

    await page.press("[role=search] input", "Enter")

    assert languages == 4
    assert await page.locator(".hits a[href='/docs/api/jobs#cancelJob']").count() == 1
    await context.close()
