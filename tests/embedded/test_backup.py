"""Backups of the embedded PostgreSQL while it runs, and their restore."""

import asyncio
import json
import stat

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.embedded import StartupError
from gateway.embedded.backup import backup, restore
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.foundation.db.migrate import migrate

ADD = "INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), 'kept')"
COUNT = "SELECT count(*) FROM organizations"


async def test_a_dump_of_a_running_server_is_restored_in_another_directory(place, postgres, sql):
    await migrate(postgres.start())
    await sql(postgres.url, ADD)

    backup(place, place / "gateway.dump")
    await restore(place / "elsewhere", place / "gateway.dump")

    again = EmbeddedPostgres(place / "elsewhere" / "postgres", durable=False)
    try:
        assert await sql(again.start(), COUNT) == 1
        assert await migrate(again.url) == []
    finally:
        again.stop()
    assert stat.S_IMODE((place / "gateway.dump").stat().st_mode) == 0o600


async def test_a_device_is_written_to_and_not_replaced(place, postgres):
    await migrate(postgres.start())
    (place / "nothing").symlink_to("/dev/null")

    backup(place, place / "nothing")

    assert (place / "nothing").is_char_device()
    assert (place / "nothing").is_symlink()


async def test_a_restore_replaces_the_data(place, postgres, sql):
    await migrate(postgres.start())
    backup(place, place / "empty.dump")
    await sql(postgres.url, ADD)
    postgres.stop()

    await restore(place, place / "empty.dump")

    assert await sql(postgres.start(), COUNT) == 0


ACCEPT = """
    WITH organization AS (INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), 'o') RETURNING id)
    INSERT INTO jobs (id, organization_id, client_id, entity, action, effect, status, is_inline, total, progress)
    SELECT gen_random_uuid(), organization.id, gen_random_uuid(), 'tickets', 'create', effect, status, is_inline, 10, 4
    FROM organization, unnest(ARRAY['read', 'write', 'idempotent']) AS effect,
         unnest(ARRAY['queued', 'waiting', 'running', 'succeeded']) AS status, unnest(ARRAY[false, true]) AS is_inline
"""
STATES = "SELECT json_object_agg(effect || ' ' || status, count) FROM ({})".format(
    "SELECT effect, status, count(*) FROM jobs GROUP BY effect, status"
)


@pytest.mark.parametrize("is_resumed", [False, True], ids=["ended", "resumed"])
async def test_unfinished_writes_of_a_dump_end_as_unknown_unless_they_are_resumed(place, postgres, sql, is_resumed):
    await migrate(postgres.start())
    await sql(postgres.url, ACCEPT)
    before = await sql(postgres.url, STATES)
    backup(place, place / "gateway.dump")
    postgres.stop()

    command = ["restore", "--yes", "--data-dir", str(place), str(place / "gateway.dump")]
    restored = await asyncio.to_thread(CliRunner().invoke, main, [*command, *(["--resume-jobs"] if is_resumed else [])])
    after = json.loads(str(await sql(postgres.start(), STATES)))

    assert restored.exit_code == 0, restored.output
    if is_resumed:
        assert after == json.loads(str(before))
        return
    assert "12 unfinished writes ended as unknown" in restored.output
    assert {each: after[each] for each in after if not each.startswith("read")} == {
        **{f"{effect} unknown": 6 for effect in ("write", "idempotent")},
        **{f"{effect} succeeded": 2 for effect in ("write", "idempotent")},
    }
    assert {each: after[each] for each in after if each.startswith("read")} == {
        f"read {status}": 2 for status in ("queued", "waiting", "running", "succeeded")
    }
    known = json.loads(str(await sql(postgres.url, "SELECT error FROM jobs WHERE status = 'unknown' LIMIT 1")))["known"]
    assert known == {"request_sent": "maybe", "items": 10, "items_done": 4}
    assert await sql(postgres.url, "SELECT count(*) FROM audit WHERE outcome = 'unknown'") == 12


async def test_unfinished_writes_of_an_own_server_are_ended_by_a_command(place, postgres, sql, monkeypatch):
    await migrate(postgres.start())
    await sql(postgres.url, ACCEPT)
    monkeypatch.setenv("GATEWAY_DATABASE_URL", postgres.url)

    ended = await asyncio.to_thread(CliRunner().invoke, main, ["end-writes", "--yes"])

    assert (ended.exit_code, "12 unfinished writes ended as unknown" in ended.output) == (0, True), ended.output
    assert json.loads(str(await sql(postgres.url, STATES)))["write unknown"] == 6


async def test_a_restore_is_refused_while_the_server_runs(place, postgres, sql):
    await migrate(postgres.start())
    backup(place, place / "gateway.dump")

    with pytest.raises(StartupError, match="in use by process"):
        await restore(place, place / "gateway.dump")


@pytest.mark.parametrize("command", [["backup", "x.dump"], ["restore", "--yes", __file__]])
def test_an_impossible_backup_or_restore_is_a_short_error(place, command):
    done = CliRunner().invoke(main, [*command, "--data-dir", str(place / "nothing")])

    assert done.exit_code != 0
    assert "Traceback" not in done.output
    assert len(done.output.strip().splitlines()) <= 3


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_a_backup_does_not_write_to_an_existing_file_or_link(place, kind):
    (place / "postgres" / "run").mkdir(parents=True)
    partial, precious = place / ".gateway.dump.part", place / "precious"
    if kind != "dangling link":
        precious.write_text("kept")
    if kind == "file":
        partial.write_text("kept")
    else:
        partial.symlink_to(precious)

    with pytest.raises(StartupError, match="exists already"):
        backup(place, place / "gateway.dump")

    assert partial.is_symlink() is (kind != "file")
    assert precious.exists() is (kind != "dangling link")
    assert not precious.exists() or precious.read_text() == "kept"
