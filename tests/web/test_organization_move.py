"""An organization moves to a gateway with other keys: nothing is lost, and an import that fails leaves nothing."""

import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from gateway.client import Gateway
from gateway.errors import Conflict, GatewayError
from gateway.foundation.db.pool import Database
from gateway.foundation.proof import verified
from gateway.foundation.vault.sealed_file import (
    Lock,
    SealedFileError,
    SealedWriter,
    recipient_key,
    recipients_of,
    sealed_lines,
)
from gateway.foundation.vault.vault import parse_keys
from gateway.run.moving.arrival import Arrival, Trust
from gateway.run.moving.departure import Departure
from gateway.run.moving.document import Contents
from gateway.run.moving.freeze import Freeze
from gateway.run.moving.tables import LEFT_OUT, MOVED
from tests.harness.caller import Api, ConnectorApi
from tests.harness.command_line import invoked
from tests.harness.databases import created_database, url_of
from tests.harness.hostile_kinds import kind_document
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.waiting import eventually
from tests.web.test_organization_deletion import Busy, busy  # noqa: F401  a fixture
from tests.web.test_policies import UPDATE, run_jobs

EXPORT = "/api/v1/organization/export"
OTHER_KEYS = "k9:ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="
#: every list of an organization
LISTS = (
    *("integrations/connectors", "workspaces", "jobs", "events", "audit", "requests", "schedules", "webhooks"),
    *("policies", "budgets", "people", "groups", "approvals", "sessions", "issuers", "clients", "grants"),
    *("usage/events", "usage"),
)
_TABLES = """
    SELECT relname::text AS name FROM pg_class
    WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = current_schema()::regnamespace
"""


@pytest.fixture(scope="module")
async def elsewhere(
    tmp_path_factory: pytest.TempPathFactory, postgres_url: str, migrated_database: str, redis_url: str
) -> AsyncIterator[FrontEnd]:
    """A gateway with another database and other keys."""
    async with created_database(postgres_url, migrated_database) as name:
        folder = tmp_path_factory.mktemp("elsewhere")
        url = url_of(postgres_url, name)
        async with front_end(folder, url, redis_url, encryption_keys=OTHER_KEYS) as opened:
            yield opened


def departure_of(front: FrontEnd) -> Departure:
    return front.services.organization_export.departure


def arrival_of(front: FrontEnd) -> Arrival:
    services = front.services
    return Arrival(
        database=services.database, vault=services.keys.vault, catalog=services.catalog, files=services.jobs.files
    )


async def lines_of(departure: Departure, organization_id: UUID, contents: Contents | None = None) -> list[bytes]:
    """The lines, as they are read."""
    lines = departure.lines(organization_id, contents or Contents())
    return [line.removesuffix(b"\n") async for line in lines]


def environment_of(front: FrontEnd) -> dict[str, str]:
    """The variables with which an operator's command uses the same stores."""
    settings = front.services.settings
    assert settings.encryption_keys is not None
    return {
        "GATEWAY_DATABASE_URL": settings.database_url,
        "GATEWAY_FILES_URL": str(settings.data_dir / "blobs"),
        "GATEWAY_ENCRYPTION_KEYS": settings.encryption_keys.get_secret_value(),
    }


@dataclass(frozen=True)
class Moving:
    """A busy organization, a client of it, and the gateway that it moves to."""

    busy: Busy
    client: tuple[str, str]
    target: FrontEnd

    async def exported(self) -> bytes:
        """The file for the target."""
        lock = Lock.for_recipient(recipient_key(self.target.services.keys.all))
        departure = departure_of(self.busy.front)
        return b"".join([chunk async for chunk in departure.chunks(self.busy.id, lock, Contents())])

    async def imported(self, file: bytes, name: str | None = None, trust: Trust = Trust()) -> dict[str, int]:  # noqa: B008  it is frozen
        lines = sealed_lines(BytesIO(file), recipients_of(self.target.services.keys.all))
        return (await arrival_of(self.target).read(lines, name, trust))[1].rows

    async def move(self) -> None:
        await self.imported(await self.exported())

    @asynccontextmanager
    async def here(self) -> AsyncIterator[Api]:
        async with Api.of(self.busy.front.base_url, *self.client) as api:
            yield api

    @asynccontextmanager
    async def there(self) -> AsyncIterator[Api]:
        async with Api.of(self.target.base_url, *self.client) as api:
            yield api

    async def left_there(self) -> bool:
        """Whether the target has the organization."""
        async with self.target.services.database.system() as connection:
            found = await connection.fetchval("SELECT id FROM organizations WHERE id = $1", self.busy.id)
        return found is not None


