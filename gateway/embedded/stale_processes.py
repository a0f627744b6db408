"""Ends processes of an earlier run in a directory of the gateway."""

import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from gateway.embedded import StartupError


def processes_of(directory: Path, executable: str) -> list[psutil.Process]:
    """The processes with that name and with the directory as working directory; a zombie has none."""
    home = str(directory.resolve())
    return [
        process
        for process in psutil.process_iter(["name", "cwd"])
        if process.info["name"] == executable and process.info["cwd"] == home
    ]


def end(processes: Iterable[psutil.Process], sign: signal.Signals, timeout: float) -> None:
    """Send the signal to each process and wait up to `timeout` seconds until all have ended."""
    signalled = list(processes)
    for process in signalled:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(sign)
    psutil.wait_procs(signalled, timeout=timeout)


def ensure_none(directory: Path, executable: str) -> None:
    """Raise StartupError if such a process still runs."""
    if left := processes_of(directory, executable):
        pids = ", ".join(str(process.pid) for process in left)
        raise StartupError(f"{executable} of an earlier run does not end (process {pids}). End it with: kill -9 {pids}")
