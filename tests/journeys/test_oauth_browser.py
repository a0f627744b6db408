"""A user clicks through the consent page in a real browser, which is driven by its DevTools protocol."""

import asyncio
import itertools
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OAUTH = "/api/v1/integrations/connectors/oauth"
APPS = "/api/v1/oauth/credentials"
#: seconds for a page to come
PATIENCE = 30

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")


class Page:
    """One page of the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    async def _do(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while (answer := await self._socket.receive_json()).get("id") != number:
            """An event that nobody asked for."""
        return answer["result"]

    async def open(self, url: str) -> None:
        await self._do("Page.navigate", url=url)

    async def click(self, selector: str) -> None:
        """Click what the selector names, once it is there."""
        found = f"document.querySelector({json.dumps(selector)})"
        script = (
            f"new Promise(done => {{ const look = () => {found} ? done({found}.click()) : setTimeout(look, 20); "
            "look() })"
        )
        await self._do("Runtime.evaluate", expression=script, awaitPromise=True)


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Page]:
    """A headless browser with nothing remembered."""
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
    process = await asyncio.create_subprocess_exec(
        *(str(CHROMIUM), *options, "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"),
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE):
            port = await _port(process)
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                target = next(each for each in await answer.json() if each["type"] == "page")
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        process.terminate()
        await process.communicate()


async def _port(process: asyncio.subprocess.Process) -> int:
    """Where the browser listens, as it says at its start."""
    assert process.stderr is not None
    while line := (await process.stderr.readline()).decode():
        if "DevTools listening on" in line:
            return urlsplit(line.split()[-1]).port or 0
    raise AssertionError("the browser did not start")


@pytest.fixture
async def redirected() -> AsyncIterator[tuple[str, "asyncio.Future[str]"]]:
    """The caller's own page, and the query that a browser lands on it with."""
    landed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def page(request: web.Request) -> web.Response:
        if not landed.done():
            landed.set_result(request.query_string)
        return web.Response(text="<h1>Connected</h1>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/redirected", page)
    async with TestServer(app) as server:
        yield str(server.make_url("/redirected")), landed


@pytest.fixture
async def own_app(api):
    """An app of the organization's own: the sandbox takes any."""
    configuration = {"client_id": "browser-app", "client_secret": "own-secret"}
    await api.call("PUT", APPS, json={"connector_type": "support-desk", "configuration": configuration})
    yield
    await api.call("DELETE", f"{APPS}/connector_type/support-desk")


@pytest.mark.parametrize(("button", "landed_with"), [("#allow", "connector_id"), ("#deny", "error")])
async def test_a_click_on_the_consent_page_lands_where_the_caller_wanted(
    api, own_app, redirected, tmp_path, button, landed_with
):
    url, landed = redirected
    wish = {
        "workspace_name": f"w-{uuid4().hex[:8]}",
        "connector_type": "Support-Desk",
        "redirect_url": url,
        "environment": {"subdomain": "acme"},
    }
    started = (await api.post(f"{OAUTH}/initiate", wish)).json()

    async with browser(tmp_path) as page:
        await page.open(started["consent_url"])
        await page.click(button)
        query = dict(parse_qsl(await asyncio.wait_for(landed, PATIENCE)))

    flow = (await api.get(f"{OAUTH}/flows/{started['flow_id']}")).json()
    assert query[landed_with] == flow[landed_with]
