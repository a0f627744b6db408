"""The fixture server over HTTP, and raw requests to it."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gateway.agents.mcp.headers import NAMED_BY
from gateway.foundation.mcp import VERSIONS
from tests.agents.mcp.fixture_server import fixture_app
from tests.harness.processes import free_port

VERSION, CAPABILITIES = "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"


@pytest.fixture(scope="module")
async def fixture_url() -> AsyncIterator[str]:
    port = free_port()
    runner = web.AppRunner(fixture_app(port), handler_cancellation=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield f"http://127.0.0.1:{port}/mcp"
    await runner.cleanup()


@dataclass(frozen=True)
class Reply:
    """A response to a raw request."""

    status: int
    headers: Any
    document: Any

    @property
    def code(self) -> int:
        return int(self.document["error"]["code"])

    @property
    def result(self) -> Any:
        """The result of the response, which is the last event of a stream if the call took long."""
        document = self.document
        if isinstance(document, str):
            document = json.loads(re.findall(r"^data: (.+)$", document, re.MULTILINE)[-1])
        assert "result" in document, document
        return document["result"]


class Raw:
    """Sends raw requests; headers agree with the body unless a test overrides them."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self.url = url

    async def __call__(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        capabilities: dict[str, Any] | None = None,
        headers: dict[str, str | None] | None = None,
        body: Any = None,
    ) -> Reply:
        meta = {VERSION: VERSIONS[0], CAPABILITIES: capabilities or {}}
        params = {**(params or {}), "_meta": {**meta, **((params or {}).get("_meta") or {})}}
        document = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params} if body is None else body
        sent = {**headers_of(method, params), **(headers or {})}
        options = {"json": document} if not isinstance(document, bytes) else {"data": document}
        present = {name: value for name, value in sent.items() if value is not None}
        async with self._session.post(self.url, headers=present, **options) as response:
            is_json = response.content_type == "application/json"
            return Reply(response.status, response.headers, await response.json() if is_json else await response.text())


def headers_of(method: str, params: dict[str, Any]) -> dict[str, str]:
    """The headers that a client of the newest protocol version sends."""
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": VERSIONS[0],
        "Mcp-Method": method,
    }
    return {**headers, "Mcp-Name": params[NAMED_BY[method]]} if method in NAMED_BY else headers


@pytest.fixture
async def raw(fixture_url: str) -> AsyncIterator[Raw]:
    async with aiohttp.ClientSession() as session:
        yield Raw(session, fixture_url)
