"""The reference in a real browser: found, linked to, tried out with a token; usable by all, nothing inline."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Page

from tests.harness.browser import findings, launched, needs_chromium, troubles_of

pytestmark = needs_chromium
#: milliseconds until the document is read and shown, on a busy machine
SHOWN = 60_000
PAGES = ["/docs/kinds", "/docs/kinds/team-chat", "/docs/errors", "/docs/errors/invalid_params"]


@pytest.fixture(scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with launched() as browser:
        yield browser


@pytest.fixture
async def page(chromium: Browser, front) -> AsyncIterator[Page]:
    """A page that fails the test for what its policy forbids or its scripts throw."""
    context = await chromium.new_context(base_url=front.base_url)
    opened = await context.new_page()
    opened.set_default_timeout(SHOWN)
    troubles = troubles_of(opened, front.base_url)
    yield opened
    await context.close()
    assert troubles == []


async def find(page: Page, words: str) -> list[str]:
    """The operations that a search leaves, by their summaries."""
    await page.goto("/docs")
    await page.wait_for_selector(".opblock")
    await page.fill("#search", words)
    await page.wait_for_function("document.querySelectorAll('.opblock').length < 10")
    return await page.locator(".opblock-summary-description").all_inner_texts()


async def test_a_search_leaves_the_operations_that_fit(page):
    assert await find(page, "revoke bearer TOKEN") == ["Revoke a bearer token (RFC 7009)"]


async def test_an_operation_has_an_address_and_shows_how_to_call_it(page):
    await page.goto("/docs#/Jobs/cancelJob")

    await page.wait_for_selector(".opblock.is-open .samples")

    assert await page.locator(".opblock.is-open").count() == 1
    assert await page.locator(".opblock.is-open .sample summary").all_inner_texts() == ["curl", "Python", "CLI"]
    assert "gateway jobs cancel $JOB" in await page.locator(".opblock.is-open .samples").text_content()


async def test_a_call_is_tried_out_with_a_token(page, api):
    await find(page, "list workspaces")
    await page.click(".btn.authorize")
    await page.fill(".modal-ux input", api.headers["Authorization"].removeprefix("Bearer "))
    await page.click(".modal-ux .authorize")
    await page.click(".modal-ux .btn-done")

    await page.click(".opblock-summary-control")
    await page.click(".try-out__btn")
    await page.click(".execute")

    await page.wait_for_selector(".live-responses-table .response-col_status")
    assert (await page.locator(".live-responses-table tbody .response-col_status").inner_text()).startswith("200")
    assert '"next_cursor": null' in await page.locator(".live-responses-table").inner_text()


#: rules about landmarks and the order of headings: Swagger UI, which is vendored, brings its own
OF_SWAGGER = ("heading-order", "landmark-main-is-top-level", "landmark-no-duplicate-main", "landmark-unique")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_reference_is_accessible_in_light_and_dark(page, scheme):
    await page.emulate_media(color_scheme=scheme)

    await find(page, "download file ranges")
    folded = await findings(page, OF_SWAGGER)
    await page.click(".opblock-summary-control")
    await page.wait_for_selector(".samples")

    assert folded + await findings(page, OF_SWAGGER) == []


@pytest.mark.parametrize("path", PAGES)
async def test_the_pages_of_kinds_and_errors_are_accessible(page, path):
    await page.goto(path)

    assert await findings(page) == []


async def test_the_operations_of_a_kind_are_searched_and_linked_to(page):
    await page.goto("/docs/kinds/support-desk")
    await page.fill("#search", "bulk update")
    found = await page.locator(".action:visible h3 a").all_inner_texts()
    await page.goto("/docs/kinds/support-desk#tickets.update")

    assert found == ["ticket_bulk_updates.create"]
    assert await page.locator("[id='tickets.update']").is_visible()
    assert await page.evaluate("document.querySelector(':target').id") == "tickets.update"
