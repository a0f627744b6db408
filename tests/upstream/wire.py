"""A server that says what its script tells it to, byte by byte, for tests of what goes over the wire."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from yarl import URL

#: the connection is closed without an answer; no answer comes at all
CLOSE, SILENCE = b"", None


def answer(body: bytes = b"{}", status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


OK = answer()


class Wire:
    """A server that notes the requests and says to each what comes next in its script."""

    def __init__(self) -> None:
        self.script: deque[bytes | None] = deque()
        self.received: list[str] = []
        self.origin = URL()
        self._closing = asyncio.Event()

    def says(self, *answers: bytes | None) -> None:
        self.script.extend(answers)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Wire"]:
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.origin = URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        yield self
        self._closing.set()
        server.close()
        await server.wait_closed()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((int(line[16:]) for line in head.split("\r\n") if line.startswith("Content-Length: ")), 0)
        await reader.readexactly(length)
        self.received.append(head)
        said = self.script.popleft()
        if said is SILENCE:
            await self._closing.wait()
            return False
        writer.write(said)
        await writer.drain()
        return said.endswith(b"\r\n\r\n{}")  # only a whole answer leaves the connection open
