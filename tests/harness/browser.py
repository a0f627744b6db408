"""Debian's Chromium, driven by Playwright, for tests and benchmarks of pages."""

import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")

#: the folder for screenshots, set by `make screenshots`
_SCREENSHOTS = os.environ.get("GATEWAY_SCREENSHOTS")
_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
#: the rules of axe-core on colours, which are the only ones that a colour scheme affects
_COLOURS = ("color-contrast", "link-in-text-block")
_AXE = Path(__file__).parents[1] / "web" / "pages" / "vendor" / "axe-4.14.1.min.js"


@asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    """A headless browser."""
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=_OPTIONS)
        try:
            yield browser
        finally:
            await browser.close()


async def signed_in(page: Page, client_id: str, client_secret: str) -> None:
    """Sign in to the console through its form."""
    await page.goto("/console")
    await page.fill("#client_id", client_id)
    await page.fill("#client_secret", client_secret)
    await page.click("text=Sign in >> nth=-1")
    await page.wait_for_url("**/console")


def troubles_of(page: Page, base_url: str) -> list[str]:
    """The errors of scripts and violations of policies on the pages of a server, from now on."""
    troubles: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and message.location["url"].startswith(base_url):
            troubles.append(message.text)

    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", note)
    return troubles


async def findings(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """The findings of axe-core of any impact, by all of its rules or by these."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_AXE.read_text("utf-8"))
    options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    found = await page.evaluate("options => axe.run(document, options)", options)
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found["violations"]]


async def findings_in_light_and_dark(page: Page) -> list[str]:
    """`findings` on a wide and a narrow screen, in light colours; the rules on colours in dark colours too."""
    found = []
    for width in (1280, 360):
        await page.set_viewport_size({"width": width, "height": 800})
        for scheme, rules in (("light", ()), ("dark", _COLOURS)):
            await page.emulate_media(color_scheme=scheme)
            found += [f"{scheme}, {width} px: {each}" for each in await findings(page, rules)]
    return found


@asynccontextmanager
async def page_for_many(browser: Browser, base_url: str, **options: Any) -> AsyncIterator[tuple[Page, list[str]]]:
    """A page that several tests share, and its `troubles_of`; a context for each test would be another process."""
    context = await browser.new_context(base_url=base_url, **options)
    page = await context.new_page()
    yield page, troubles_of(page, base_url)
    await context.close()


async def taken(page: Page, name: str) -> None:
    """With `make screenshots`, take a picture on a wide screen in light colours, and one on a phone in dark ones."""
    if _SCREENSHOTS:
        for suffix, scheme, width, height in (("", "light", 1280, 860), ("-narrow", "dark", 360, 740)):
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size({"width": width, "height": height})
            await page.screenshot(path=f"{_SCREENSHOTS}/{name}{suffix}.png")
