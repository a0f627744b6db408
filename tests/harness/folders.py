"""Folders for stores: in memory where there is room, as a cluster is a thousand files, and disks are slow at those."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_MEMORY = Path("/dev/shm")
#: bytes: several clusters for each process of the tests, and the environment that the wheel is installed into
_ROOM = 4 << 30


@contextmanager
def short_path() -> Iterator[Path]:
    """A new folder, as long as the block lasts; its path is short, as unix sockets like it."""
    folder = Path(tempfile.mkdtemp(prefix="gw-", dir=_memory()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _memory() -> Path | None:
    has_room = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM
    return _MEMORY if has_room else None
