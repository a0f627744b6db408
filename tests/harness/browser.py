"""Debian's Chromium, driven by Playwright, for tests and benchmarks of pages."""

import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")

#: set by `make screenshots`: where they go
_SCREENSHOTS = os.environ.get("GATEWAY_SCREENSHOTS")
_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
_AXE = Path(__file__).parents[1] / "http" / "pages" / "vendor" / "axe-4.14.1.min.js"


@asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    """A browser without a window."""
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=_OPTIONS)
        try:
            yield browser
        finally:
            await browser.close()


async def signed_in(page: Page, client_id: str, client_secret: str) -> None:
    """Sign in to the console as a person does."""
    await page.goto("/console")
    await page.fill("#client_id", client_id)
    await page.fill("#client_secret", client_secret)
    await page.click("text=Sign in >> nth=-1")
    await page.wait_for_url("**/console")


def troubles_of(page: Page, base_url: str) -> list[str]:
    """What scripts throw and policies forbid on the pages of a server, from now on."""
    troubles: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and message.location["url"].startswith(base_url):
            troubles.append(message.text)

    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", note)
    return troubles


async def findings(page: Page, without: Sequence[str] = ()) -> list[str]:
    """All that axe-core finds, of whatever impact; `without` are ids of rules that are not checked."""
    await page.evaluate(_AXE.read_text("utf-8"))
    rules = {rule: {"enabled": False} for rule in without}
    found = await page.evaluate("rules => axe.run(document, {resultTypes: ['violations'], rules})", rules)
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found["violations"]]


async def findings_in_light_and_dark(page: Page) -> list[str]:
    """`findings` in either colour scheme, on a wide screen and on a narrow one."""
    found = []
    for width in (1280, 360):
        await page.set_viewport_size({"width": width, "height": 800})
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)
            found += [f"{scheme}, {width} px: {each}" for each in await findings(page)]
    return found


async def taken(page: Page, name: str) -> None:
    """With `make screenshots`: a picture on a wide screen in light colours, and one on a telephone in dark ones."""
    if _SCREENSHOTS:
        for suffix, scheme, width, height in (("", "light", 1280, 860), ("-narrow", "dark", 360, 740)):
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size({"width": width, "height": height})
            await page.screenshot(path=f"{_SCREENSHOTS}/{name}{suffix}.png")
