"""What the client of fastmcp makes of a server: fastmcp_client.py URL TOKEN CONNECTOR MODE, where it is installed."""

import asyncio
import json
import sys

from fastmcp import Client


async def main(url: str, token: str, connector: str, mode: str) -> None:
    read = {"operation": "support-desk.tickets.list", "connector": connector}
    write = {
        "operation": "support-desk.ticket_bulk_updates.create",
        "params": {"ids": "1,2", "ticket": {"status": "solved"}},
        "connector": connector,
    }
    async with Client(url, auth=token, mode=mode) as client:
        tools = [tool.name for tool in await client.list_tools()]
        reads = [len((await client.call_tool("read", read)).structured_content["result"]) for _ in range(6)]
        written = await client.call_tool("write", write)
        wrong = await client.call_tool("read", {**read, "operation": "support-desk.tickets.lst"}, raise_on_error=False)
    succeeded = written.structured_content["result"]["succeeded"]
    print(json.dumps({"tools": tools, "reads": reads, "succeeded": succeeded, "isError": wrong.is_error}))


asyncio.run(main(*sys.argv[1:]))
