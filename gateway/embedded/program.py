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
    """One child process as its supervisor sees it."""

    name: str
    role: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    #: the user it runs as; None is the user of this process
    service_user: ServiceUser | None = None
    #: opened before the change of user; it finds them as `service_user.paths_for` says
    directories: tuple[Path, ...] = ()
    #: takes stdout and stderr; without it the supervisor reads the lines
    log: Path | None = None
    #: runs before every start, also before a restart
    prepare: Callable[[], None] | None = None
    #: gets the process id, says whether the program answers
    is_ready: Callable[[int], bool] | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    #: the exit status that says that it cannot use its settings
    unusable_status: int | None = None
    #: seconds between asking it to stop and ending it
    grace: float = 10.0
    hard_signal: signal.Signals = signal.SIGKILL
    #: the signal that it gets if its parent is killed
    orphan_signal: signal.Signals = signal.SIGKILL

    def command(self) -> tuple[str, ...]:
        """The full command line: the program behind the launcher that ends it with its parent."""
        user = f"{self.service_user.uid}:{self.service_user.gid}" if self.service_user else "-"
        directories = (str(len(self.directories)), *map(str, self.directories))
        launcher = (LAUNCHER, str(os.getpid()), str(int(self.orphan_signal)), user, *directories)
        # -I and -S: the launcher needs no site packages, and none of the gateway's modules may shadow the standard
        # library
        return (sys.executable, "-I", "-S", *launcher, *self.argv)

    def launch_options(self, output: int) -> dict[str, Any]:
        """Arguments for `Popen` and asyncio alike; a session of its own keeps the terminal's Ctrl-C away from it."""
        return {
            "env": dict(self.env),
            "stdin": subprocess.DEVNULL,
            "stdout": output,
            "stderr": output,
            "start_new_session": True,
        }
