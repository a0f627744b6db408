"""The output of a child: a log file of its own, or a pipe whose lines are passed on."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

#: a log file larger than this (bytes) begins anew at the next start
LOG_LIMIT = 1 << 20

#: bytes of the longest line that is forwarded
LONGEST_LINE = 1 << 20

#: seconds to wait for the last lines of a child that ended; its own children may hold the pipe open for longer
LAST_WORDS = 1.0


@contextmanager
def log_file(path: Path) -> Iterator[int]:
    """The log open for appending, mode 0600."""
    too_large = path.exists() and path.stat().st_size > LOG_LIMIT
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if too_large else 0), 0o600)
    try:
        yield file
    finally:
        os.close(file)


def last_lines(path: Path | None, count: int = 10) -> list[str]:
    """The end of a log; empty if there is none."""
    if path is None or not path.exists():
        return []
    return path.read_text(errors="replace").splitlines()[-count:]


@asynccontextmanager
async def line_pipe(on_line: Callable[[str], None]) -> AsyncIterator[int]:
    """The writing end of a pipe; each line written to it is passed on. Open it for as long as the child lives.

    Not asyncio's pipe: some versions of asyncio report the end of a child only after the end of its output.
    """
    read_end, write_end = os.pipe()
    forwarding = asyncio.create_task(_forward(read_end, on_line))
    try:
        yield write_end
    finally:
        os.close(write_end)
        await asyncio.wait({forwarding}, timeout=LAST_WORDS)
        forwarding.cancel()
        await asyncio.gather(forwarding, return_exceptions=True)


async def _forward(read_end: int, on_line: Callable[[str], None]) -> None:
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    protocol = asyncio.StreamReaderProtocol(reader)
    stream = os.fdopen(read_end, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, stream)
    try:
        while (line := await _next_line(reader)) is not None:
            with suppress(OSError):  # this process's output may be closed; the child must not block because of that
                on_line(line)
    finally:
        transport.close()


async def _next_line(reader: asyncio.StreamReader) -> str | None:
    """The next line without its newline; None after the last one."""
    try:
        line = await reader.readline()
    except ValueError:
        return "(a line too long to show)"
    return line.decode(errors="replace").rstrip("\n") if line else None
