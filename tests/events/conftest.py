"""Feeds on a real database."""

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
