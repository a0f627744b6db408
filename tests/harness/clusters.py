"""PostgreSQL clusters: one is created in each process and then copied, which takes a fifth of the time."""

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
    """Give the server, which is not started yet, an unused cluster, as it would create it itself."""
    server.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    subprocess.run(["cp", "--archive", _unused(), server.cluster], check=True)  # keeps the owner
    return server


def remove_unused() -> None:
    """Remove the cluster that is copied; processes of pytest-xdist do not run atexit handlers."""
    _stack.close()


@cache
def _unused() -> Path:
    server = EmbeddedPostgres(_stack.enter_context(short_path()) / "postgres", durable=False)
    server.start()
    server.stop()
    return server.cluster
