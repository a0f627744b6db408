"""Rotation while the gateway goes on: everything ends under the newest key, and nothing is lost on the way."""

from uuid import UUID

import pytest
from pydantic import SecretStr

from gateway.access.audit.log import Audit
from gateway.connectors.consent.apps import RegisteredApps
from gateway.connectors.key_rotation.rotation import Rotation, census
from gateway.connectors.store import ConnectorStore
from gateway.errors import InternalError
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault
from gateway.kinds.loading import load_catalog
from gateway.run.sealed_tables import SEALED_TABLES
from gateway.upstream.oauth_tokens.client_keys import ClientKeys
from tests.connectors.conftest import CREDENTIALS, NEW, OLD, Create
from tests.harness.clients import caller_of

TABLES_WITH_SEALED = """
    SELECT table_name FROM information_schema.columns WHERE column_name = 'wrapped_key' AND table_schema = 'public'
"""


@pytest.fixture(autouse=True)
async def nothing_sealed(database: Database):
    async with database.system() as connection:
        await connection.execute("DELETE FROM connector_secrets; DELETE FROM oauth_apps; DELETE FROM oauth_flows")


def rotation(database: Database, *keys: tuple[str, bytes]) -> Rotation:
    return Rotation(database, Vault(keys), SEALED_TABLES)


async def test_every_table_that_holds_sealed_values_is_rotated(database: Database):
    async with database.system() as connection:
        tables = {row["table_name"] for row in await connection.fetch(TABLES_WITH_SEALED)}

    assert {table.name for table in SEALED_TABLES} == tables


async def test_after_a_rotation_the_old_key_is_needed_for_nothing(
    database: Database, organization_id: UUID, create: Create
):
    connector_id = await create()
    await RegisteredApps(Audit(database), load_catalog(), database, Vault([OLD]), {}, ClientKeys([], "")).put(
        caller_of(organization_id), "support-desk", "id", SecretStr("CANARY-secret")
    )

    done = [rows async for rows in rotation(database, NEW, OLD).run()]

    renewed = ConnectorStore(database, Vault([NEW]))
    assert sum(done) == 2
    assert (await renewed.secret(organization_id, connector_id)).values == CREDENTIALS
    assert await census(database, SEALED_TABLES) == {"new": 2}


async def test_a_rotation_is_no_change_of_the_credentials(database: Database, organization_id: UUID, create: Create):
    store = ConnectorStore(database, Vault([NEW, OLD]))
    connector_id = await create()
    before = await store.secret(organization_id, connector_id)

    async for _ in rotation(database, NEW, OLD).run():
        pass

    assert await store.secret(organization_id, connector_id) == before


async def test_credentials_that_are_replaced_meanwhile_win(database: Database, organization_id: UUID, create: Create):
    connectors = [await create() for _ in range(401)]
    store = ConnectorStore(database, Vault([OLD]))

    async for _ in rotation(database, NEW, OLD).run():
        for connector_id in connectors:
            await store.update(organization_id, connector_id, credentials={"api_token": "replaced meanwhile"})
        break

    async for _ in rotation(database, NEW, OLD).run():
        pass
    renewed = ConnectorStore(database, Vault([NEW]))
    values = [(await renewed.secret(organization_id, each)).values for each in connectors]
    assert values == [{"api_token": "replaced meanwhile"}] * len(connectors)


async def test_what_does_not_open_is_reported_and_does_not_stop_the_rest(
    database: Database, organization_id: UUID, create: Create
):
    broken, sound = await create(), await create()
    async with database.system() as connection:
        await connection.execute("UPDATE connector_secrets SET key_id = 'lost' WHERE connector_id = $1", broken)

    pass_over = rotation(database, NEW, OLD)
    async for _ in pass_over.run():
        pass

    [failure] = pass_over.failures
    assert failure.startswith(f"connector_secrets {broken}: ")
    assert "which is not in the key list" in failure
    assert await census(database, SEALED_TABLES) == {"new": 1, "lost": 1}
    renewed = ConnectorStore(database, Vault([NEW]))
    assert (await renewed.secret(organization_id, sound)).values == CREDENTIALS
    with pytest.raises(InternalError):
        await renewed.secret(organization_id, broken)
