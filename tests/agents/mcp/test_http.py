"""The HTTP transport, with requests of clients of each protocol version."""

import asyncio
import json

import aiohttp
import pytest
from aiohttp import web
from mcp_types.methods import validate_server_result

from gateway.agents.mcp import http
from gateway.agents.mcp.context import Context
from gateway.agents.mcp.messages import notification
from tests.agents.mcp import fixture_server
from tests.agents.mcp.conftest import headers_of
from tests.harness.serving import served

EVENTS = "text/event-stream"
LEGACY = {"MCP-Protocol-Version": "2025-06-18", "Mcp-Method": None, "Mcp-Name": None}


def message(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.parametrize("method", ["server/discover", "tools/list", "resources/list", "prompts/list"])
async def test_every_list_matches_the_schema_of_its_version(raw, method):
    reply = await raw(method)

    assert reply.status == 200
    validate_server_result(method, "2026-07-28", reply.result)
    assert reply.result["resultType"] == "complete"
    assert reply.result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "fixture"
    assert {"ttlMs", "cacheScope"} <= reply.result.keys()


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"])
async def test_a_list_has_one_page_so_that_every_cursor_is_invalid(raw, method):
    reply = await raw(method, {"cursor": "made-up"})
    earlier = {**LEGACY, "MCP-Protocol-Version": "2025-11-25"}
    reply_to_earlier = await raw("", body=message(method, cursor=""), headers=earlier)

    assert (reply.status, reply.code, reply_to_earlier.code) == (400, -32602, -32602)


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
async def test_a_client_of_an_earlier_version_is_served_without_a_session(raw, version):
    hello = message("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "c", "version": "1"})
    started = await raw("", body=hello, headers={**LEGACY, "MCP-Protocol-Version": None})
    listed = await raw("", body=message("tools/list"), headers={**LEGACY, "MCP-Protocol-Version": version})

    assert started.result["protocolVersion"] == version
    assert "Mcp-Session-Id" not in started.headers
    validate_server_result("tools/list", version, listed.result)
    assert {"resultType", "ttlMs", "cacheScope", "_meta"} & listed.result.keys() == set()


async def test_a_client_of_the_version_without_a_version_header_is_served(raw):
    hello = message(
        "initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={"name": "c", "version": "1"}
    )
    headers = {**LEGACY, "MCP-Protocol-Version": None}
    started = await raw("", body=hello, headers=headers)
    listed = await raw("", body=message("tools/list"), headers=headers)

    assert started.result["protocolVersion"] == "2025-03-26"
    assert listed.result["tools"]
    validate_server_result("tools/list", "2025-03-26", listed.result)


async def test_an_unsupported_older_version_is_answered_with_a_supported_one(raw):
    hello = message(
        "initialize", protocolVersion="2024-11-05", capabilities={}, clientInfo={"name": "c", "version": "1"}
    )

    reply = await raw("", body=hello, headers={**LEGACY, "MCP-Protocol-Version": None})

    assert reply.result["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, -32700),
        ([], 400, -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, 400, -32600),
        ({"jsonrpc": "2.0", "id": 1}, 400, -32600),
        ({"jsonrpc": "2.0", "id": None, "method": "tools/list"}, 400, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}, 400, -32602),
        ({"jsonrpc": "2.0", "id": "x" * 1001, "method": "tools/list"}, 400, -32600),
        (
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"progressToken": "x" * 1001}}},
            400,
            -32602,
        ),
    ],
)
async def test_a_body_that_is_not_a_message_is_refused(raw, body, status, code):
    reply = await raw("tools/list", body=body)

    assert (reply.status, reply.code) == (status, code)


@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("ping", {}, 404, -32601),
        ("tasks/list", {}, 404, -32601),
        ("tools/call", {"name": "nothing"}, 400, -32602),
        ("resources/read", {"uri": "test://nothing"}, 400, -32602),
        ("tasks/get", {"taskId": "t"}, 400, -32021),
        ("tools/call", {"name": "failing_job"}, 400, -32021),
    ],
)
async def test_an_error_has_its_code_and_status(raw, method, params, status, code):
    reply = await raw(method, params)

    assert (reply.status, reply.code, reply.document["id"]) == (status, code, 1)


async def test_invalid_arguments_are_a_result_for_the_model(raw):
    reply = await raw("tools/call", {"name": "greet", "arguments": {"name": 1}})

    assert reply.result["isError"]
    assert "name: 1 is not of type" in reply.result["content"][0]["text"]


async def test_a_notification_is_accepted_without_a_response(raw):
    reply = await raw("", body={"jsonrpc": "2.0", "method": "notifications/initialized"})

    assert (reply.status, reply.document) == (202, "")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_get_and_delete_are_not_allowed(fixture_url, method):
    async with aiohttp.request(method, fixture_url) as response:
        assert (response.status, response.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(("origin", "status"), [("http://evil.example.com", 403), ("null", 403), (None, 200)])
async def test_a_request_from_another_origin_is_refused(raw, origin, status):
    assert (await raw("tools/list", headers={"Origin": origin})).status == status


async def test_a_request_from_the_servers_own_origin_is_allowed(raw):
    origin = raw.url.removesuffix("/mcp").replace("127.0.0.1", "localhost")

    assert (await raw("tools/list", headers={"Origin": origin})).status == 200


async def test_progress_makes_the_response_a_stream(raw):
    reply = await raw("tools/call", {"name": "test_tool_with_progress", "_meta": {"progressToken": "p"}})

    documents = [json.loads(line[6:]) for line in reply.document.splitlines() if line.startswith("data: ")]
    assert reply.headers["Content-Type"] == EVENTS
    assert [each["params"]["progress"] for each in documents[:-1]] == [0, 50, 100]
    assert documents[-1]["result"]["content"][0]["text"] == "done"


async def test_a_client_that_does_not_accept_streams_gets_json(raw):
    params = {"name": "test_tool_with_progress", "_meta": {"progressToken": "p"}}

    reply = await raw("tools/call", params, headers={"Accept": "application/json"})

    assert reply.result["content"][0]["text"] == "done"


async def test_notifications_wait_for_a_client_that_does_not_read():
    sent, size = 0, 1 << 20

    class Endless:
        async def serve(self, context: Context) -> dict[str, object]:
            nonlocal sent
            while True:
                await context.send(notification("notifications/message", {"data": "x" * size}))
                sent += 1

    async def answer(request: web.Request) -> web.StreamResponse:
        return await http.handle(request, Endless(), await request.json())

    app = web.Application()
    app.router.add_post("/", answer)
    params = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    headers = headers_of("server/discover", params)
    async with (
        served(app, handler_cancellation=True) as url,
        aiohttp.ClientSession() as session,
        session.post(url, json=message("server/discover", **params), headers=headers) as reply,
    ):
        await reply.content.readany()
        before = 0
        while sent != before:  # until the buffers between them are full
            before = sent
            await asyncio.sleep(0.3)

    assert 0 < sent < 100


async def test_closing_the_stream_cancels_the_call(raw):
    fixture_server.CANCELED.clear()
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 1,
    }
    params = {"name": "wait_until_canceled", "_meta": meta}
    async with (
        aiohttp.ClientSession() as session,
        session.post(raw.url, json=message("tools/call", **params), headers=headers_of("tools/call", params)) as reply,
    ):
        await reply.content.readline()

    assert await asyncio.wait_for(fixture_server.CANCELED.wait(), 10)
