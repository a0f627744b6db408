"""A connector whose credential is a reference: `gateway doctor` checks it, and it moves as a reference."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from gateway.connectors.model import REFERENCE
from gateway.run.monitoring.health_checks import CheckResult, CheckStatus, of_postgres
from gateway.settings import Settings
from tests.harness.caller import Api, ConnectorApi
from tests.harness.databases import created_database, url_of
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.key_services import VAULT_TOKEN
from tests.web.test_organization_move import OTHER_KEYS, arrival_of, departure_of, lines_of
from tests.web.test_secret_references import World, world  # noqa: F401  fixtures

ENVIRON = {"VAULT_TOKEN": VAULT_TOKEN}


@pytest.fixture(autouse=True)
def reachable(world: World) -> None:  # noqa: F811
    world.key, world.vault.is_away = "CANARY-key-5d6e7f", False


async def examined(settings: Settings, environ: Mapping[str, str] = ENVIRON) -> list[CheckResult]:
    """What the doctor says of references; no secret's value is in any result."""
    results = [each async for each in of_postgres(settings, environ)]
    assert "CANARY" not in str(results)
    return [each for each in results if each.what == "secret references"]


async def test_references_that_vault_reads_pass(world: World):  # noqa: F811
    await world.api.connector("vaulted", world.credentials())

    [result] = await examined(world.front.services.settings)

    assert result.status is CheckStatus.PASSED
    assert "Vault accepts the sign-in" in result.message


async def test_a_reference_that_cannot_be_read_is_named_by_its_connector(world: World):  # noqa: F811
    connector = await world.api.connector("vaulted", world.credentials())
    world.vault.secrets.clear()

    results = await examined(world.front.services.settings)

    [result] = [each for each in results if connector.record["id"] in each.message]
    assert result.status is CheckStatus.FAILED
    found = result.message
    assert found.startswith("api_key of the connector ")
    assert str(world.organization_id) in found
    assert "answered 404" in found
    assert "vaulted#key" not in found


@pytest.mark.parametrize(
    ("environ", "is_away", "said"),
    [
        ({}, False, "set VAULT_TOKEN"),
        ({"VAULT_TOKEN": "another"}, False, "403"),
        (ENVIRON, True, "does not respond"),
    ],
)
async def test_a_vault_that_refuses_or_is_away_is_a_failure(
    world: World,  # noqa: F811
    environ: dict[str, str],
    is_away: bool,
    said: str,
):
    world.vault.is_away = is_away

    results = await examined(world.front.services.settings, environ)

    assert {each.status for each in results} == {CheckStatus.FAILED}
    assert said in results[-1].message


@dataclass(frozen=True)
class Targets:
    """A gateway to which organizations move."""

    folder: Path
    database_url: str
    redis_url: str

    @asynccontextmanager
    async def opened(self, world: World, **settings: Any) -> AsyncIterator[FrontEnd]:  # noqa: F811
        specs = world.front.services.settings.specs
        given = {"specs": specs, "encryption_keys": OTHER_KEYS, **settings}
        async with front_end(self.folder, self.database_url, self.redis_url, **given) as front:
            yield front


@pytest.fixture
async def targets(tmp_path: Path, postgres_url: str, migrated_database: str, redis_url: str) -> AsyncIterator[Targets]:
    async with created_database(postgres_url, migrated_database) as name:
        yield Targets(tmp_path, url_of(postgres_url, name), redis_url)


async def test_a_reference_moves_as_one_and_the_target_says_which_setting_it_lacks(
    world: World,  # noqa: F811
    targets: Targets,
):
    client = await world.front.client(world.organization_id)
    connector = await world.api.connector("vaulted", world.credentials())
    lines = await lines_of(departure_of(world.front), world.organization_id)
    allowed = world.front.services.settings.secret_references

    async with targets.opened(world) as front:
        await arrival_of(front).read(lines)
        async with Api.of(front.base_url, *client) as api:
            refused = (await ConnectorApi(api, connector.record).send("items", "list", {})).document(424)
        found = await examined(front.services.settings)
        kept = await stored_at(front, world.organization_id, connector)
    async with targets.opened(world, secret_references=allowed) as front:
        async with Api.of(front.base_url, *client) as api:
            await ConnectorApi(api, connector.record).execute("items", "list")
        [passed] = await examined(front.services.settings)

    assert all(b"CANARY" not in line for line in lines)
    assert kept == {f"{REFERENCE}api_key": world.credentials()["api_key"]["$secret"]}
    assert "GATEWAY_SECRET_REFERENCES" in refused["detail"]
    [named] = [each for each in found if connector.record["id"] in each.message]
    assert named.status is CheckStatus.FAILED
    assert "GATEWAY_SECRET_REFERENCES" in named.message
    assert passed.status is CheckStatus.PASSED
    assert urlsplit(world.vault.url).netloc not in named.message


async def stored_at(front: FrontEnd, organization_id: UUID, connector: ConnectorApi) -> dict[str, str]:
    """What is sealed in the connector's row."""
    store = front.services.connectors.store
    async with front.services.database.tenant(organization_id) as connection, connection.transaction():
        return (await store.lock_secret(connection, organization_id, UUID(connector.record["id"]))).values
