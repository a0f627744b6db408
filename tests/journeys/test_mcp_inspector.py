"""The inspector's command line at a real gateway, where Node and the inspector are at hand."""

import json
import os
import subprocess
from pathlib import Path

import pytest

FOLDER = os.environ.get("MCP_CONFORMANCE")
pytestmark = pytest.mark.skipif(
    FOLDER is None, reason="MCP_CONFORMANCE names no folder with node 22 and @modelcontextprotocol/inspector"
)


def inspect(running, api, *arguments: str) -> dict:
    """What the inspector prints of one request."""
    modules = Path(FOLDER or "") / "node_modules"
    environment = {**os.environ, "PATH": f"{modules / 'node/bin'}:{os.environ['PATH']}"}
    command = [str(modules / ".bin/mcp-inspector"), "--cli", f"{running.base_url}/mcp", "--transport", "http"]
    outcome = subprocess.run(
        [*command, "--header", f"Authorization: {api.headers['Authorization']}", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    return json.loads(outcome.stdout)


async def test_the_inspector_lists_and_calls(running, api, support_desk):
    tools = inspect(running, api, "--method", "tools/list")
    arguments = [
        "operation=support-desk.tickets.get",
        'params={"ticket_id": 1}',
        f"connector={support_desk.record['id']}",
    ]
    ticket = inspect(running, api, "--method", "tools/call", "--tool-name", "read", "--tool-arg", *arguments)

    assert tools["tools"][0]["name"] == "find_operations"
    assert ticket["structuredContent"]["result"]["id"] == 1
