"""A program to run as a child: its command, its user, the check that it is ready, and the signal that stops it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.embedded.service_user import ServiceUser

LAUNCHER = str(Path(__file__).with_name("parent_death_signal.py"))


@dataclass(frozen=True, slots=True)
class Program:
    """A program that a supervisor runs as a child process."""

    name: str
    role: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    #: the user that the program runs as; None is the user of this process
    service_user: ServiceUser | None = None
    #: directories that are opened before the change of user; `service_user.paths_for` returns their paths
    directories: tuple[Path, ...] = ()
    #: file for stdout and stderr; if None, the supervisor reads the lines
    log: Path | None = None
    #: called before every start, also before a restart
    prepare: Callable[[], None] | None = None
    #: called with the process id; whether the program responds
    is_ready: Callable[[int], bool] | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    #: the exit status that means that the settings are invalid
    unusable_status: int | None = None
    #: seconds between the stop signal and the hard signal
    grace: float = 10.0
    hard_signal: signal.Signals = signal.SIGKILL
    #: the signal that the program gets if its parent is killed
    orphan_signal: signal.Signals = signal.SIGKILL

    def command(self) -> tuple[str, ...]:
        """The full command line: the launcher `parent_death_signal`, then the program."""
        user = f"{self.service_user.uid}:{self.service_user.gid}" if self.service_user else "-"
        directories = (str(len(self.directories)), *map(str, self.directories))
        launcher = (LAUNCHER, str(os.getpid()), str(int(self.orphan_signal)), user, *directories)
        # -I and -S: no site packages, and no module of the gateway that shadows the standard library
        return (sys.executable, "-I", "-S", *launcher, *self.argv)

    def launch_options(self, output: int) -> dict[str, Any]:
        """Arguments of `Popen`, also for asyncio; in a new session the child does not get the terminal's Ctrl-C."""
        return {
            "env": dict(self.env),
            "stdin": subprocess.DEVNULL,
            "stdout": output,
            "stderr": output,
            "start_new_session": True,
        }
