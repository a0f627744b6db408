"""How much memory there is: that of the machine, or less where a container or a service is held to a limit."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_MIB = 1 << 20
#: of the memory, as PostgreSQL's manual has it, and its bounds in MiB; beyond them the system's own cache does
_SHARE, _LEAST, _MOST = 4, 128, 1024
#: where control groups of version 2 and 1 say what they allow
_CGROUPS, _CGROUP_V1 = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")


def available() -> int:
    """Bytes that the processes here may use."""
    return smallest(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), _limits())


def smallest(physical: int, limits: Iterable[str]) -> int:
    """The least of the machine's bytes and the limits, each a number or a word such as `max`."""
    numbers = (int(limit) for limit in limits if limit.isascii() and limit.isdigit())
    return min([physical, *(number for number in numbers if number > 0)])


def shared_buffers(memory: int) -> str:
    """PostgreSQL's setting for so many bytes of memory; none of it is taken before it is used."""
    return f"{min(_MOST, max(_LEAST, memory // _SHARE // _MIB))}MB"


def _limits() -> Iterator[str]:
    """What the control groups of this process allow, the innermost first; nothing where there are none."""
    for path in (*_own_groups(), _CGROUP_V1):
        try:
            yield path.read_text().strip()
        except OSError:
            continue


def _own_groups() -> Iterator[Path]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        if line.startswith("0::/"):
            group = _CGROUPS / line.removeprefix("0::/")
            while group != _CGROUPS.parent:
                yield group / "memory.max"
                group = group.parent
