"""`gateway doctor` and `gateway status`: each check, and the commands with PostgreSQL and Redis."""

import asyncio
import json
import os
import resource
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis

from gateway.access.identity.store import IdentityStore
from gateway.cli.local_settings import local_settings
from gateway.connectors.model import NewConnector
from gateway.connectors.store import ConnectorStore
from gateway.foundation.vault.vault import Vault, new_key, read_keys
from gateway.kinds.starter import starter_files
from gateway.run.monitoring.health_checks import (
    CheckStatus,
    of_connectors,
    of_environment,
    of_front_end,
    of_machine,
    of_postgres,
    of_redis,
    of_replica,
    of_search,
    of_settings,
)
from gateway.settings import Settings
from tests.harness.command_line import invoked
from tests.harness.databases import created_database, url_of


@pytest.mark.parametrize(
    "name", ["GATEWAY_BIND", "GATEWAY_PROFILE", "GATEWAY_UPSTREAM_TEAM_CHAT", "GATEWAY_OAUTH_X_CLIENT_ID", "HOME"]
)
def test_a_variable_of_a_known_setting_is_accepted(name: str):
    assert list(of_environment({name: "x"})) == []


def test_a_misspelt_setting_is_a_warning_with_the_nearest_name():
    [finding] = of_environment({"GATEWAY_DATABASE_URI": "CANARY"})

    assert finding.status is CheckStatus.WARNING
    assert "did you mean GATEWAY_DATABASE_URL" in finding.message
    assert "CANARY" not in finding.message


def test_a_key_file_may_begin_with_a_byte_order_mark(tmp_path: Path):
    line, file = new_key(), tmp_path / "keys"
    file.write_text(f"{line}\n", "utf-8-sig")

    assert read_keys(None, file) == read_keys(SecretStr(line), None)


@pytest.mark.parametrize(
    ("environ", "status", "said"),
    [
        ({"HTTPS_PROXY": "http://proxy:3128"}, CheckStatus.WARNING, "HTTPS_PROXY is ignored"),
        ({"all_proxy": "socks5://proxy"}, CheckStatus.WARNING, "all_proxy is ignored"),
        ({"SSL_CERT_FILE": "/no/such/file.pem"}, CheckStatus.FAILED, "SSL_CERT_FILE is /no/such/file.pem"),
        ({"\ufeffGATEWAY_BIND": "0.0.0.0:80"}, CheckStatus.WARNING, "GATEWAY_BIND is ignored: save its file without"),
    ],
)
def test_a_variable_that_has_no_effect_is_reported(environ, status, said):
    [result] = of_environment(environ)

    assert result.status is status
    assert said in result.message


def test_a_file_of_authorities_that_exists_and_an_empty_proxy_are_accepted():
    assert list(of_environment({"SSL_CERT_FILE": __file__, "HTTP_PROXY": ""})) == []


def test_a_search_by_words_alone_is_a_warning_that_names_the_extra():
    assert of_search(Path("wordllama")).status is CheckStatus.PASSED
    assert of_search(None).status is CheckStatus.WARNING
    assert "agent-connector-gateway[semantic]" in of_search(None).message


def test_missing_keys_are_a_failure_and_an_unknown_kind_is_reported():
    found = {each.what: each for each in of_settings(Settings(), {"GATEWAY_UPSTREAM_NO_SUCH": "http://127.0.0.1:1"})}

    assert found["encryption keys"].status is CheckStatus.FAILED
    assert "gateway keys new" in found["encryption keys"].message
    assert found["environment"].message.startswith("GATEWAY_UPSTREAM_NO_SUCH has no effect: there is no kind 'no-such'")


def test_a_kind_with_spec_errors_is_a_failure_that_lists_them(tmp_path: Path):
    files = starter_files("parcels")
    (tmp_path / "connector.yaml").write_text(files["connector.yaml"])
    (tmp_path / "items.yaml").write_text(files["items.yaml"].replace("effect: read", "effect: reads", 1))

    passed, failed = [each for each in of_settings(Settings(specs=(tmp_path,)), {}) if each.what == "specs"]

    assert (passed.status, failed.status) == (CheckStatus.PASSED, CheckStatus.FAILED)
    assert "items.yaml:13: actions.list.effect: is 'reads'" in str(failed)


