"""The conformance suite of the protocol, if Node and the suite are installed.

`npm install node@22 @modelcontextprotocol/conformance@0.2.0-alpha.12` in a folder, and its path in MCP_CONFORMANCE.
"""

import asyncio
import os
import re
from pathlib import Path

import pytest

FOLDER = os.environ.get("MCP_CONFORMANCE")
#: number of scenarios of version 2026-07-28 that a server must pass, and of those of the extension for tasks
SCENARIOS, OF_TASKS = 37, 10

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        FOLDER is None, reason="MCP_CONFORMANCE names no folder with node 22 and @modelcontextprotocol/conformance"
    ),
]


@pytest.fixture(scope="module")
async def report(fixture_url: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    modules = Path(FOLDER or "") / "node_modules"
    process = await asyncio.create_subprocess_exec(
        str(modules / "node/bin/node"),
        str(modules / "@modelcontextprotocol/conformance/dist/index.js"),
        *("server", "--url", fixture_url, "--requirements", "2026-07-28"),
        *("--output-dir", str(tmp_path_factory.mktemp("conformance"))),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return output.decode()


async def test_every_scenario_passes(report):
    lines = re.findall(r"^(✓|✗) ([\w-]+): (\d+) passed, (\d+) failed", report, re.MULTILINE)

    assert [name for mark, name, _, failed in lines if mark != "✓" or failed != "0"] == []
    assert len([name for _, name, _, _ in lines if name.startswith("tasks-")]) == OF_TASKS
    assert len(lines) >= SCENARIOS + OF_TASKS
