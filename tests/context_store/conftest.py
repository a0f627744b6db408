"""Tenants with a connector each, and the store as the gateway sees it: as its own role, bound to one tenant."""

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID, uuid4

import asyncpg
import pytest

from gateway.context_store.records import upsert
from gateway.context_store.word_index import catch_up

ORGANIZATION = "INSERT INTO organizations (id, name) VALUES ($1, $2)"
WORKSPACE = "INSERT INTO workspaces (id, organization_id, name) VALUES ($1, $2, 'support')"
CONNECTOR = """
    INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status)
    VALUES ($1, $2, $3, 'support-desk', 'Support', 'active')
"""


class Words(StrEnum):
    """How far the words of records are indexed; what is found is the same."""

    INDEXED = "indexed"
    WAITING = "waiting"
    #: those of former documents are
    OUTDATED = "outdated"


async def load(connection, entity, records, words=Words.INDEXED):
    """Store records, each an id and a JSON object."""
    if words is Words.OUTDATED:
        ids, documents = [id_ for id_, _ in records], [document for _, document in records]
        await upsert(connection, entity, list(zip(ids, documents[1:] + documents[:1], strict=True)))
        await catch_up(connection, entity)
    await upsert(connection, entity, records)
    if words is Words.INDEXED:
        await catch_up(connection, entity)


@dataclass(frozen=True)
class Tenant:
    """An organization with one connector."""

    organization_id: UUID = field(default_factory=uuid4)
    workspace_id: UUID = field(default_factory=uuid4)
    connector_id: UUID = field(default_factory=uuid4)


@pytest.fixture
async def owner(database_url):
    """A connection that owns the schema and is held to no policy."""
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
def make_tenant(owner):
    async def make():
        tenant = Tenant()
        await owner.execute(ORGANIZATION, tenant.organization_id, str(tenant.organization_id))
        await owner.execute(WORKSPACE, tenant.workspace_id, tenant.organization_id)
        await owner.execute(CONNECTOR, tenant.connector_id, tenant.organization_id, tenant.workspace_id)
        return tenant

    return make


@pytest.fixture
async def tenant(make_tenant):
    return await make_tenant()


@pytest.fixture
async def connection(database, tenant):
    async with database.tenant(tenant.organization_id) as connection:
        yield connection
