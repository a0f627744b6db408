"""Folders for stores, in memory if there is room: a cluster has a thousand files, which are slow on disks."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_MEMORY = Path("/dev/shm")
#: bytes for several clusters of each test process, and the environment into which the wheel is installed
_ROOM = 4 << 30
_PREFIX = "gw-"
#: seconds for which a new folder may have no lock yet
_NEW = 60


@contextmanager
def short_path() -> Iterator[Path]:
    """A new folder within the block; its path is short enough for unix sockets."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_memory()))
    try:
        with _locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(parent: Path = _MEMORY) -> None:
    """Remove the folders of processes that were killed, which would fill the memory."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another process was faster, or may not
            if time.time() - folder.stat().st_mtime < _NEW:
                continue
            with _locked(folder):
                shutil.rmtree(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which ends with the process; raises OSError if another process holds it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


@cache
def _memory() -> Path | None:
    has_room = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM
    return _MEMORY if has_room else None