@pytest.fixture
async def moving(busy: Busy, elsewhere: FrontEnd) -> Moving:  # noqa: F811
    """An organization whose log has everything that was done."""
    client = await busy.front.client(busy.id)

    async def is_logged() -> bool:
        entries = (await busy.admin.get("/api/v1/audit?operation=group.update")).document()["data"]
        requests = (await busy.admin.get("/api/v1/requests")).document()["data"]
        return bool(entries and requests)

    await eventually(is_logged)
    await busy.front.services.logs.chain.seal()
    return Moving(busy, client, elsewhere)


async def listed(api: Api) -> dict[str, Any]:
    """What each list answers, without the numbers that a database gives and the work of this moment."""
    answers: dict[str, Any] = {}
    for name in LISTS:
        document = (await api.get(f"/api/v1/{name}")).document()
        if name in ("audit", "requests"):
            for each in document["data"]:
                del each["id"]
        if name == "usage/events":
            document = [{**each, "sequence": None} for each in document["data"]]
        if name == "usage":
            document = document["points"] if "points" in document else document["data"]
        answers[name] = document
    return answers


async def test_every_list_answers_the_same_after_the_move(moving: Moving):
    async with moving.here() as api:

        async def settled() -> tuple[bytes, dict[str, Any]] | None:
            """The file and the lists, once processes have written what they hold back."""
            before, file = await listed(api), await moving.exported()
            return (file, before) if await listed(api) == before else None

        file, before = await eventually(settled)
    counts = await moving.imported(file)

    async with moving.there() as api:
        after = await listed(api)

    for name in LISTS:
        assert _without_addresses(after[name]) == _without_addresses(before[name]), name
    assert counts["connectors"] == 1
    filled = ("connectors", "jobs", "events", "audit", "schedules", "webhooks", "policies", "budgets", "groups")
    assert all(counts[name] for name in filled)


def _without_addresses(document: Any) -> Any:
    """Addresses of files and jobs are those of the gateway that answers."""
    return json.loads(re.sub(r"http://127\.0\.0\.1:\d+", "", json.dumps(document)))


async def test_a_moved_connector_calls_its_application_with_its_credentials(moving: Moving):
    await moving.move()

    async with moving.there() as api:
        desk = ConnectorApi(api, moving.busy.desk.record)
        answer = await desk.send("tickets", "update", UPDATE)
        secret = (await api.get("/api/v1/webhooks")).document()["data"]

    assert answer.status == 200
    assert len(secret) == 1
    async with moving.target.services.database.system() as connection:
        keys = await connection.fetch("SELECT key_id FROM connector_secrets WHERE organization_id = $1", moving.busy.id)
    assert [row["key_id"] for row in keys] == ["k9"]


async def test_a_queued_job_runs_where_it_was_moved_to(moving: Moving):
    job = (await moving.busy.desk.submit("tickets", "list", {"per_page": 2}))["id"]

    await moving.move()
    await run_jobs(moving.target)

    async with moving.there() as api:
        ended = (await api.get(f"/api/v1/jobs/{job}")).document()
        result = (await api.get(f"/api/v1/jobs/{job}/result")).document()
    assert ended["status"] == "succeeded", ended["error"]
    assert len(result["result"]) == 2


async def test_the_chain_of_the_audit_log_goes_on_and_is_verified_with_the_keys_of_both(moving: Moving):
    async with moving.here() as api:
        [own] = (await api.get("/api/v1/audit/keys")).document()
        here = (await api.get("/api/v1/audit/export")).body.decode().splitlines()
    await moving.move()

    async with moving.there() as api:
        desk = ConnectorApi(api, moving.busy.desk.record)
        await desk.execute("tickets", "update", UPDATE)
        lines = (await api.get("/api/v1/audit/export")).body.decode().splitlines()
        keys = (await api.get("/api/v1/audit/keys")).document()

    found = verified(lines, [each["public_key"] for each in keys])
    assert found.fault is None
    assert (found.first, found.unknown) == (1, verified(here, [own["public_key"]]).unknown)
    assert _entries(lines)[: len(_entries(here))] == _entries(here)
    assert [each["key_id"] for each in keys][1:] == [own["key_id"]]
    signed_by = {json.loads(line)["key_id"] for line in lines if "checkpoint" in line}
    assert signed_by == {each["key_id"] for each in keys}


