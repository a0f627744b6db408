"""Marks the tests that start processes, checks that no other test does, orders all tests, and limits their memory."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.foundation.aio.memory import collect_rarely, tune_gc, tune_malloc
from tests.harness.folders import remove_abandoned

TESTS = Path(__file__).parents[1]
#: folders and files that take long, the longest first, so that none of them runs last
SLOWEST = (
    *("journeys/test_openapi.py", "context_store/test_rude_copies.py", "faults", "packaging", "journeys", "sdk"),
    *("sandbox/test_spec_alone.py", "embedded", "deploy", "cli", "sandbox", "web", "context_store", "kinds/find"),
    *("test_in_process.py", "workers", "test_names.py", "test_layout.py", "jobs"),
)
#: folders whose tests start processes themselves
_STARTING = {"faults", "packaging", "journeys", "sdk", "embedded", "deploy"}
#: fixtures that start a process
_SERVERS = {"postgres_url", "redis_url", "running", "process", "start"}
_STARTS = {"subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.posix_spawn"}


class _Current:
    """The current test, and whether it may start processes."""

    name = ""
    may_start = True


def pytest_sessionstart() -> None:
    remove_abandoned()
    collect_rarely()
    tune_malloc()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _folder(item) in _STARTING or _SERVERS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.processes)
    items.sort(key=_place)


def pytest_collection_finish() -> None:
    tune_gc()


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]


def _place(item: pytest.Item) -> int:
    path = item.path.relative_to(TESTS).as_posix()
    places = (place for place, slow in enumerate(SLOWEST) if path == slow or path.startswith(f"{slow}/"))
    return next(places, len(SLOWEST))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _Current.name, _Current.may_start = item.nodeid, item.get_closest_marker("processes") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Collect the front ends of a module, which refer to themselves."""
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    assert event not in _STARTS or _Current.may_start, f"{_Current.name} starts a process: mark it as `processes`"


sys.addaudithook(_on_event)
