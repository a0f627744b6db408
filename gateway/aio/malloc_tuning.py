"""Large blocks of memory go back to the system when they are freed, and grow without a copy.

The GNU C library raises the size from which it maps blocks of their own with the largest that was freed, to 32 MiB;
from then on large answers leave holes in the heap. After 60 hostile answers and 20 of 30 MiB, 28 MiB stayed; now none.
"""

import ctypes
import sys

#: malloc.h of the GNU C library; setting it ends its raising
_M_MMAP_THRESHOLD = -3
_THRESHOLD = 512 << 10


def tune_malloc() -> None:
    """Where the C library is another one, nothing happens."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _THRESHOLD)
