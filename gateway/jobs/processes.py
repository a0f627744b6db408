"""The names of the processes that hold leases, and the proof that such a process has ended."""

import hashlib
import os
import re
import socket
from functools import cache
from pathlib import Path
from uuid import uuid4

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_NAME = re.compile(r".*:(?P<pid>[1-9][0-9]*):(?P<namespace>[0-9a-f]+):[0-9a-f]{8}")


def process_name(pid: int | None = None) -> str:
    """A name that no other process has, earlier or later: host, pid, pid namespace and a random part.

    Of this process, or of the one with that pid in the same namespace.
    """
    return f"{socket.gethostname()}:{pid or os.getpid()}:{_pid_namespace()}:{uuid4().hex[:8]}"


def has_ended(name: str) -> bool:
    """Whether the process has certainly ended: it had a pid in this process's pid namespace, and the pid is free.

    False if unknown: for a process of another host or container, or if another process has its pid.
    """
    match = _NAME.fullmatch(name)
    if match is None or match["namespace"] != _pid_namespace():
        return False
    try:
        os.kill(int(match["pid"]), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it belongs to another user, so it exists
        return False
    return False


@cache
def _pid_namespace() -> str:
    """A digest shared only by processes that see the same pids; empty if the system does not provide it."""
    try:
        same = f"{_BOOT_ID.read_text()}{_PID_NAMESPACE.readlink()}"
    except OSError:
        return ""
    return hashlib.sha256(same.encode()).hexdigest()[:8]
