"""Connections in the backlog of the listening socket when the process stops listening."""

import asyncio
import socket

import pytest
from aiohttp import web

from gateway.web.server.connection_guard import ConnectionLimits, GuardedRunner
from gateway.web.server.serve import stop_listening

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


async def hello(_request: web.Request) -> web.Response:
    return web.Response(text="hello")


async def test_connections_in_the_backlog_are_answered_and_later_ones_refused():
    app = web.Application()
    app.router.add_get("/", hello)
    runner = GuardedRunner(app, ConnectionLimits(), shutdown_timeout=1)
    await runner.setup()
    listener = await asyncio.get_running_loop().create_server(runner.server, "127.0.0.1", 0, backlog=100)
    address = listener.sockets[0].getsockname()
    waiting = [socket.create_connection(address) for _ in range(50)]

    await stop_listening(listener, runner.server)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)
    answers = [await _answer(connection) for connection in waiting]
    await runner.cleanup()

    assert all(answer.startswith(b"HTTP/1.1 200 OK") for answer in answers)


async def _answer(connection: socket.socket) -> bytes:
    reader, writer = await asyncio.open_connection(sock=connection)
    writer.write(REQUEST)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer
