"""Organizations and clients on a real PostgreSQL."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest

from gateway.access.identity.attempts import Attempts
from gateway.access.identity.store import IdentityStore
from gateway.access.identity.tokens import Tokens, hashed
from gateway.foundation.db.pool import Database

SECRET = "a client's secret"
SECONDS = 900


@dataclass(frozen=True)
class Account:
    """A client of one organization."""

    client_id: UUID
    organization_id: UUID


@pytest.fixture
def store(database: Database) -> IdentityStore:
    return IdentityStore(database)


@pytest.fixture
async def attempts(redis_url: str) -> AsyncIterator[Attempts]:
    counted = Attempts.at(redis_url)
    yield counted
    await counted.close()


@pytest.fixture
def tokens(store: IdentityStore, attempts: Attempts) -> Tokens:
    return Tokens(store, SECONDS, attempts, lambda: True)


@pytest.fixture
async def account(store: IdentityStore) -> Account:
    organization = await store.create_organization(f"o-{uuid4().hex}")
    client_id = await store.create_client("agent", [organization.id], hashed(SECRET), ["read", "write"])
    return Account(client_id, organization.id)
