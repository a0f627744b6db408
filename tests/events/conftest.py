"""Feeds on a real database."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from gateway.db.pool import Database
from gateway.events.feed import Feed
from gateway.identity.store import IdentityStore


@pytest.fixture
async def organization_id(database: Database) -> UUID:
    return (await IdentityStore(database).create_organization(f"o-{uuid4().hex}")).id


@pytest.fixture
def feed(database: Database) -> Feed:
    return Feed(database)


@pytest.fixture
def sql(database: Database) -> Callable[..., Any]:
    """`await sql(query, *arguments)`: rows, read or written beside the stores."""

    async def run(query: str, *arguments: Any) -> list[Any]:
        async with database.system() as connection:
            return list(await connection.fetch(query, *arguments))

    return run
