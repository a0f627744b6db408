"""Serves the front end on its socket until it receives a signal to stop, then drains it."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator

from aiohttp import web

from gateway.foundation.aio.deadline import Deadline
from gateway.foundation.aio.memory import tune_gc, tune_malloc
from gateway.foundation.aio.starting import unless_stopped
from gateway.run.services import CLOSING, announce_restart
from gateway.settings import Settings
from gateway.web.keys import IS_DRAINING, SERVICES
from gateway.web.server.connection_guard import ConnectionLimits, GuardedRunner

log = logging.getLogger(__name__)

#: seconds between becoming unready and closing the listening sockets, so that load balancers notice
_NOTICE = 0.5
_BACKLOG = 1024
#: seconds for a cancelled request to end after the drain
_CUT_OFF = 0.1


async def serve(
    settings: Settings, create_app: Callable[[Settings], web.Application], *, reuse_port: bool = False
) -> None:
    """Answer requests until SIGTERM or SIGINT; then become unready, finish requests and jobs, and return."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stopping.set)
    app = create_app(settings)
    runner = GuardedRunner(
        app,
        ConnectionLimits(connections=settings.max_connections),
        shutdown_timeout=_CUT_OFF,
    )
    try:
        with unless_stopped(stopping):
            await runner.setup()
        if stopping.is_set():
            return
        tune_gc()
        tune_malloc()
        host, port = settings.address
        assert runner.server is not None
        listener = await loop.create_server(runner.server, host, port, backlog=_BACKLOG, reuse_port=reuse_port or None)
        log.info("front end is listening", extra={"bind": settings.bind})
        await announce_restart(app[SERVICES])
        await stopping.wait()
        deadline = Deadline(settings.shutdown_grace)
        app[IS_DRAINING].set()
        app[SERVICES].jobs.waiters.stop_waiting()
        app[SERVICES].events.feed.stop_waiting()
        log.info("front end stops")
        await asyncio.gather(asyncio.sleep(_NOTICE), announce_restart(app[SERVICES]))
        await stop_listening(listener, runner.server)
        await _drain(app, runner, deadline.left(reserve=CLOSING))
    finally:
        await runner.cleanup()


async def stop_listening(listener: asyncio.Server, server: web.Server) -> None:
    """Accept the connections in the backlog, which would be reset otherwise, and close the listening sockets."""
    loop = asyncio.get_running_loop()
    # No await between the last accept and the close: another connection could arrive.
    waiting = [connection for listening in listener.sockets for connection in _backlog_of(listening.fileno())]
    listener.close()
    for connection in waiting:
        await loop.connect_accepted_socket(server, connection)


def _backlog_of(fileno: int) -> Iterator[socket.socket]:
    with socket.socket(fileno=os.dup(fileno)) as listening:
        listening.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                connection, _ = listening.accept()
                connection.setblocking(False)
                yield connection


async def _drain(app: web.Application, runner: GuardedRunner, seconds: float) -> None:
    """Wait `seconds` for requests and jobs in progress, concurrently; notify workers of jobs that have not ended."""
    services, server = app[SERVICES], runner.server
    assert server is not None
    server.pre_shutdown()
    left, _ = await asyncio.gather(services.jobs.runner.drain(seconds), _requests_ended(server, seconds))
    for job in left:
        await services.jobs.wakeup.notify(job.id, job.attempt)


async def _requests_ended(server: web.Server, seconds: float) -> None:
    """Wait until no request is in progress, at most `seconds`; aiohttp itself waits for twice its timeout."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await server.shutdown(seconds)
