"""Errors that a user can cause are reported in one line that says how to fix them, without a traceback."""

import asyncio
import json
import os
import pty
import signal
import socket
import sys
from base64 import b64encode
from pathlib import Path
from uuid import uuid4

import asyncpg
import psutil
import pytest

from gateway.access.identity.model import Client
from gateway.access.identity.store import IdentityStore
from gateway.foundation.db.pool import Database
from tests.harness.databases import url_of
from tests.harness.waiting import eventually

KEY = f"k1:{b64encode(bytes(32)).decode()}"
#: a prefix that would allow all of a server
TWO_VAULTS = (
    '{"7d1f6a52-0000-4000-8000-000000000000": ["vault://a.example/s"],'
    ' "7d1f6a52-0000-4000-8000-000000000001": ["vault://b.example/s"]}'
)
ONE_VAULT = '{"7d1f6a52-0000-4000-8000-000000000000": ["vault://a.example/s"]}'
PLACE = '{"7d1f6a52-0000-4000-8000-000000000000": ["vault://h.example"]}'
NOBODY = "postgresql://nobody@127.0.0.1:1/gateway"


def require_one_line(ended, message: str) -> None:
    assert ended.code in (1, 2, 5)
    assert "Traceback" not in ended.err
    assert message in ended.err


@pytest.mark.parametrize(
    ("words", "variables", "message"),
    [
        (("migrate",), {"GATEWAY_DATABASE_URL": NOBODY}, "PostgreSQL cannot be reached"),
        (("migrate", "--check"), {"GATEWAY_DATABASE_URL": NOBODY}, "PostgreSQL cannot be reached"),
        (("admin", "client", "list"), {"GATEWAY_DATABASE_URL": NOBODY}, "PostgreSQL cannot be reached"),
        (("status",), {"GATEWAY_DATABASE_URL": NOBODY}, "PostgreSQL cannot be reached"),
        (("migrate",), {"GATEWAY_DATABASE_URL": "mysql://x"}, "must be a URL such as postgresql://user:password@host"),
        (
            ("worker",),
            {"GATEWAY_DATABASE_URL": "postgresql://u:p@h:port/x"},
            "must be a URL such as postgresql://user:password@host",
        ),
        (("worker",), {"GATEWAY_REDIS_URL": "localhost:6379"}, "GATEWAY_REDIS_URL: must be a URL such as redis://"),
        (
            ("worker",),
            {"GATEWAY_REDIS_URL": "redis://localhost:port"},
            "GATEWAY_REDIS_URL: must be a URL such as redis://",
        ),
        (
            ("serve",),
            {"GATEWAY_PUBLIC_URL": "gateway.example.com"},
            "GATEWAY_PUBLIC_URL: must be a URL such as https://",
        ),
        (("serve",), {"GATEWAY_METRICS_BIND": "local"}, "GATEWAY_METRICS_BIND: 'local' is not a valid listen address"),
        (("worker",), {"GATEWAY_SECRET_REFERENCES": "vault://h/s"}, "GATEWAY_SECRET_REFERENCES: must be JSON such as"),
        (
            ("worker",),
            {"GATEWAY_SECRET_REFERENCES": PLACE},
            "vault://h.example: must be written vault://HOST[:PORT]/MOUNT",
        ),
        (("worker",), {"GATEWAY_SECRET_REFERENCES": TWO_VAULTS}, "must name one host and port, but names a.example, b"),
        (("worker",), {"GATEWAY_SYNC_EVERY": "600"}, "GATEWAY_SYNC_EVERY: "),
        (("worker",), {"GATEWAY_SYNC_EVERY": "support-desk=600"}, "GATEWAY_SYNC_EVERY: must be JSON such as"),
        (
            ("worker",),
            {"GATEWAY_FILES_URL": "s3:/bucket"},
            "GATEWAY_FILES_URL: must be a folder, or a URL such as s3://",
        ),
        (("worker",), {"GATEWAY_LOG_FORMAT": "xml"}, "GATEWAY_LOG_FORMAT: Input should be 'json', 'text' or 'auto'"),
        (
            ("worker",),
            {"GATEWAY_WEBHOOK_ORIGINS": "10.0.0.7"},
            "GATEWAY_WEBHOOK_ORIGINS: the address must be scheme, host and port",
        ),
        (
            ("serve",),
            {"GATEWAY_MCP_ORIGINS": "agents.example.com"},
            "GATEWAY_MCP_ORIGINS: the address must be scheme, host and port",
        ),
        (("worker",), {"GATEWAY_LOG_LEVEL": "loud"}, "GATEWAY_LOG_LEVEL: must be one of debug, info"),
        (("serve", "--bind", "8080x"), {}, "'8080x' is not a valid listen address"),
        (("sandbox", "--bind", "nowhere"), {}, "'nowhere' is not a valid listen address"),
        (
            ("types", "--offline"),
            {"GATEWAY_SPECS": "/not/there"},
            "/not/there: the folder does not exist; correct GATEWAY_SPECS",
        ),
        (("up",), {"GATEWAY_DATA_DIR": "/proc/not-there"}, "needs a data directory"),
        (("up", "--ready-file", "/dev/null"), {}, "--ready-file /dev/null is no regular file"),
    ],
)
async def test_an_invalid_setting_or_a_missing_server_is_reported_in_one_line(command, words, variables, message):
    require_one_line(await command(*words, **variables), message)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"GATEWAY_ENCRYPTION_KEYS": "k1:CANARY"}, "an encryption key is written `id:base64 of 32 bytes`"),
        ({"GATEWAY_UPSTREAM_TEAM_CHAT": "localhost"}, "GATEWAY_UPSTREAM_TEAM_CHAT: the address must be scheme, host"),
        (
            {"GATEWAY_SECRET_REFERENCES": ONE_VAULT, "VAULT_ADDR": "https://b.example:8200"},
            "GATEWAY_SECRET_REFERENCES: a.example is not b.example:8200, which VAULT_ADDR names",
        ),
        ({"GATEWAY_SYNC_EVERY": '{"suport-desk": 60}'}, "GATEWAY_SYNC_EVERY: there is no kind 'suport-desk'; did you"),
    ],
)
async def test_gateway_up_refuses_settings_that_its_processes_would_refuse(command, tmp_path, variables, message):
    ended = await command("up", **variables)

    assert ended.code == 2
    assert ended.err.startswith(f"Error: {message}")
    assert "CANARY" not in ended.err
    assert not (tmp_path / ".gateway").exists()


