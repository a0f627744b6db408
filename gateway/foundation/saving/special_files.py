"""Targets that are no regular files, such as FIFOs and /dev/null: they are written to, and never replaced."""

import asyncio
import errno
import os
from pathlib import Path

#: seconds between tries to open a FIFO that no process reads
_POLL = 0.05


def is_special(path: Path) -> bool:
    """Whether the path exists, and is neither a regular file nor a folder; a symbolic link is followed."""
    return path.exists() and not path.is_file() and not path.is_dir()


async def opened(path: Path) -> int:
    """A file descriptor to write to; waits until another process reads a FIFO."""
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            await asyncio.sleep(_POLL)
        else:
            os.set_blocking(descriptor, True)
            return descriptor
