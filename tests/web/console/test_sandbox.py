"""The sandbox in the console: breaking the next calls, and what was received."""

from pathlib import Path

import aiohttp
import pytest

from tests.harness.caller import Api
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.in_process import FrontEnd, front_end
from tests.web.console.test_people import sent, shown

PAGE = "/console/sandbox"
DESK = {"kind": "support-desk", "effect": "refuse", "times": "1"}


@pytest.fixture(autouse=True)
async def calm(front: FrontEnd) -> None:
    async with aiohttp.ClientSession(front.sandbox_url) as http:
        for what in ("faults", "rude", "requests"):
            async with http.delete(f"/_sandbox/{what}"):
                pass


async def asked(front: FrontEnd, path: str, token: str = "token") -> None:
    """One request to the sandbox."""
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(front.sandbox_url) as http, http.get(path, headers=headers):
        pass


async def test_a_fault_of_the_form_breaks_the_next_call_and_the_page_shows_both(browser: ConsoleBrowser, api: Api):
    desk = await api.connector()
    added = await sent(browser, f"{PAGE}/faults", **DESK, method="POST")
    before = await shown(browser, PAGE)
    ticket = {"subject": "printer", "comment": {"body": "on fire"}}
    refused = await desk.send("tickets", "create", {"ticket": ticket})
    after = await shown(browser, PAGE)

    assert (added.status, added.headers["Location"]) == (303, PAGE)
    assert "{&#34;kind&#34;: &#34;support-desk&#34;, &#34;method&#34;: &#34;POST&#34;" in before
    assert refused.status == 502
    assert "Broken now" not in after
    assert '<span class="status bad">503</span>' in after
    assert '<span class="path">POST /api/v2/tickets.json</span>' in after


async def test_rude_kinds_are_listed_until_all_is_ended(browser: ConsoleBrowser):
    await sent(browser, f"{PAGE}/rude", kind="gitlab")
    rude = await shown(browser, PAGE)
    await sent(browser, f"{PAGE}/calm")

    assert "gitlab is rude in 14 ways" in rude
    assert "Broken now" not in await shown(browser, PAGE)


async def test_the_page_shows_no_credentials_of_requests(browser: ConsoleBrowser, front: FrontEnd):
    await asked(front, "/api/v2/tickets.json?token=canary-query", token="canary-token")

    page = await shown(browser, PAGE)

    assert "/api/v2/tickets.json" in page
    assert "canary" not in page


async def test_requests_of_one_kind_are_shown(browser: ConsoleBrowser, front: FrontEnd):
    await asked(front, "/api/v2/tickets.json")
    await asked(front, "/_kinds/gitlab/api/v4/projects")

    page = await shown(browser, f"{PAGE}?kind=gitlab")

    assert "/_kinds/gitlab/api/v4/projects" in page
    assert "/api/v2/tickets.json" not in page


@pytest.mark.parametrize("fields", [{"effect": "explode"}, {"times": "0"}, {"times": "1001"}, {"kind": "suport-desk"}])
async def test_a_wrong_form_is_refused(browser: ConsoleBrowser, fields: dict[str, str]):
    refused = await sent(browser, f"{PAGE}/faults", **{**DESK, **fields})

    assert refused.status == 422
    assert "Broken now" not in await shown(browser, PAGE)


async def test_only_administrators_break_the_sandbox(front: FrontEnd):
    async with signed_in(front, *await front.client(scopes=["read", "write"])) as browser:
        assert (await browser.get(PAGE)).status == 403
        assert (await sent(browser, f"{PAGE}/faults", **DESK)).status == 403


async def test_without_a_sandbox_there_is_no_page(tmp_path: Path, database_url: str, redis_url: str):
    async with (
        front_end(tmp_path, database_url, redis_url, sandbox_url=None) as front,
        signed_in(front, *await front.client()) as browser,
    ):
        assert (await browser.get(PAGE)).status == 404
        assert PAGE not in await shown(browser, "/console")
