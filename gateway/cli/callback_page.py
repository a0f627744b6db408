"""A local page that receives the browser after consent (loopback redirect, RFC 8252 §7.3)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

_PAGE = b"""<!doctype html><meta charset=utf-8><title>Gateway</title>
<p style="font:1.2em sans-serif;margin:4em">%s You may close this page and go back to the terminal.</p>"""
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n"
    b"Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
)
_CONNECTED, _REFUSED = b"Done.", b"Nothing was connected."
#: a browser that says nothing for so many seconds is let go
_TIMEOUT = 10


@asynccontextmanager
async def callback_page() -> AsyncIterator[str]:
    """The page's address for as long as the block lasts; it says whether consent was given."""
    server = await asyncio.start_server(_greet, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


def _answer(head: bytes) -> bytes:
    """The page for a request; a query with `error` (RFC 6749 §4.1.2.1) tells of a refusal."""
    query = urlsplit(head.partition(b" ")[2].partition(b" ")[0]).query
    page = _PAGE % (_REFUSED if b"error" in parse_qs(query) else _CONNECTED)
    return _HEAD % len(page) + page


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(_TIMEOUT):
            head = await reader.readuntil(b"\r\n\r\n")
        writer.write(_answer(head))
        await writer.drain()
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return
    finally:
        writer.close()
