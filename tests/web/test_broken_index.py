"""An index of operations that cannot be built costs the search only: agents still connect, read and write."""

from contextlib import nullcontext
from math import inf

import pytest

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.messages import RpcError, message_of
from gateway.agents.tools.hosted import HostedBackend, HostedCaller, HostedJobs
from gateway.agents.tools.server import Servers
from gateway.foundation.aio.remembered import Remembered
from gateway.foundation.mcp import HANDSHAKE_VERSIONS
from tests.harness.clients import caller_of


@pytest.fixture
async def serve(front):
    """Sends a request to the server with the six tools of a gateway whose index fails."""

    async def fails():
        raise LookupError("the index is broken")

    server = Servers(HostedBackend(front.services, Remembered(fails, inf)), HostedJobs(front.services)).general
    organization_id = await front.organization()
    async with front.api(organization_id) as api:
        await api.connector()
    caller = HostedCaller(caller_of(organization_id), "r", front.base_url, nullcontext)

    async def ignore(notification):
        pass

    async def request(method, params):
        document = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await server.serve(
            Context(message=message_of(document), version=HANDSHAKE_VERSIONS[0], send=ignore, caller=caller)
        )

    return request


async def test_agents_connect_and_see_the_tools(serve):
    info = {"name": "test", "version": "1"}
    hello = {"protocolVersion": HANDSHAKE_VERSIONS[0], "capabilities": {}, "clientInfo": info}

    assert (await serve("initialize", hello))["serverInfo"]["name"] == "agent-connector-gateway"
    assert len((await serve("tools/list", {}))["tools"]) == 6


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read", {"operation": "support-desk.tickets.list"}),
        (
            "write",
            {
                "operation": "support-desk.tickets.create",
                "params": {"ticket": {"subject": "s", "comment": {"body": "b"}}},
            },
        ),
        ("describe_operation", {"operation": "support-desk.tickets.list"}),
        ("connect", {}),
    ],
)
async def test_other_tools_work(serve, name, arguments):
    result = await serve("tools/call", {"name": name, "arguments": arguments})

    assert not result.get("isError"), result


async def test_only_the_search_fails(serve):
    with pytest.raises(RpcError, match="internal error"):
        await serve("tools/call", {"name": "find_operations", "arguments": {"task": "list tickets"}})