async def test_gateway_up_names_parameters_of_the_database_that_have_no_effect(process):
    ended = await process("up", GATEWAY_DATABASE_URL=f"{NOBODY}?channel_binding=require")

    assert "GATEWAY_DATABASE_URL: the parameter channel_binding has no effect" in ended.err
    assert ended.code != 0


@pytest.mark.parametrize("words", [("worker",), ("serve",)])
async def test_an_interval_of_an_unknown_entity_ends_the_start_with_the_nearest_name(process, words):
    every = '{"support-desk.tikets": 60}'

    ended = await process(*words, GATEWAY_SYNC_EVERY=every, GATEWAY_ENCRYPTION_KEYS=KEY, GATEWAY_DATABASE_URL=NOBODY)

    require_one_line(
        ended, "GATEWAY_SYNC_EVERY: support-desk has no synchronized entity 'tikets'; did you mean tickets?"
    )


@pytest.mark.parametrize("words", [("worker",), ("serve", "--bind", "127.0.0.1:0")])
async def test_an_override_of_an_unknown_kind_is_a_warning_at_the_start(start, words):
    override = {"GATEWAY_UPSTREAM_SUPORT_DESK": "http://127.0.0.1:9"}

    process = await start(*words, **override, GATEWAY_ENCRYPTION_KEYS=KEY, GATEWAY_DATABASE_URL=NOBODY)
    async with asyncio.timeout(60):
        while b"has no effect" not in (line := await process.stderr.readline()):
            assert line, "the process ended"
    process.kill()
    await process.wait()

    assert b"there is no kind 'suport-desk'; did you mean support-desk?" in line
    assert json.loads(line)["level"] == "warning"


async def test_the_error_for_a_missing_database_says_to_create_it(command, postgres_url: str):
    url = url_of(postgres_url, "not_there")

    require_one_line(await command("migrate", GATEWAY_DATABASE_URL=url), "create the database (createdb)")
    require_one_line(await command("admin", "organization", "list", GATEWAY_DATABASE_URL=url), "create the database")


async def test_the_error_for_a_database_without_the_schema_says_to_migrate(command, postgres_url: str):
    ended = await command("admin", "organization", "list", GATEWAY_DATABASE_URL=url_of(postgres_url, "template1"))

    require_one_line(ended, "run `gateway migrate`")


async def test_the_error_for_a_missing_role_or_privilege_says_what_to_correct(command, database_url: str):
    role = f"plain_{uuid4().hex[:8]}"
    owner = await asyncpg.connect(database_url)
    url = database_url.replace("://", f"://{role}@", 1) if "@" not in database_url else _as(database_url, role)

    absent = await command("admin", "organization", "list", GATEWAY_DATABASE_URL=url)
    await owner.execute(f"CREATE ROLE {role} LOGIN")
    powerless = await command("admin", "organization", "list", GATEWAY_DATABASE_URL=url)
    await owner.execute(f"DROP ROLE {role}")
    await owner.close()

    require_one_line(absent, "correct the user in GATEWAY_DATABASE_URL")
    require_one_line(powerless, "SET ROLE gateway_app")


