import asyncio
from unittest.mock import Mock

import pytest
from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol

from gateway.foundation.aio.bodies import read_body


async def fed(pieces: list[bytes], reader: StreamReader) -> None:
    for piece in pieces:
        reader.feed_data(piece)
        await asyncio.sleep(0)  # the reader takes the piece before the next one arrives
    reader.feed_eof()


@pytest.mark.parametrize(
    ("pieces", "max_bytes", "expected"),
    [
        ([b"whole"], 10, b"whole"),
        ([b"in", b" ", b"pieces"], 10, b"in pieces"),
        ([b"as", b" long"], 7, b"as long"),
        ([b"too", b" long", b", unread"], 7, b"too long"),
        ([], 10, b""),
    ],
)
async def test_a_body_is_read_to_its_end_or_beyond_its_limit(pieces, max_bytes, expected):
    reader = StreamReader(Mock(spec=BaseProtocol, _reading_paused=False), 2**16)

    body, _ = await asyncio.gather(read_body(reader, max_bytes), fed(pieces, reader))

    assert body == expected
