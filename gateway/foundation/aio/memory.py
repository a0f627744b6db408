"""The memory of a long-lived process: fewer garbage collections, and large blocks that are returned to the system.

Measured on a front end with all kinds loaded, at 32 connections: p99 65 → 23 ms, and 8 % less processor time a request.

The GNU C library raises M_MMAP_THRESHOLD with the largest freed block, up to 32 MiB; after that, large responses leave
holes in the heap. After 60 hostile responses and 20 of 30 MiB, 28 MiB remained; with a fixed threshold, none.
"""

import ctypes
import gc
import sys

#: the thresholds of `gc.set_threshold`; Python's defaults are 700, 10, 10
_COLLECTIONS = (20_000, 20, 50)
#: malloc.h of the GNU C library; a threshold that is set is not raised
_M_MMAP_THRESHOLD = -3
_MMAP_THRESHOLD = 512 << 10
#: the setting for heaps of threads, and their number: each thread would keep the holes of its own computations
_M_ARENA_MAX, _ARENAS = -8, 2


def collect_rarely() -> None:
    """Call it before loading data that stays, which the collector would otherwise traverse repeatedly."""
    gc.set_threshold(*_COLLECTIONS)


def tune_gc() -> None:
    """Exclude existing objects from collections; call it after all data that stays is loaded."""
    gc.freeze()
    collect_rarely()


def tune_malloc() -> None:
    """Return large blocks to the system when they are freed; does nothing with another C library."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD)
        mallopt(_M_ARENA_MAX, _ARENAS)
