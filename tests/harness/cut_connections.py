"""A relay to a gateway, which aborts connections after a number of bytes from the caller."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from yarl import URL


class CutConnections:
    """Relays bytes; a connection that reaches the next number in `cuts` is aborted."""

    def __init__(self, target: str, cuts: Sequence[int]) -> None:
        self._target = URL(target)
        #: the remaining cuts
        self.cuts = list(cuts)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "CutConnections":
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there, onwards = await asyncio.open_connection(self._target.host, self._target.port)
        back = asyncio.create_task(self._back(there, writer))
        try:
            await self._outwards(reader, onwards)
        finally:
            back.cancel()
            for each in (writer, onwards):
                each.transport.abort()
            await asyncio.gather(back, return_exceptions=True)
            self._tasks.discard(task)

    async def _outwards(self, reader: asyncio.StreamReader, onwards: asyncio.StreamWriter) -> None:
        """Relay the caller's bytes until their end or the next cut."""
        passed = 0
        with suppress(OSError):
            while chunk := await reader.read(64 << 10):
                passed += len(chunk)
                onwards.write(chunk)
                await onwards.drain()
                if self.cuts and passed >= self.cuts[0]:
                    del self.cuts[0]
                    return

    async def _back(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await there.read(64 << 10):
                writer.write(chunk)
                await writer.drain()
