"""Servers that nobody here wrote, as kinds: the official SDKs of Python and TypeScript, both versions, and FastMCP.

They are installed as `test_mcp_clients.py` tells, and MCP_ONE names a virtual environment with mcp 1.x.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from yarl import URL

from gateway.errors import InvalidParams, UpstreamRejected
from gateway.kinds.importing.importing import kind_of
from gateway.kinds.importing.mapping import Options, import_document
from gateway.upstream.auth import StaticAuthorizer
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.mcp_servers import McpAddress, described
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.harness.processes import free_port
from tests.harness.waiting import eventually, is_listening

NPM, FASTMCP, ONE = (os.environ.get(name) for name in ("MCP_CONFORMANCE", "MCP_FASTMCP", "MCP_ONE"))
SERVERS = Path(__file__).parents[1] / "agents" / "mcp" / "servers"
KIND, PYTHON, NODE = "calculator", "python_server.py", f"{NPM}/node_modules/node/bin/node"


def server(name: str, program: str, script: str, installed: str | None, variable: str):
    reason = f"{variable} does not say where it is installed"
    return pytest.param(program, script, id=name, marks=pytest.mark.skipif(installed is None, reason=reason))


OFFICIAL = [
    server("mcp 2.x of Python", sys.executable, PYTHON, sys.executable, ""),
    server("mcp 1.x of Python", f"{ONE}/bin/python", PYTHON, ONE, "MCP_ONE"),
    server("fastmcp", f"{FASTMCP}/bin/python", PYTHON, FASTMCP, "MCP_FASTMCP"),
    server("version 1 of npm, with sessions", NODE, "npm_first_server.mjs", NPM, "MCP_CONFORMANCE"),
    server("version 2 of npm", NODE, "npm_second_server.mjs", NPM, "MCP_CONFORMANCE"),
]


@asynccontextmanager
async def calculator(program: str, script: str) -> AsyncIterator[UpstreamConnector]:
    """A connector to a server in a process of its own."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        program,
        SERVERS / script,
        str(port),
        cwd=NPM,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await eventually(lambda: is_listening(port), within=60)
        origin = URL(f"http://127.0.0.1:{port}")
        async with Transport(EgressPolicy.of([origin])) as transport:
            upstreams = Upstreams(transport, {KIND: origin})
            document = await described(upstreams, McpAddress(url="https://calculator.io/mcp", kind=KIND))
            kind = kind_of(import_document(document, Options(kind=KIND)))
            yield upstreams.connector(kind, {}, StaticAuthorizer({}), RateScope(id=KIND, kind=KIND))
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.processes
@pytest.mark.parametrize(("program", "script"), OFFICIAL)
async def test_the_tools_of_a_server_are_operations(program: str, script: str):
    async with calculator(program, script) as connector:
        await connector.check()
        added = [await connector.execute(KIND, "add", {"a": number, "b": 1}) for number in range(3)]
        with pytest.raises(UpstreamRejected, match="divid"):
            await connector.execute(KIND, "divide", {"a": 1, "b": 0})
        with pytest.raises(InvalidParams):
            await connector.execute(KIND, "add", {"a": "one"})

    assert [each.decoded()["content"][0]["text"] for each in added] == ["1", "2", "3"]