def test_an_invalid_upstream_override_is_a_failure():
    found = {each.what: each for each in of_settings(Settings(), {"GATEWAY_UPSTREAM_TEAM_CHAT": "nonsense"})}

    assert found["upstreams"].status is CheckStatus.FAILED
    assert found["upstreams"].message.startswith("GATEWAY_UPSTREAM_TEAM_CHAT: ")


def test_a_synchronization_interval_of_an_unknown_kind_is_a_failure():
    found = {each.what: each for each in of_settings(Settings(sync_every={"suport-desk": 60}), {})}

    assert found["synchronization"].status is CheckStatus.FAILED
    assert found["synchronization"].message.endswith("there is no kind 'suport-desk'; did you mean support-desk?")


def test_a_missing_public_url_is_a_warning_if_the_gateway_listens_on_all_addresses():
    found = {each.what for each in of_settings(Settings(bind="0.0.0.0:80"), {}) if each.status is CheckStatus.WARNING}

    assert "public URL" in found


def test_a_data_directory_that_does_not_exist_yet_is_checked(tmp_path: Path):
    [finding, *_] = of_machine(Settings(data_dir=tmp_path / "not" / "there" / "yet"))

    assert (finding.what, finding.status) == ("data directory", CheckStatus.PASSED)


def test_a_limit_of_open_files_below_the_configured_connections_is_a_warning(tmp_path: Path):
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    few = of_machine(Settings(data_dir=tmp_path, max_connections=1, max_upstream_connections=1))
    many = of_machine(Settings(data_dir=tmp_path, max_connections=allowed))

    assert "open files" not in {each.what for each in few}
    assert {each.what: each.status for each in many}["open files"] is CheckStatus.WARNING


@pytest.mark.processes
async def test_a_process_raises_its_limit_of_open_files_to_what_the_system_allows(tmp_path: Path):
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    serve = f"ulimit -Sn 256 && exec {sys.executable} -m gateway serve --bind 127.0.0.1:0"
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", serve),
        env={**os.environ, "GATEWAY_LOG_LEVEL": "debug", "GATEWAY_ENCRYPTION_KEYS": new_key()},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        line = await process.stdout.readline()
        while b"the limit of open files" not in line:
            line = await process.stdout.readline()
            assert line, "the process ended without the log entry"
        process.terminate()
        await process.communicate()

    event = json.loads(line)
    assert (event["was"], event["is"]) == (256, allowed)


async def test_a_database_that_cannot_be_reached_is_reported_without_its_password():
    [finding] = [each async for each in of_postgres(Settings(database_url="postgresql://u:CANARY@127.0.0.1:1/x"))]

    assert finding.status is CheckStatus.FAILED
    assert "GATEWAY_DATABASE_URL" in finding.message
    assert "CANARY" not in finding.message


async def test_a_database_that_was_not_migrated_says_what_to_run(postgres_url: str):
    async with created_database(postgres_url, "template1") as name:
        found = {each.what: each async for each in of_postgres(Settings(database_url=url_of(postgres_url, name)))}

    assert found["PostgreSQL"].status is CheckStatus.PASSED
    assert found["schema"].status is CheckStatus.FAILED
    assert "gateway migrate" in found["schema"].message


async def test_a_gateway_without_workers_is_a_failure(database_url: str):
    settings = Settings(database_url=database_url, encryption_keys=new_key())

    found = {each.what: each async for each in of_postgres(settings)}

    assert found["schema"].status is CheckStatus.PASSED
    assert found["workers"].status is CheckStatus.FAILED
    assert "credentials" not in found


