"""The nearest known name."""

import time

import pytest

from gateway.kinds.suggestions import nearest
from tests.harness.blocked_loop import LIMIT

NAMES = [
    f"warehouse.things{number}.{action}" for number in range(1500) for action in ("list", "get", "create", "update")
]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("warehouse.things700.lst", "warehouse.things700.list"),
        ("warehuse.things700.list", "warehouse.things700.list"),
        ("Warehouse.Things700.List", "warehouse.things700.list"),
        ("hings700.list", "warehouse.things700.list"),
        ("xyz", None),
        ("x" * 200, None),
    ],
)
def test_the_nearest_of_thousands_of_names_is_found_soon(name: str, found: str | None):
    begun = time.thread_time()

    assert nearest(name, NAMES) == found
    assert time.thread_time() - begun < LIMIT