def _entries(lines: list[str]) -> list[str]:
    return [line for line in lines if '"checkpoint"' not in line]


async def test_an_existing_organization_is_not_imported_again(moving: Moving):
    file = await moving.exported()
    await moving.imported(file)

    with pytest.raises(Conflict, match="cannot be imported twice"):
        await moving.imported(file, "another name")


async def test_tokens_of_a_client_that_the_gateway_has_are_not_believed(moving: Moving):
    client_id = UUID(moving.client[0])
    async with moving.here() as api:
        await api.get("/api/v1/jobs")
    async with moving.target.services.database.system() as connection:
        await connection.execute("INSERT INTO clients (id, name, secret_hashes) VALUES ($1, 'known', '{}')", client_id)

    await moving.move()

    async with moving.target.services.database.system() as connection:
        assert await connection.fetchval("SELECT count(*) FROM tokens WHERE client_id = $1", client_id) == 0


async def test_a_served_kind_stays_that_of_the_gateway(moving: Moving):
    insert = """
        INSERT INTO imported_kinds
            (kind, version, source, document, report, importing_organization, importing_client, served_at)
        VALUES ('strangers', $1, 'a file', $2, '', $3, gen_random_uuid(), now() - (3 - $1::int) * interval '1 hour')
    """
    async with moving.target.services.database.system() as connection:
        await connection.execute(insert, 1, json.dumps(kind_document("strangers", "https://own.example")), uuid4())
    async with moving.busy.front.services.database.system() as connection:
        foreign = json.dumps(kind_document("strangers", "https://foreign.example"))
        await connection.execute(insert, 2, foreign, moving.busy.id)
    try:
        with pytest.raises(Conflict, match="strangers of this gateway differs"):
            await moving.move()
    finally:
        for front in (moving.target, moving.busy.front):
            async with front.services.database.system() as connection:
                await connection.execute("DELETE FROM imported_kinds WHERE kind = 'strangers'")


async def test_a_name_that_is_taken_can_be_changed(moving: Moving):
    await moving.target.services.identity.create_organization(moving.busy.name)
    file = await moving.exported()

    with pytest.raises(Conflict, match="choose another name"):
        await moving.imported(file)
    await moving.imported(file, f"{moving.busy.name} moved")

    assert await moving.left_there()


