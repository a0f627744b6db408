"""Serves aiohttp applications of tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


@asynccontextmanager
async def served(app: web.Application, **options: Any) -> AsyncIterator[str]:
    """The URL of an application that listens within the block; `options` are those of `web.AppRunner`."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1, **options)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await asyncio.shield(runner.cleanup())
