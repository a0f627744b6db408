"""The local PostgreSQL: data survive every kind of stop."""

import os
import signal
import stat
import subprocess
import sys

import asyncpg
import psutil
import pytest

from gateway.embedded import StartupError
from gateway.embedded.postgres import SERVICE_ROLE, EmbeddedPostgres
from gateway.embedded.stale_processes import processes_of
from gateway.foundation.db.migrate import migrate
from gateway.foundation.db.pool import Database
from gateway.foundation.db.service_role import ensure_service_role
from tests.harness.waiting import eventually_without_loop

KEEP = "CREATE TABLE kept AS SELECT 42 AS answer"
ANSWER = "SELECT answer FROM kept"


async def test_it_has_a_database_and_listens_on_a_unix_socket_only(new_postgres, sql):
    url = new_postgres.start()

    assert await sql(url, "SELECT current_database()") == "gateway"
    assert await sql(url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is True
    assert await sql(url, "SHOW listen_addresses") == ""
    assert [c for c in psutil.Process(new_postgres.pid).net_connections("inet") if c.status == "LISTEN"] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another account for the server")
async def test_as_root_it_needs_and_changes_no_permissions_outside_its_directory(place, sql):
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    outside = (place, closed, *place.parents)
    before = [path.stat().st_mode for path in outside]
    postgres = EmbeddedPostgres(closed / "data" / "postgres", durable=False)

    answer = await sql(postgres.start(), "SELECT 1")
    owner = psutil.Process(postgres.pid).uids().real
    postgres.stop()

    assert answer == 1
    assert owner != 0
    assert [path.stat().st_mode for path in outside] == before


async def test_the_service_role_is_no_superuser_and_can_become_the_application_role(postgres, sql):
    await migrate(postgres.start())
    for _ in range(2):
        await ensure_service_role(postgres.url, SERVICE_ROLE)

    is_super = await sql(postgres.service_url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
    async with Database.open(postgres.service_url) as database, database.system() as connection:
        role = await connection.fetchval("SELECT current_user")

    assert (is_super, role) == (False, "gateway_app")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await sql(postgres.service_url, "SELECT pg_read_file('/etc/hostname')")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await sql(postgres.service_url, "DROP TABLE jobs")


async def test_other_users_cannot_open_its_socket(postgres):
    postgres.start()

    assert stat.S_IMODE(postgres.sockets.stat().st_mode) == 0o700
    assert stat.S_IMODE((postgres.sockets / ".s.PGSQL.5432").stat().st_mode) == 0o700


@pytest.mark.parametrize(("durable", "fsync"), [(True, "on"), (False, "off")])
async def test_data_are_synced_to_disk_if_the_server_is_durable(place, sql, durable, fsync):
    postgres = EmbeddedPostgres(place / "postgres", durable=durable)

    shown = await sql(postgres.start(), "SHOW fsync")
    postgres.stop()

    assert shown == fsync


async def test_data_survive_a_stop(postgres, sql):
    await sql(postgres.start(), KEEP)

    postgres.stop()
    url = postgres.start()

    assert await sql(url, ANSWER) == 42


async def test_data_survive_a_kill_of_the_postmaster(postgres, sql):
    await sql(postgres.start(), KEEP)

    os.kill(postgres.pid, signal.SIGKILL)
    postgres.close()
    again = EmbeddedPostgres(postgres.directory, durable=False)
    url = again.start()

    assert await sql(url, ANSWER) == 42
    again.stop()


async def test_a_backend_without_postmaster_is_ended_at_the_next_start(postgres, sql):
    connection = await asyncpg.connect(postgres.start())
    backend = psutil.Process(await connection.fetchval("SELECT pg_backend_pid()"))
    backend.suspend()  # so that it does not notice the end of its postmaster

    os.kill(postgres.pid, signal.SIGKILL)
    postgres.stop()
    url = postgres.start()

    assert not backend.is_running()
    assert await sql(url, "SELECT 1") == 1
    connection.terminate()


async def test_an_orphaned_postmaster_is_stopped_at_the_next_start(postgres, sql):
    await sql(postgres.start(), KEEP)
    orphan = psutil.Process(postgres.pid)
    postgres.close()

    again = EmbeddedPostgres(postgres.directory, durable=False)
    url = again.start()

    assert orphan.pid not in {one.pid for one in processes_of(postgres.cluster, "postgres")}
    assert await sql(url, ANSWER) == 42
    again.stop()


@pytest.fixture
def zombie():
    """The process id of a zombie."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    yield process.pid
    process.wait()


async def test_lock_files_with_the_process_id_of_a_zombie_are_removed(postgres, zombie, sql):
    postgres.start()
    postgres.stop()
    leave_locks(postgres, zombie)

    url = postgres.start()

    assert await sql(url, "SELECT 1") == 1


@pytest.fixture
def other_program():
    """A running process that is not PostgreSQL."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process


async def test_lock_files_with_the_process_id_of_another_program_are_removed_and_it_keeps_running(
    postgres, other_program, sql
):
    postgres.start()
    postgres.stop()
    leave_locks(postgres, other_program.pid)

    url = postgres.start()

    assert await sql(url, "SELECT 1") == 1
    assert other_program.poll() is None


def leave_locks(postgres: EmbeddedPostgres, pid: int) -> None:
    """Write the lock files that a killed postmaster with that process id leaves."""
    lines = f"{pid}\n{postgres.cluster}\n1700000000\n5432\n{postgres.sockets}\n\n  1 1\nready   \n"
    (postgres.cluster / "postmaster.pid").write_text(lines)
    (postgres.sockets / ".s.PGSQL.5432.lock").write_text(lines)
    (postgres.sockets / ".s.PGSQL.5432").touch()


async def test_a_second_server_on_one_directory_is_refused(postgres, sql):
    url = postgres.start()

    with pytest.raises(StartupError, match=rf"in use by process {os.getpid()}\. Stop that process, or choose another"):
        EmbeddedPostgres(postgres.directory).start()

    assert await sql(url, "SELECT 1") == 1


async def test_an_incomplete_cluster_is_created_again(new_postgres, sql):
    (new_postgres.directory / "cluster.draft" / "base").mkdir(parents=True)
    (new_postgres.directory / "lock").touch()

    url = new_postgres.start()

    assert await sql(url, "SELECT 1") == 1


def test_a_cluster_of_another_version_is_refused(postgres):
    postgres.start()
    postgres.stop()
    (postgres.cluster / "PG_VERSION").write_text("16\n")

    with pytest.raises(StartupError, match="created by PostgreSQL 16, this is 18"):
        postgres.start()


def test_the_output_of_postgres_is_part_of_the_error_if_it_does_not_start(postgres):
    postgres.start()
    postgres.stop()
    (postgres.cluster / "postgresql.conf").write_text("max_connections = many\n")

    with pytest.raises(StartupError, match=r"postgres does not start(.|\n)*max_connections"):
        postgres.start()


async def test_a_long_path_gets_a_short_directory_for_its_socket(place, sql):
    deep = place / ("d" * 60) / ("e" * 60)
    postgres = EmbeddedPostgres(deep, durable=False)

    answer = await sql(postgres.start(), "SELECT 1")
    sockets, linked = postgres.sockets, (deep / "run").readlink()
    postgres.stop()
    sockets.rmdir()

    assert answer == 1
    assert linked == sockets
    assert len(str(sockets)) < 80


async def test_failed_statements_and_their_values_stay_out_of_the_log(postgres, sql):
    url = postgres.start()

    with pytest.raises(asyncpg.PostgresError):
        await sql(url, "SELECT 'sesame' / 0")

    assert "sesame" not in postgres.log.read_text()


def test_it_dies_with_the_process_that_started_it(place, is_alive):
    script = f"""
from pathlib import Path
from gateway.embedded.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path({str(place / "postgres")!r}), durable=False)
server.start()
print(server.pid, flush=True)
input()
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())

        parent.kill()

    eventually_without_loop(lambda: not is_alive(pid))
    eventually_without_loop(lambda: processes_of(place / "postgres" / "cluster", "postgres") == [])
