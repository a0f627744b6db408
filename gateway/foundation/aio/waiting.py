"""Counts the requests that wait, and so use no processor."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_IS_STREAM: ContextVar[bool] = ContextVar("is_stream", default=False)


@contextmanager
def streaming() -> Iterator[None]:
    """Mark this task, and the tasks that it starts within the block, as those of a stream."""
    before = _IS_STREAM.set(True)
    try:
        yield
    finally:
        _IS_STREAM.reset(before)


class Waits:
    """The waits in progress. A stream is not counted as work in any case, and may wait for many things at once."""

    def __init__(self) -> None:
        self.total = 0
        #: without those of streams
        self.of_requests = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count a wait within the block."""
        counted = not _IS_STREAM.get()
        self.total += 1
        self.of_requests += counted
        try:
            yield
        finally:
            self.total -= 1
            self.of_requests -= counted
