"""Serving: the front end on its socket until it is told to stop, then drained."""

import asyncio
import logging
import signal

from aiohttp import web

from gateway.aio.gc_tuning import tune_gc
from gateway.http.app import create_app
from gateway.http.connection_guard import ConnectionLimits, DoorRunner
from gateway.http.keys import IS_DRAINING, LIMITS, SERVICES
from gateway.http.turnstile import Turnstile
from gateway.settings import Settings

log = logging.getLogger(__name__)

#: seconds between turning unready and taking no more connections, for load balancers to notice
_NOTICE = 0.5
_BACKLOG = 1024


async def serve(settings: Settings, *, reuse_port: bool = False) -> None:
    """Answer requests until SIGTERM or SIGINT; then turn unready, finish what runs, and return."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stopping.set)
    app = create_app(settings)
    runner = DoorRunner(
        app,
        ConnectionLimits(connections=settings.max_connections),
        Turnstile(app[LIMITS]),
        shutdown_timeout=settings.shutdown_grace,
    )
    await runner.setup()
    tune_gc()
    try:
        host, port = settings.address
        site = web.TCPSite(runner, host, port, backlog=_BACKLOG, reuse_port=reuse_port or None)
        await site.start()
        log.info("front end is listening", extra={"bind": settings.bind})
        await stopping.wait()
        app[IS_DRAINING].set()
        app[SERVICES].watch.stop_waiting()
        log.info("front end stops")
        await asyncio.sleep(_NOTICE)
        await site.stop()
        services = app[SERVICES]
        for job in await services.runner.drain(settings.shutdown_grace):
            await services.wakeup.notify(job.id, job.attempt)
    finally:
        await runner.cleanup()
