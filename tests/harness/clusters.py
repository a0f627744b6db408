"""A PostgreSQL cluster made once in a process and copied from then on: to make one takes five times as long."""

import atexit
import subprocess
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from gateway.embedded.postgres import EmbeddedPostgres
from tests.harness.folders import short_path

_stack = ExitStack()
atexit.register(_stack.close)


def with_cluster(server: EmbeddedPostgres) -> EmbeddedPostgres:
    """The server, which has not started yet, with a cluster that nobody has used, as it would have made it itself."""
    server.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    subprocess.run(["cp", "--archive", _unused(), server.cluster], check=True)  # keeps whom it belongs to
    return server


def remove_unused() -> None:
    """Take away what others are copied from; a process of pytest-xdist ends without what is registered for its exit."""
    _stack.close()


@cache
def _unused() -> Path:
    server = EmbeddedPostgres(_stack.enter_context(short_path()) / "postgres", durable=False)
    server.start()
    server.stop()
    return server.cluster