async def test_a_file_that_was_cut_off_or_altered_leaves_nothing(moving: Moving):
    file = await moving.exported()
    altered = bytearray(file)
    altered[-20] ^= 1

    for damaged in (file[:-30], file[: len(file) // 2], bytes(altered)):
        with pytest.raises((SealedFileError, GatewayError)):
            await moving.imported(damaged)

    assert not await moving.left_there()


async def test_only_the_recipient_opens_the_file(moving: Moving):
    file = await moving.exported()

    with pytest.raises(SealedFileError, match="key of another gateway"):
        list(sealed_lines(BytesIO(file), recipients_of(moving.busy.front.services.keys.all)))
    assert b"tickets" not in file


def test_a_recipient_key_of_no_use_is_refused():
    with pytest.raises(SealedFileError, match="recipient key is not valid"):
        Lock.for_recipient(b64encode(bytes(32)).decode())


def test_a_passphrase_opens_what_it_sealed():
    file = BytesIO()
    writer = SealedWriter(file, Lock.by_passphrase("correct horse"))
    lines = [f"{number} {uuid4()}".encode() for number in range(20_000)]
    for line in lines:
        writer.write(line + b"\n")
    writer.close()

    assert list(sealed_lines(BytesIO(file.getvalue()), [], "correct horse")) == lines
    with pytest.raises(SealedFileError, match="passphrase is wrong"):
        list(sealed_lines(BytesIO(file.getvalue()), [], "wrong"))


def test_an_older_key_still_opens_what_was_sealed_for_it():
    old, new = parse_keys(OTHER_KEYS), parse_keys("k10:QEFCQ0RFRkdISUpLTE1OT1BRUlNUVVZXWFlaW1xdXl8=")
    file = BytesIO()
    writer = SealedWriter(file, Lock.for_recipient(recipient_key(old)))
    writer.write(b"line\n")
    writer.close()

    assert list(sealed_lines(BytesIO(file.getvalue()), recipients_of([*new, *old]))) == [b"line"]


async def test_while_it_is_moved_only_reads_are_served(moving: Moving, skipped_pauses: None):
    freeze = Freeze(moving.busy.front.services.database, moving.busy.id)
    async with moving.here() as api:
        desk = ConnectorApi(api, moving.busy.desk.record)
        await freeze.begin()
        refused = await desk.send("tickets", "update", UPDATE)
        read = await api.get("/api/v1/jobs")
        await freeze.end()

        async def is_served() -> bool:
            return (await desk.send("tickets", "update", UPDATE)).status == 200

        await eventually(is_served)

    assert (refused.status, refused.headers["Retry-After"]) == (503, "30")
    assert "moved to another gateway" in refused.document(503)["detail"]
    assert read.status == 200


async def test_queued_jobs_of_a_frozen_organization_wait(moving: Moving, skipped_pauses: None):
    job = (await moving.busy.desk.submit("tickets", "list", {"per_page": 2}))["id"]
    freeze = Freeze(moving.busy.front.services.database, moving.busy.id)
    await freeze.begin()

    await run_jobs(moving.busy.front)

    async with moving.here() as api:
        assert (await api.get(f"/api/v1/jobs/{job}")).document()["status"] == "queued"
    await freeze.end()


async def test_an_export_gives_up_while_a_job_runs(moving: Moving, skipped_pauses: None):
    database = moving.busy.front.services.database
    job = (await moving.busy.desk.submit("tickets", "list", {"per_page": 2}))["id"]
    async with database.system() as connection:
        await connection.execute(
            "UPDATE jobs SET status = 'running', lease_until = now() + interval '1 hour' WHERE id = $1", UUID(job)
        )

    with pytest.raises(Conflict, match=job):
        await Freeze(database, moving.busy.id).begin(8)

    async with database.system() as connection:
        assert await connection.fetchval("SELECT moving_since FROM organizations WHERE id = $1", moving.busy.id) is None


@pytest.mark.parametrize("status", [None, "succeeded"])
async def test_an_export_that_fails_serves_no_writes_that_an_earlier_one_refuses(
    moving: Moving, skipped_pauses: None, status: str | None
):
    """The file of the earlier one may have been imported, by an operator's command or by a job."""
    database = moving.busy.front.services.database
    exporting, other = [
        UUID((await moving.busy.desk.submit("tickets", "list", {"per_page": 2}))["id"]) for _ in range(2)
    ]
    change = "UPDATE jobs SET status = $2, lease_until = now() + interval '1 hour' WHERE id = $1"
    async with database.system() as connection:
        await connection.execute(change, exporting, status or "canceled")
    await Freeze(database, moving.busy.id, None if status is None else exporting).begin()
    async with database.system() as connection:
        await connection.execute(change, other, "running")

    with pytest.raises(Conflict, match="Writes stay refused"):
        await Freeze(database, moving.busy.id).begin(8)

    async with database.system() as connection:
        assert await connection.fetchval("SELECT moving_since FROM organizations WHERE id = $1", moving.busy.id)


async def test_tokens_are_not_renewed_while_the_organization_is_moved(moving: Moving, skipped_pauses: None):
    """The application may accept a refresh token only once."""
    database = moving.busy.front.services.database
    await Freeze(database, moving.busy.id).begin()
    change = "UPDATE connector_secrets SET sealed = '' WHERE organization_id = $1"

    with pytest.raises(GatewayError, match="blocked each other"):
        async with database.system() as connection:
            await connection.execute(change, moving.busy.id)

    assert await database.trouble() is None


async def test_the_commands_move_an_organization(moving: Moving, tmp_path: Path):
    here, there = environment_of(moving.busy.front), environment_of(moving.target)
    file, organization_id = str(tmp_path / "acme.sealed"), str(moving.busy.id)
    key = (await invoked("keys", "recipient", environment=there, directory=tmp_path)).out.strip()
    exporting = ("export-organization", organization_id, file, "--recipient", key, "--copy", "-o", "json")

    exported = await invoked(*exporting, environment=here, directory=tmp_path)
    again = await invoked(*exporting, environment=here, directory=tmp_path)
    imported = await invoked("import-organization", file, "-o", "json", environment=there, directory=tmp_path)
    elsewhere = await invoked("import-organization", file, environment=here, directory=tmp_path)

    assert (exported.code, imported.code) == (0, 0), (exported.err, imported.err)
    assert exported.json() == imported.json()
    assert (tmp_path / "acme.sealed").stat().st_mode & 0o777 == 0o600
    assert (again.code, elsewhere.code) == (1, 1)
    assert "exists already" in again.err
    assert "another gateway" in elsewhere.err


async def test_an_administrator_exports_the_organization_as_a_job(moving: Moving, skipped_pauses: None):
    key = recipient_key(moving.target.services.keys.all)
    async with moving.here() as api:
        wrong = await api.post(EXPORT, {"recipient_key": "no key"})
        job = (await api.post(EXPORT, {"recipient_key": key})).document(202)["job"]["id"]
        await run_jobs(moving.busy.front)
        ended = (await api.get(f"/api/v1/jobs/{job}")).document()
        file = (await api.get(f"/api/v1/jobs/{job}/result")).body
        refused = await api.post("/api/v1/webhooks", {"url": "https://hooks.example/", "types": ["job.*"]})

    counts = await moving.imported(file)

    assert wrong.status == 422
    assert ended["status"] == "succeeded", ended["error"]
    assert refused.status == 503
    assert counts["connectors"] == 1
    async with moving.there() as api:
        assert (await api.get(f"/api/v1/jobs/{job}")).status == 404


@pytest.mark.parametrize("without_files", [False, True])
async def test_the_python_client_saves_the_file_of_an_export(
    moving: Moving, tmp_path: Path, skipped_pauses: None, without_files: bool
):
    key, path = recipient_key(moving.target.services.keys.all), tmp_path / "acme.sealed"
    async with Gateway(moving.busy.front.base_url, *moving.client) as gateway:
        job = await gateway.export_organization(key, without_files=without_files)
        await run_jobs(moving.busy.front)
        saved = await job.download(path)

    lines = sealed_lines(BytesIO(path.read_bytes()), recipients_of(moving.target.services.keys.all))
    _, contents = await arrival_of(moving.target).read(lines)

    assert saved.size == path.stat().st_size
    assert contents.rows["connectors"] == 1
    assert (contents.files == 0) is without_files


async def test_writes_are_served_again_after_an_export_without_a_file(moving: Moving):
    services = moving.busy.front.services
    job = (await moving.busy.admin.post(EXPORT, {"recipient_key": recipient_key(services.keys.all)})).document(202)
    async with services.database.system() as connection:
        frozen = "UPDATE organizations SET moving_since = now(), moving_job = $2 WHERE id = $1"
        await connection.execute(frozen, moving.busy.id, UUID(job["job"]["id"]))
        lost = "UPDATE jobs SET status = 'unknown', finished_at = now() WHERE id = $1"
        await connection.execute(lost, UUID(job["job"]["id"]))

    await services.organization_export.resume()

    async def is_served() -> bool:
        return (await moving.busy.desk.send("tickets", "update", UPDATE)).status == 200

    await eventually(is_served)


async def test_an_organization_that_was_exported_can_be_deleted(moving: Moving, skipped_pauses: None):
    await Freeze(moving.busy.front.services.database, moving.busy.id).begin()

    job = (await moving.busy.delete()).document(202)["job"]
    await run_jobs(moving.busy.front)

    assert (await moving.busy.admin.get(f"/api/v1/jobs/{job['id']}")).document()["status"] == "succeeded"


async def test_every_table_moves_or_is_named_as_left_out(database: Database):
    async with database.system() as connection:
        tables = {row["name"] for row in await connection.fetch(_TABLES)}

    moved = {table.name for table in MOVED}
    assert moved | LEFT_OUT.keys() == tables
    assert not moved & LEFT_OUT.keys()
    assert all(LEFT_OUT.values())
