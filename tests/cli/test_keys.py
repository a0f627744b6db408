"""`gateway keys` with a key file and a database."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.access.identity.store import IdentityStore
from gateway.connectors.model import NewConnector
from gateway.connectors.store import ConnectorStore
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault, WrappedKey, parse_keys
from gateway.run.monitoring.health_checks import of_key_services
from gateway.settings import Settings
from tests.harness.command_line import invoked
from tests.harness.key_services import KeyServices, service_urls

CREDENTIALS = {"api_token": "CANARY"}


class Operator:
    """Runs `gateway keys` with a key file and a database."""

    def __init__(self, database_url: str, key_file: Path) -> None:
        self.key_file = key_file
        self.environment = {
            "GATEWAY_DATABASE_URL": database_url,
            "GATEWAY_ENCRYPTION_KEYS_FILE": str(key_file),
        }

    async def keys(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of `gateway keys …`."""
        ended = await invoked(
            "keys", *arguments, environment={**self.environment, **environment}, directory=self.key_file.parent
        )
        return ended.code, ended.out, ended.err

    def keys_in_file(self) -> list[tuple[str, bytes]]:
        return parse_keys(self.key_file.read_text())


@pytest.fixture
def operator(database_url: str, tmp_path: Path) -> Operator:
    key_file = tmp_path / "keys"
    key_file.write_text("k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
    return Operator(database_url, key_file)


@pytest.fixture
async def connector(database: Database, operator: Operator):
    """Organization and id of a connector sealed by the first key."""
    identity, store = IdentityStore(database), ConnectorStore(database, Vault(operator.keys_in_file()))
    organization = await identity.create_organization(f"o-{uuid4().hex}")
    workspace = await identity.workspace_named(organization.id, "w")
    new = NewConnector(
        workspace_id=workspace,
        kind="support-desk",
        settings={"name": "c"},
        auth_method="api_token",
        environment={},
        credentials=CREDENTIALS,
    )
    yield organization.id, (await store.create(organization.id, new)).id
    async with database.system() as connection:
        await connection.execute("DELETE FROM connectors")


async def test_a_key_is_replaced_without_losing_a_credential(operator: Operator, database: Database, connector):
    added = await operator.keys("add")
    newest, _ = operator.keys_in_file()

    too_early = await operator.keys("remove", "k1")
    rotated = await operator.keys("rotate")
    removed = await operator.keys("remove", "k1")

    assert [added[0], too_early[0], rotated[0], removed[0]] == [0, 1, 0, 0]
    assert "k1 still wraps 1 credentials" in too_early[2]
    assert f"1 credentials are now wrapped by {newest[0]}" in rotated[1]
    assert operator.keys_in_file() == [newest]
    assert (await ConnectorStore(database, Vault([newest])).secret(*connector)).values == CREDENTIALS


async def test_a_standby_key_decrypts_before_it_encrypts(operator: Operator):
    await operator.keys("add", "--standby")
    standing_by = operator.keys_in_file()
    await operator.keys("promote", standing_by[1][0])

    assert standing_by[0][0] == "k1"
    assert operator.keys_in_file() == standing_by[::-1]
    assert operator.key_file.stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("connector")
async def test_the_list_counts_what_each_key_wraps_and_shows_no_key(operator: Operator):
    secret = operator.key_file.read_text().split(":")[1].strip()

    code, output, _ = await operator.keys("list")

    assert code == 0
    assert json.loads(output) == [{"id": "k1", "use": "seals", "credentials": 1}]
    assert secret not in output


@pytest.mark.usefixtures("connector")
async def test_credentials_whose_key_is_missing_are_reported(operator: Operator):
    operator.key_file.write_text("other:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")

    code, output, _ = await operator.keys("list")
    rotated = await operator.keys("rotate")

    assert code == 1
    assert json.loads(output)[1] == {"id": "k1", "use": "missing", "credentials": 1}
    assert rotated[0] == 1
    assert "sealed with the key k1, which is not in the key list" in rotated[2]


async def test_keys_in_an_environment_variable_are_not_changed(operator: Operator):
    given = operator.key_file.read_text().strip()

    code, _, error = await operator.keys("add", GATEWAY_ENCRYPTION_KEYS=given)

    assert code == 1
    assert "GATEWAY_ENCRYPTION_KEYS, so change them where it is set" in error
    assert given not in error


@pytest.mark.usefixtures("connector")
async def test_a_key_service_wraps_a_new_key_and_is_needed_to_rotate_and_not_to_list(operator: Operator):
    async with KeyServices().serving() as services:
        url = service_urls(services)["vault"]
        printed = await operator.keys("new", "--url", url, **services.environ)
        added = await operator.keys("add", "--url", url, **services.environ)
        [(key_id, wrapped), _] = operator.keys_in_file()
        settings = Settings(encryption_keys_file=operator.key_file, encryption_keys_seconds=7200)

        healthy = [each async for each in of_key_services(settings, services.environ)]
        services.is_away = True
        away = [each async for each in of_key_services(settings, services.environ)]
        listed = await operator.keys("list", **services.environ)
        unrotated = await operator.keys("rotate", **services.environ)
        services.is_away = False
        rotated = await operator.keys("rotate", **services.environ)

    [(_, new)] = parse_keys(printed[1])
    assert (added[0], listed[0], unrotated[0], rotated[0]) == (0, 0, 1, 0)
    assert isinstance(new, WrappedKey)
    assert isinstance(wrapped, WrappedKey)
    assert json.loads(listed[1])[0] == {"id": key_id, "use": "seals", "credentials": 0, "url": url}
    assert f"the encryption key {key_id}: {url} does not respond" in unrotated[2]
    assert f"1 credentials are now wrapped by {key_id}" in rotated[1]
    assert [(each.status, each.message) for each in healthy] == [("passed", f"{url} unwraps the key {key_id}")]
    assert away[0].status == "failed"
    assert "hold their keys for up to 7,200 s after it last unwrapped them" in away[0].message