async def test_connectors_that_rely_on_a_feature_with_an_end_date_are_reported(database, database_url: str):
    identity, settings = IdentityStore(database), Settings(database_url=database_url, encryption_keys=new_key())
    organization = await identity.create_organization(f"o-{uuid4().hex[:8]}")
    workspace = await identity.workspace_named(organization.id, "w")
    vault = Vault(read_keys(settings.encryption_keys, None))
    new = NewConnector(
        workspace_id=workspace,
        kind="support-desk",
        settings={"name": "c"},
        auth_method="api_token",
        environment={"subdomain": "acme"},
        credentials={"api_token": "t"},
    )
    store = ConnectorStore(database, vault)
    connector_id = (await store.create(organization.id, new)).id

    found = [each.message async for each in of_connectors(database, settings)]
    await store.delete(organization.id, connector_id)

    assert any(
        "connectors of support-desk that rely on it: 1; API token ends on 2027-04-30" in message for message in found
    )


async def test_redis_that_cannot_be_reached_is_only_a_warning(redis_url: str):
    reachable = [each.status async for each in of_redis(redis_url)]
    unreachable = [each.status async for each in of_redis("redis://127.0.0.1:1/0")]

    assert reachable == [CheckStatus.PASSED]
    assert unreachable == [CheckStatus.WARNING]


async def test_a_front_end_that_cannot_be_reached_is_a_warning():
    finding = await of_front_end(Settings(bind="127.0.0.1:1"))

    assert finding.status is CheckStatus.WARNING
    assert "gateway serve" in finding.message


def test_the_address_of_gateway_up_is_used_unless_a_setting_overrides_it(tmp_path, monkeypatch):
    monkeypatch.setenv("GATEWAY_DATA_DIR", str(tmp_path))
    (tmp_path / "address").write_text("http://127.0.0.1:18433\n")

    found = local_settings().bind
    monkeypatch.setenv("GATEWAY_BIND", "127.0.0.1:9000")

    assert (found, local_settings().bind) == ("127.0.0.1:18433", "127.0.0.1:9000")


def test_the_keys_of_gateway_up_are_found_in_a_data_directory_below_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GATEWAY_DATA_DIR", "~/data")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "encryption.keys").write_text(new_key())

    assert local_settings().encryption_keys_file == tmp_path / "data" / "encryption.keys"


async def test_a_redis_user_without_info_is_no_fault(redis_url: str):
    async with Redis.from_url(redis_url) as redis:
        await redis.execute_command("ACL", "SETUSER", "noinfo", "on", ">sesame", "~*", "&*", "+@all", "-info")
        try:
            [found] = [each async for each in of_redis(redis_url.replace("://", "://noinfo:sesame@"))]
        finally:
            await redis.execute_command("ACL", "DELUSER", "noinfo")

    assert found.status is CheckStatus.PASSED
    assert found.message == "answers; its user may not run INFO, so that the eviction policy is not checked"


async def test_the_doctor_exits_with_1_if_a_check_fails(database_url: str, redis_url: str, tmp_path: Path):
    environment = {
        "GATEWAY_DATABASE_URL": database_url,
        "GATEWAY_REDIS_URL": redis_url,
        "GATEWAY_DATA_DIR": str(tmp_path),
        "GATEWAY_BIND": "127.0.0.1:1",
    }

    ended = await invoked("doctor", "-o", "json", environment=environment, directory=tmp_path)

    wrong = {finding["what"] for finding in ended.json() if finding["status"] == "failed"}
    assert ended.code == 1
    assert wrong == {"encryption keys", "workers"}


async def test_the_status_shows_queue_workers_and_connectors(database_url: str, tmp_path: Path):
    environment = {"GATEWAY_DATABASE_URL": database_url}

    ended = await invoked("status", "-o", "json", environment=environment, directory=tmp_path)

    document = ended.json()
    assert ended.code == 0
    assert [job["status"] for job in document["jobs"]] == ["queued", "running", "waiting"]
    assert document["workers"] == document["connectors"] == document["context_store"] == []
    assert document["version"]


async def test_the_lag_of_the_replica_is_told(database_url: str):
    near = await of_replica(Settings(database_url=database_url, database_read_url=database_url))
    gone = await of_replica(
        Settings(database_url=database_url, database_read_url="postgresql://user:CANARY@127.0.0.1:1/gateway")
    )

    assert (near.status, near.message) == (CheckStatus.PASSED, "answers searches and lists, 0.0 s behind")
    assert gone.status is CheckStatus.WARNING
    assert "GATEWAY_DATABASE_READ_URL" in gone.message
    assert "CANARY" not in gone.message
