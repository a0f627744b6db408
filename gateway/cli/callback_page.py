"""A local page that receives the browser after consent (loopback redirect, RFC 8252 §7.3)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import parse_qsl, urlsplit

_PAGE = b"""<!doctype html><meta charset=utf-8><title>Gateway</title>
<p style="font:1.2em sans-serif;margin:4em">%s You may close this page and go back to the terminal.</p>"""
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n"
    b"Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
)
_CONNECTED, _REFUSED = b"Done.", b"Nothing was connected."
#: seconds after which the idle connection of a browser is closed
_TIMEOUT = 10


@asynccontextmanager
async def callback_page(answered: asyncio.Future[Mapping[str, str]] | None = None) -> AsyncIterator[str]:
    """Serve the page until the block ends, and yield its URL. The page shows whether consent was given.

    `answered` gets the first query that has a `state`.
    """
    server = await asyncio.start_server(partial(_respond, answered), "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


def _query(head: bytes) -> dict[str, str]:
    target = head.partition(b" ")[2].partition(b" ")[0].decode("ascii", "replace")
    return dict(parse_qsl(urlsplit(target).query))


def _answer(query: Mapping[str, str]) -> bytes:
    """The response to a request; `error` in the query (RFC 6749 §4.1.2.1) means that consent was refused."""
    page = _PAGE % (_REFUSED if "error" in query else _CONNECTED)
    return _HEAD % len(page) + page


async def _respond(
    answered: asyncio.Future[Mapping[str, str]] | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        async with asyncio.timeout(_TIMEOUT):
            head = await reader.readuntil(b"\r\n\r\n")
        query = _query(head)
        writer.write(_answer(query))
        await writer.drain()
        if answered is not None and "state" in query and not answered.done():
            answered.set_result(query)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return
    finally:
        writer.close()
