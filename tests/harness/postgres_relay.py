"""A relay to PostgreSQL that tests can cut or silence."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from yarl import URL

_CHUNK = 1 << 16


class PostgresRelay:
    """Relays bytes between clients at `url` and the server, if `is_open` and `flows` allow it."""

    def __init__(self, server: URL) -> None:
        self._server = server
        #: if false, connections are refused
        self.is_open = True
        #: while it is not set, connections stay open and no bytes are relayed
        self.flows = asyncio.Event()
        self.flows.set()
        #: set when bytes have arrived that are not relayed
        self.holds = asyncio.Event()
        self._connections: set[asyncio.StreamWriter] = set()
        self.url = ""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["PostgresRelay"]:
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        self.url = str(URL.build(scheme="postgresql", user=self._server.user, password=self._server.password,
                                 host="127.0.0.1", port=port, path=self._server.path))  # fmt: skip
        try:
            yield self
        finally:
            self.flows.set()
            self.cut()
            listener.close()
            await listener.wait_closed()

    def point(self, url: str) -> None:
        """Relay new connections to another server, and break those to the present one."""
        self._server = URL(url)
        self.cut()

    def cut(self) -> None:
        """Break all connections."""
        for connection in self._connections:
            connection.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:
            writer.transport.abort()
            return
        try:
            server_reader, server_writer = await self._connected()
        except OSError:
            writer.transport.abort()
            return
        writers = {writer, server_writer}
        self._connections |= writers
        try:
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(self._pass_on(reader, server_writer))
                both_ways.create_task(self._pass_on(server_reader, writer))
        finally:
            self._connections -= writers
            for each in writers:
                each.transport.abort()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        directory = self._server.query.get("host", "")
        port = self._server.port or int(self._server.query.get("port", 5432))
        if directory.startswith("/"):
            return await asyncio.open_unix_connection(f"{directory}/.s.PGSQL.{port}")
        return await asyncio.open_connection(self._server.host, port)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                if not self.flows.is_set():
                    self.holds.set()
                    await self.flows.wait()
                writer.write(chunk)
                await writer.drain()
        writer.transport.abort()


@asynccontextmanager
async def postgres_relay(url: str) -> AsyncIterator[PostgresRelay]:
    """A relay to the server and database of `url`, within the block."""
    async with PostgresRelay(URL(url)).listening() as relay:
        yield relay
