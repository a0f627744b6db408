"""How much a computation does, whatever else this process and this machine do."""

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def calls_made(run: Callable[[], object]) -> int:
    """The number of functions that are called, in Python and in C: the same in each run."""
    count = 0

    def count_call(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_call)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


@contextmanager
def seconds_at_most(limit: float) -> Iterator[None]:
    """Fail if the block takes more processor time of its thread.

    No garbage is collected within it: that takes as long as the objects of all earlier tests are many.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    began = time.thread_time()
    try:
        yield
        took = time.thread_time() - began
    finally:
        if was_enabled:
            gc.enable()
    assert took <= limit, f"it took {took:.3f} s"
