"""Feeds on a real database."""

from uuid import UUID, uuid4

import pytest

from gateway.access.identity.store import IdentityStore
from gateway.events.feed import Feed
from gateway.foundation.db.pool import Database


@pytest.fixture
async def organization_id(database: Database) -> UUID:
    return (await IdentityStore(database).create_organization(f"o-{uuid4().hex}")).id


@pytest.fixture
def feed(database: Database) -> Feed:
    return Feed(database)
