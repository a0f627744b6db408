"""Folders for stores, in memory if there is room: a cluster has a thousand files, which are slow on disks."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_MEMORY = Path("/dev/shm")
#: bytes for several clusters of each test process, and the environment into which the wheel is installed
_ROOM = 4 << 30


@contextmanager
def short_path() -> Iterator[Path]:
    """A new folder within the block; its path is short enough for unix sockets."""
    folder = Path(tempfile.mkdtemp(prefix="gw-", dir=_memory()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _memory() -> Path | None:
    has_room = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM
    return _MEMORY if has_room else None
