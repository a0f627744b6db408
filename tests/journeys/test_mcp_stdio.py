"""`gateway mcp` as hosts start it: the official client talks to it over stdio."""

import json
import subprocess
import sys

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.harness.caller import CREDENTIALS
from tests.harness.hostile_kinds import write_kind

COMMAND = ["-m", "gateway", "mcp"]


def bridge(running, *arguments: str) -> StdioServerParameters:
    """The command as a host's configuration has it."""
    environment = {
        **running.environment,
        "GATEWAY_URL": running.base_url,
        "GATEWAY_CLIENT_ID": running.client_id,
        "GATEWAY_CLIENT_SECRET": running.client_secret,
    }
    return StdioServerParameters(command=sys.executable, args=[*COMMAND, *arguments], env=environment)


def in_process(running) -> StdioServerParameters:
    credentials = {f"SUPPORT_DESK_{name.upper()}": value for name, value in CREDENTIALS.items()}
    arguments = [*COMMAND, "--in-process", "support-desk", "--upstream", running.sandbox_url]
    return StdioServerParameters(command=sys.executable, args=arguments, env=credentials)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_host_reaches_a_gateway(running, support_desk, mode):
    arguments = {
        "operation": "support-desk.tickets.list",
        "params": {"per_page": 1},
        "connector": support_desk.record["id"],
    }
    async with Client(bridge(running), mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("read", arguments)

    assert tools == ["find_operations", "describe_operation", "read", "write", "job", "connect"]
    assert len(result.structured_content["result"]) == 1


async def test_a_host_may_have_a_tool_for_each_operation_of_a_kind(running):
    async with Client(bridge(running, "--kind", "team-chat")) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]

    assert "team-chat__channels__list" in names


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_host_reaches_an_application_without_a_gateway(running, mode):
    listing = {"operation": "support-desk.tickets.list", "params": {"per_page": 20}, "max_bytes": 500}
    async with Client(in_process(running), mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("find_operations", {"task": "list tickets"})
        result = await client.call_tool("read", listing)
        part = await client.read_resource(f"{result.structured_content['resource']}?offset=1&limit=2")

    assert tools == ["find_operations", "describe_operation", "read", "write"]
    assert found.structured_content["data"][0]["operation"] == "support-desk.tickets.list"
    assert len(part.contents[0].text.splitlines()) == 2


def test_credentials_that_are_missing_are_named_with_their_variables():
    outcome = subprocess.run(
        [sys.executable, *COMMAND, "--in-process", "support-desk"],
        env={},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert outcome.returncode == 2
    assert "SUPPORT_DESK_API_TOKEN" in outcome.stderr


def test_a_kind_of_the_folders_in_the_environment_is_served_in_process(tmp_path):
    write_kind(tmp_path, "fleet")

    outcome = subprocess.run(
        [sys.executable, *COMMAND, "--in-process", "fleet"],
        env={"GATEWAY_SPECS": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert outcome.returncode == 2
    assert "credentials are read from FLEET_API_KEY" in outcome.stderr


def test_a_line_that_is_no_message_is_answered_and_the_next_one_served(running):
    lines = ["{", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "nothing", "params": {}})]
    server = in_process(running)

    outcome = subprocess.run(
        [server.command, *server.args],
        env=server.env,
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    codes = [json.loads(line)["error"]["code"] for line in outcome.stdout.splitlines()]
    assert codes == [-32700, -32602]
