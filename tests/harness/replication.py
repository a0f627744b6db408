"""A primary and its hot standby in streaming replication, both on ports of this machine."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import asyncpg

from gateway.embedded.directory import owned_directory
from gateway.embedded.postgres import DATABASE, SUPERUSER, EmbeddedPostgres
from gateway.embedded.program import Program
from gateway.embedded.server import SERVER_ENVIRONMENT, LocalServer
from gateway.embedded.service_user import paths_for
from tests.harness.clusters import with_cluster
from tests.harness.processes import free_port


class ListeningPostgres(EmbeddedPostgres):
    """A server that also listens on a port, because the standby may not enter the socket's directory."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, durable=False)
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/{DATABASE}"

    def program(self) -> Program:
        program = super().program()
        listening = ("-p", str(self.port), "-c", "listen_addresses=127.0.0.1")
        return replace(program, argv=(*program.argv, *listening), is_ready=self._responds)

    def copy(self, primary: "ListeningPostgres") -> None:
        """Make the cluster a standby of the running primary; the server is not started yet."""
        LocalServer.open(self)  # without a cluster of its own
        owned_directory(self.cluster, self.service_user)
        (named,) = paths_for(self.service_user, (self.cluster,))
        address = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", SUPERUSER)
        program = Program(
            name="pg_basebackup",
            role="postgres",
            argv=(self.binary("pg_basebackup"), "-D", named, *address, "-R", "-X", "stream", "-c", "fast", "--no-sync"),
            env=SERVER_ENVIRONMENT,
            service_user=self.service_user,
            directories=(self.cluster,) if self.service_user else (),
        )
        subprocess.run(program.command(), env=SERVER_ENVIRONMENT, cwd=self.directory, check=True)
        self.close()

    async def require_standby(self) -> None:
        """Let commits wait from now on until a standby has them."""
        await self._execute("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")

    async def promote(self) -> None:
        """Make the standby a primary; returns when it accepts writes."""
        await self._execute("SELECT pg_promote()")

    async def _execute(self, *statements: str) -> None:
        connection = await asyncpg.connect(self.url)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    def _responds(self, pid: int) -> bool:
        lines = self._lock_lines()
        return len(lines) >= 8 and lines[0].strip() == str(pid) and lines[7].strip() in ("ready", "standby")


@contextmanager
def replicated(directory: Path) -> Iterator[tuple[str, str]]:
    """The URLs of a primary and of its standby."""
    primary = ListeningPostgres(directory / "primary")
    standby = ListeningPostgres(directory / "standby")
    with_cluster(primary)
    try:
        primary.start()
        standby.copy(primary)
        yield primary.url, standby.start()
    finally:
        standby.stop()
        primary.stop()
