"""Where a browser lands after consent: a page on this machine that says what to do next (RFC 8252 §7.3)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_PAGE = b"""<!doctype html><meta charset=utf-8><title>Gateway</title>
<p style="font:1.2em sans-serif;margin:4em">Done. You may close this page and go back to the terminal.</p>"""
_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n"
    b"Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n%s"
) % (len(_PAGE), _PAGE)
#: a browser that says nothing for so many seconds is let go
_TIMEOUT = 10


@asynccontextmanager
async def callback_page() -> AsyncIterator[str]:
    """The page's address for as long as the block lasts; what the browser brings is not read."""
    server = await asyncio.start_server(_greet, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(_TIMEOUT):
            await reader.readuntil(b"\r\n\r\n")
        writer.write(_ANSWER)
        await writer.drain()
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return
    finally:
        writer.close()
