"""HTTP as bytes on a socket, for faults that a client library hides: second heads, and truncated bodies."""

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

#: the line that begins a response
STATUS_LINE = b"HTTP/1."


def head_of(method: str, path: str, headers: Mapping[str, str], version: str = "1.1") -> bytes:
    """The head of a request that closes the connection."""
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "Host: test", "Connection: close", "", ""]).encode()


async def sent(base_url: str, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A new connection on which the request was sent."""
    address = urlsplit(base_url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(request)
    await writer.drain()
    return reader, writer


async def received(reader: asyncio.StreamReader) -> tuple[bytes, bool]:
    """All remaining bytes, and whether the connection was reset."""
    data = b""
    try:
        while chunk := await reader.read(1 << 16):
            data += chunk
    except ConnectionResetError:
        return data, True
    return data, False