def _as(url: str, role: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{role}@{rest.partition('@')[2]}"


async def test_a_port_that_is_in_use_is_reported(process):
    with socket.create_server(("127.0.0.1", 0)) as other:
        ended = await process("sandbox", "--bind", f"127.0.0.1:{other.getsockname()[1]}")

    require_one_line(ended, "address already in use")


@pytest.mark.parametrize(
    ("package", "words", "extra"),
    [
        ("pydantic_settings", ("serve",), "server"),
        ("arq", ("worker",), "server"),
        ("asyncpg", ("migrate",), "server"),
        ("pydantic_settings", ("doctor",), "server"),
    ],
)
async def test_a_base_install_says_which_extra_to_install(process, tmp_path: Path, package, words, extra):
    absent = f"raise ModuleNotFoundError(name={package!r})"
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent" / f"{package}.py").write_text(absent)

    ended = await process(*words, PYTHONPATH=f"{tmp_path / 'absent'}{os.pathsep}{Path.cwd()}")

    require_one_line(ended, f'install "agent-connector-gateway[{extra}]"')
    assert ended.code == 2  # `gateway up` does not start such a process again


@pytest.mark.parametrize("option", ["--workers", "--front-ends"])
async def test_gateway_up_without_a_worker_or_a_front_end_is_refused(command, option):
    ended = await command("up", option, "0")

    assert ended.code == 2
    assert f"Invalid value for '{option}': 0 is not in the range x>=1" in ended.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("organization", "create", ""), "name must be 1 to 200 printable characters"),
        (("client", "create", "a\nb", "--organization", str(uuid4())), "name must be 1 to 200 printable characters"),
        (("client", "update", str(uuid4()), "--redirect-url", "nowhere"), "nowhere: redirect_url must be an absolute"),
    ],
)
async def test_an_invalid_name_or_redirect_url_is_refused_before_it_is_stored(command, words, message):
    require_one_line(await command("admin", *words, GATEWAY_DATABASE_URL=NOBODY), message)


async def test_a_backup_into_a_missing_folder_names_the_file(command, tmp_path):
    (tmp_path / ".gateway" / "postgres" / "run").mkdir(parents=True)

    ended = await command("backup", "missing/gateway.dump")

    require_one_line(ended, f"Error: {tmp_path}/missing/.gateway.dump.part: No such file or directory")


async def test_the_redirect_urls_of_a_client_are_replaced(command, database: Database, database_url: str):
    identity = IdentityStore(database)
    organization = await identity.create_organization("acme")
    client_id = await identity.create_client("agent", [organization.id], b"x" * 32, ["read"], ["https://old.example/"])

    ended = await command(
        *("admin", "client", "update", str(client_id), "--redirect-url", "https://new.example/cb"),
        GATEWAY_DATABASE_URL=database_url,
    )
    unknown = await command(
        *("admin", "client", "update", str(uuid4()), "--redirect-url", "https://new.example/cb"),
        GATEWAY_DATABASE_URL=database_url,
    )

    assert ended.json() == {"client_id": str(client_id), "redirect_urls": ["https://new.example/cb"]}
    stored = await identity.client(client_id)
    assert stored is not None
    assert isinstance(stored.client, Client)
    assert stored.client.redirect_urls == ("https://new.example/cb",)
    assert unknown.code == 4


async def test_people_are_added_listed_and_removed(command, database: Database, database_url: str):
    organization = await IdentityStore(database).create_organization(f"o-{uuid4().hex}")
    settings, login = {"GATEWAY_DATABASE_URL": database_url}, f"Ada-{uuid4().hex}@example.com"
    words = ("admin", "person", "add", login, "--organization", str(organization.id))

    added = await command(*words, **settings)
    again = await command(*words, **settings)
    listed = await command("admin", "person", "list", **settings)
    removed = await command("admin", "person", "remove", login, **settings)
    nobody = await command("admin", "person", "remove", login, **settings)

    assert (added.json()["login"], added.json()["scopes"]) == (login.lower(), ["read"])
    require_one_line(again, "already")
    assert login.lower() in {each["login"] for each in listed.lines()}
    assert removed.json()["client_id"] == added.json()["client_id"]
    assert nobody.code == 4


@pytest.mark.processes
async def test_one_interrupt_ends_a_prompt(environment: dict[str, str], tmp_path: Path):
    terminal, end = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "connect", "support-desk", "--method", "api_token"),
        env=environment,
        cwd=tmp_path,
        stdin=end,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None

    prompt = await process.stderr.readuntil(b"): ")
    # Python would handle a signal that arrives just before the read only after the read.
    await eventually(lambda: psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING)
    process.send_signal(signal.SIGINT)
    rest = await asyncio.wait_for(process.stderr.read(), 20)
    code = await process.wait()
    os.close(terminal)
    os.close(end)

    assert b"(" in prompt
    assert code == 130
    assert b"Traceback" not in rest
