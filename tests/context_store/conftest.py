"""A database of its own with the real schema, seen as the gateway sees it: as `gateway_app`, bound to one tenant."""

import os
from uuid import uuid4

import asyncpg
import pytest

from gateway.db.migrate import migrate

SERVER = os.environ.get("GATEWAY_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432")


@pytest.fixture(scope="session")
async def database_url():
    name = f"context_store_{uuid4().hex[:12]}"
    server = await asyncpg.connect(f"{SERVER}/postgres")
    await server.execute(f"CREATE DATABASE {name}")
    try:
        await migrate(f"{SERVER}/{name}")
        yield f"{SERVER}/{name}"
    finally:
        await server.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await server.close()


@pytest.fixture(scope="session")
async def pool(database_url):
    async def become_application(connection):
        await connection.execute("SET ROLE gateway_app")

    async with asyncpg.create_pool(database_url, min_size=1, max_size=4, init=become_application) as pool:
        yield pool


class Tenant:
    """An organization with one connector."""

    def __init__(self):
        self.organization_id = uuid4()
        self.connector_id = uuid4()


@pytest.fixture
async def make_tenant(database_url):
    owner = await asyncpg.connect(database_url)

    async def make():
        tenant, workspace_id = Tenant(), uuid4()
        await owner.execute(
            "INSERT INTO organizations (id, name) VALUES ($1, $2)", tenant.organization_id, str(tenant.organization_id)
        )
        await owner.execute(
            "INSERT INTO workspaces (id, organization_id, name) VALUES ($1, $2, 'w')",
            workspace_id,
            tenant.organization_id,
        )
        await owner.execute(
            "INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status)"
            " VALUES ($1, $2, $3, 'support-desk', 'c', 'active')",
            tenant.connector_id,
            tenant.organization_id,
            workspace_id,
        )
        return tenant

    yield make
    await owner.close()


@pytest.fixture
async def tenant(make_tenant):
    return await make_tenant()


@pytest.fixture
async def connection(pool, tenant):
    async with pool.acquire() as connection:
        await connection.execute("SELECT set_config('gateway.tenant', $1, false)", str(tenant.organization_id))
        yield connection
