"""The output of a child: a log file, or a pipe whose lines are passed to a function."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

#: bytes of a log file, above which the next start truncates it
LOG_LIMIT = 1 << 20

#: maximum bytes of a line that is forwarded
LONGEST_LINE = 1 << 20

#: seconds to wait for the last lines of a child that exited; its own children may keep the pipe open for longer
LAST_LINES_TIMEOUT = 1.0


@contextmanager
def log_file(path: Path) -> Iterator[int]:
    """Open the log for appending, mode 0600; yields its file descriptor."""
    too_large = path.exists() and path.stat().st_size > LOG_LIMIT
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if too_large else 0), 0o600)
    try:
        yield file
    finally:
        os.close(file)


def last_lines(path: Path | None, count: int = 10) -> list[str]:
    """The last lines of a log; empty if there is none."""
    if path is None or not path.exists():
        return []
    return path.read_text(errors="replace").splitlines()[-count:]


@asynccontextmanager
async def line_pipe(on_line: Callable[[str], None]) -> AsyncIterator[int]:
    """Yield the write end of a pipe for a child; `on_line` is called with each line. Keep it open while the child runs.

    It is not asyncio's pipe: some versions of asyncio report the exit of a child only after the end of its output.
    """
    read_end, write_end = os.pipe()
    forwarding = asyncio.create_task(_forward(read_end, on_line))
    try:
        yield write_end
    finally:
        os.close(write_end)
        await asyncio.wait({forwarding}, timeout=LAST_LINES_TIMEOUT)
        forwarding.cancel()
        await asyncio.gather(forwarding, return_exceptions=True)


async def _forward(read_end: int, on_line: Callable[[str], None]) -> None:
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    protocol = asyncio.StreamReaderProtocol(reader)
    stream = os.fdopen(read_end, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, stream)
    try:
        while (line := await _next_line(reader)) is not None:
            with suppress(OSError):  # a closed output of this process must not block the child
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
