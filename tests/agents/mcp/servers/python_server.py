"""A calculator as an MCP server: `python_server.py PORT`, with whichever of fastmcp, mcp 2.x and mcp 1.x is there."""

import sys
from typing import Any

PORT = int(sys.argv[1])


def add(a: int, b: int = 0) -> int:
    """Adds two numbers."""
    return a + b


def divide(a: int, b: int) -> float:
    """Divides a number by another."""
    if b == 0:
        raise ValueError("a number cannot be divided by zero")
    return a / b


def serve(server: Any, transport: str, **options: Any) -> None:
    for tool in (add, divide):
        server.tool()(tool)
    server.run(transport=transport, **options)


try:
    from fastmcp import FastMCP
except ImportError:
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        from mcp.server.fastmcp import FastMCP as FirstFastMCP

        serve(FirstFastMCP("calculator", host="127.0.0.1", port=PORT), "streamable-http")
    else:
        serve(MCPServer("calculator"), "streamable-http", host="127.0.0.1", port=PORT)
else:
    serve(FastMCP("calculator"), "http", host="127.0.0.1", port=PORT, path="/mcp")
