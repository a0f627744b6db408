"""A start that waits for a dependency, and ends when the process is told to stop."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unless_stopped(stopping: asyncio.Event) -> Iterator[None]:
    """Cancel the block when `stopping` is set; it then ends without an error."""
    task = asyncio.current_task()
    assert task is not None

    async def cancel_when_stopped() -> None:
        await stopping.wait()
        task.cancel()

    watching = asyncio.create_task(cancel_when_stopped())
    try:
        yield
    except asyncio.CancelledError:
        if not stopping.is_set() or task.uncancel():
            raise
    finally:
        watching.cancel()
