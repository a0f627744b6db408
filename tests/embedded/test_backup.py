"""Backups of the embedded PostgreSQL while it runs, and their restore."""

import stat

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.db.migrate import migrate
from gateway.embedded import StartupError
from gateway.embedded.backup import backup, restore
from gateway.embedded.postgres import EmbeddedPostgres

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
