"""The stdio transport, without a process."""

import asyncio
import json

from gateway.agents.mcp.stdio import StdioServer, serve
from tests.agents.mcp.fixture_server import fixture_server


class Lines:
    """Collects what is written."""

    def __init__(self):
        self.documents = []

    def write(self, data):
        self.documents.append(json.loads(data))

    async def drain(self):
        pass


async def test_messages_that_follow_initialize_at_once_are_answered_after_it():
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    sent = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    reader, lines = asyncio.StreamReader(), Lines()
    reader.feed_data(b"".join(json.dumps(each).encode() + b"\n" for each in sent))
    reader.feed_eof()

    await serve(reader, lines, StdioServer(fixture_server()).answer)

    assert [each["id"] for each in lines.documents] == [1, 2]
    assert lines.documents[0]["result"]["protocolVersion"] == "2025-06-18"
    assert lines.documents[1]["result"]["tools"]
