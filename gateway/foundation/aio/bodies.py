"""Reads the body of an HTTP response, whose bytes arrive in pieces of any size."""

from aiohttp import StreamReader


async def read_body(content: StreamReader, max_bytes: int) -> bytes:
    """The body to its end. A longer body is not read further: the result then has more than `max_bytes`.

    One `content.read(n)` returns what has arrived, which may be a part of a short body.
    """
    body = bytearray()
    while len(body) <= max_bytes and (piece := await content.readany()):
        body += piece
    return bytes(body)
