"""Connectors with sealed credentials on a real PostgreSQL."""

from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import pytest

from gateway.access.identity.store import IdentityStore
from gateway.connectors.model import NewConnector
from gateway.connectors.store import ConnectorStore
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault

OLD, NEW = ("old", bytes(range(32))), ("new", bytes(range(32, 64)))
CREDENTIALS = {"email": "agent@example.com", "api_token": "CANARY-token"}

#: a new connector's id
Create = Callable[..., Awaitable[UUID]]
#: begins the deletion of an organization's connector
MarkDeleted = Callable[[UUID, UUID], Awaitable[None]]


@pytest.fixture
def store(database: Database) -> ConnectorStore:
    return ConnectorStore(database, Vault([OLD]))


@pytest.fixture
async def organization_id(database: Database) -> UUID:
    return (await IdentityStore(database).create_organization(f"o-{uuid4().hex}")).id


@pytest.fixture
async def stranger_id(database: Database) -> UUID:
    """Another organization."""
    return (await IdentityStore(database).create_organization(f"o-{uuid4().hex}")).id


@pytest.fixture
def create(database: Database, store: ConnectorStore, organization_id: UUID) -> Create:
    async def created(kind: str = "support-desk", workspace: str = "w", name: str = "c") -> UUID:
        workspace_id = await IdentityStore(database).workspace_named(organization_id, workspace)
        new = NewConnector(
            workspace_id=workspace_id,
            kind=kind,
            settings={"name": name},
            auth_method="api_token",
            environment={"subdomain": "acme"},
            credentials=CREDENTIALS,
        )
        return (await store.create(organization_id, new)).id

    return created


@pytest.fixture
def mark_deleted(database: Database, store: ConnectorStore) -> MarkDeleted:
    async def mark(organization_id: UUID, connector_id: UUID) -> None:
        async with database.tenant(organization_id) as connection:
            await store.mark_deleted(connection, organization_id, connector_id, uuid4())

    return mark
