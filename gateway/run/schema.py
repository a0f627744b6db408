"""Stops a process whose database has a schema that this version cannot use."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from gateway.errors import Unavailable
from gateway.foundation.aio.loops import running
from gateway.foundation.db.migrate import SchemaError, require_schema
from gateway.foundation.db.pool import Database

log = logging.getLogger(__name__)

#: seconds between checks of the schema while PostgreSQL is unavailable
_INTERVAL = 1.0


@asynccontextmanager
async def schema_required(database: Database) -> AsyncIterator[None]:
    """Raise SchemaError for a schema that this version cannot use, before the block.

    If PostgreSQL is unavailable, the process starts and the check follows; then a schema that cannot be used ends it.
    """
    try:
        await _check(database)
    except Unavailable:
        async with running(_check_later(database)):
            yield
    else:
        yield


async def _check(database: Database) -> None:
    async with database.system() as connection:
        await require_schema(connection)


async def _check_later(database: Database) -> None:
    while True:
        await asyncio.sleep(_INTERVAL)
        try:
            await _check(database)
        except Unavailable:
            continue
        except (SchemaError, asyncpg.PostgresError) as error:
            log.critical("the process stops: %s", error)
            os.kill(os.getpid(), signal.SIGTERM)
        return
