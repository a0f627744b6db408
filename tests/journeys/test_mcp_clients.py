"""Clients that nobody here wrote, at one deployment of three front ends behind a load balancer.

Where they are installed is told by two variables, both set by `.ci/run`:

- MCP_CONFORMANCE, a folder in which `npm install node@22 @modelcontextprotocol/client@2.4.0
  @modelcontextprotocol/inspector@2.12.0` was run;
- MCP_FASTMCP, a virtual environment with fastmcp, whose dependencies are not ours.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.faults.arena import arena
from tests.harness.round_robin import RoundRobin, round_robin

NPM, FASTMCP = os.environ.get("MCP_CONFORMANCE"), os.environ.get("MCP_FASTMCP")
CLIENTS = Path(__file__).parents[1] / "agents" / "mcp" / "clients"
TOOLS = ["find_operations", "describe_operation", "read", "write", "job", "connect"]
#: what each client is to make of the server: six reads of three tickets, a bulk update of two, a call with a mistake
MADE = {"tools": TOOLS, "reads": [3] * 6, "succeeded": 2, "isError": True}

needs_npm = pytest.mark.skipif(NPM is None, reason="MCP_CONFORMANCE names no folder with node 22 and the npm client")
needs_fastmcp = pytest.mark.skipif(FASTMCP is None, reason="MCP_FASTMCP names no virtual environment with fastmcp")


@dataclass(frozen=True)
class Deployment:
    """Three front ends behind one address, and a connector."""

    balancer: RoundRobin
    headers: dict[str, str]
    connector_id: str

    @property
    def url(self) -> str:
        return f"{self.balancer.url}/mcp"

    @property
    def token(self) -> str:
        return self.headers["Authorization"].removeprefix("Bearer ")


@pytest.fixture(scope="module")
async def balanced() -> AsyncIterator[Deployment]:
    async with (
        arena(front_ends=3) as gateway,
        gateway.desk() as desk,
        round_robin([gateway.url_of(front_end) for front_end in gateway.front_ends]) as balancer,
    ):
        yield Deployment(balancer, desk.api.headers, desk.record["id"])


@pytest.fixture(autouse=True)
def every_front_end_answers(balanced: Deployment):
    """Each client must have talked to all of them."""
    balanced.balancer.answered.clear()
    yield
    assert len(balanced.balancer.answered) == 3


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
async def test_the_official_client(balanced: Deployment, mode: str):
    read = {"operation": "support-desk.tickets.list", "connector": balanced.connector_id}
    write = {
        "operation": "support-desk.ticket_bulk_updates.create",
        "params": {"ids": "1,2", "ticket": {"status": "solved"}},
        "connector": balanced.connector_id,
    }
    async with (
        httpx2.AsyncClient(headers=balanced.headers, timeout=60) as http,
        Client(streamable_http_client(balanced.url, http_client=http), mode=mode) as client,
    ):
        tools = [tool.name for tool in (await client.list_tools()).tools]
        reads = [(await client.call_tool("read", read)).structured_content["result"] for _ in range(6)]
        written = await client.call_tool("write", write)
        wrong = await client.call_tool("read", {**read, "operation": "support-desk.tickets.lst"})

    assert (tools, [len(records) for records in reads]) == (MADE["tools"], MADE["reads"])
    assert written.structured_content["result"]["succeeded"] == MADE["succeeded"]
    assert wrong.is_error


@needs_fastmcp
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_client_of_fastmcp(balanced: Deployment, mode: str):
    python = Path(FASTMCP or "") / "bin" / "python"

    made = await _printed(
        python, CLIENTS / "fastmcp_client.py", balanced.url, balanced.token, balanced.connector_id, mode
    )

    assert made == MADE


@needs_npm
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_npm_client(balanced: Deployment, mode: str):
    authorization = balanced.headers["Authorization"]

    made = await _printed(
        _node(), CLIENTS / "npm_client.mjs", balanced.url, authorization, balanced.connector_id, mode, cwd=NPM
    )

    assert made == MADE


@needs_npm
async def test_the_command_line_of_the_inspector(balanced: Deployment):
    tools = await _inspected(balanced, "--method", "tools/list")
    call = ["--method", "tools/call", "--tool-name", "read", "--tool-arg", "operation=support-desk.tickets.get"]
    ticket = await _inspected(balanced, *call, 'params={"ticket_id": 1}', f"connector={balanced.connector_id}")

    assert [tool["name"] for tool in tools["tools"]] == TOOLS
    assert ticket["structuredContent"]["result"]["id"] == 1


def _node() -> Path:
    return Path(NPM or "") / "node_modules" / "node" / "bin" / "node"


async def _inspected(balanced: Deployment, *arguments: str) -> Any:
    """What the inspector prints of one request."""
    command = Path(NPM or "") / "node_modules" / ".bin" / "mcp-inspector"
    header = f"Authorization: {balanced.headers['Authorization']}"
    target = ("--cli", balanced.url, "--transport", "http", "--header", header)
    return await _printed(command, *target, *arguments)


async def _printed(program: Path, *arguments: str | Path, cwd: str | None = None) -> Any:
    """The JSON that a program prints."""
    path = f"{_node().parent}:{os.environ['PATH']}" if NPM else os.environ["PATH"]
    process = await asyncio.create_subprocess_exec(
        program,
        *map(str, arguments),
        cwd=cwd,
        env={**os.environ, "PATH": path},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return json.loads(output)
