"""What docs/how-to/agents.md shows works as it stands: the configuration of each host, and the examples in Python."""

import asyncio
import json
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.harness.caller import CREDENTIALS, Api

DOCUMENT = (Path(__file__).parents[2] / "docs/how-to/agents.md").read_text("utf-8")


def configurations() -> list[dict]:
    """Each server of each block of JSON and TOML."""
    blocks = re.findall(r"```(json|toml)\n(.*?)```", DOCUMENT, re.DOTALL)
    documents = [json.loads(text) if language == "json" else tomllib.loads(text) for language, text in blocks]
    members = [
        document[name]
        for document in documents
        for name in ("mcpServers", "servers", "mcp_servers")
        if name in document
    ]
    return [server for servers in members for server in servers.values()]


def test_every_usual_host_is_included():
    assert len(configurations()) == 4


@pytest.mark.parametrize("place", range(4))
async def test_a_host_that_copies_the_configuration_has_tools(running, place):
    server = configurations()[place]
    known = {
        "GATEWAY_URL": running.base_url,
        "GATEWAY_CLIENT_ID": running.client_id,
        "GATEWAY_CLIENT_SECRET": running.client_secret,
        **{f"SUPPORT_DESK_{name.upper()}": value for name, value in CREDENTIALS.items()},
    }
    assert server["command"] == "gateway"
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "gateway", *server["args"]],
        env={name: known[name] for name in server["env"]},
    )

    async with Client(parameters) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]

    assert names[:4] == ["find_operations", "describe_operation", "read", "write"]


#: a virtual environment with the version 1 of the official client
ONE = os.environ.get("MCP_ONE")
_RUN = "\nimport asyncio, json, sys\nprint(json.dumps(asyncio.run(tools(*sys.argv[1:]))))"


@pytest.mark.parametrize(
    ("used", "python"),
    [
        pytest.param(
            "ClientSession",
            f"{ONE}/bin/python",
            id="mcp 1.x",
            marks=pytest.mark.skipif(ONE is None, reason="MCP_ONE names no virtual environment with mcp 1.x"),
        ),
        pytest.param("httpx2", sys.executable, id="mcp 2.x"),
    ],
)
async def test_the_example_of_each_version_of_the_official_client_lists_the_tools(running, used: str, python: str):
    (example,) = [text for text in re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL) if used in text]
    async with Api.of(running.base_url, running.client_id, running.client_secret) as api:
        token = api.headers["Authorization"].removeprefix("Bearer ")

    process = await asyncio.create_subprocess_exec(
        python, "-c", example + _RUN, running.base_url, token, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()

    assert json.loads(printed)[:4] == ["find_operations", "describe_operation", "read", "write"]
