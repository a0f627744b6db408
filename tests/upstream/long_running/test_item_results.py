"""What each item of a portion came to, from what the application says of it."""

from typing import Any

import pytest

from gateway.kinds.long_running import ItemResults
from gateway.upstream.long_running.item_results import item_lines

TRACED = ItemResults.model_validate(
    {
        "path": ["results", "errors"],
        "id": ["id", "context.ids"],
        "trace": "trace",
        "trace_path": ["trace", "context.trace"],
        "error": ["message"],
    }
)
UNNAMED = "the application's error does not name an item: Locked"


def refused(item_id: Any, error: str) -> dict[str, Any]:
    return {"id": item_id, "success": False, "error": error}


@pytest.mark.parametrize(
    ("items", "entries", "lines"),
    [
        # in another order, by the number that the gateway gave
        (
            [{"name": "a"}, {"name": "b"}],
            [{"id": "9", "trace": "1"}, {"id": "8", "trace": "0"}],
            [{"id": "8", "success": True}, {"id": "9", "success": True}],
        ),
        # one entry about several items
        (
            [{"id": "1"}, {"id": "2"}, {"id": "3"}],
            [{"id": "2"}, {"message": "Gone", "context": {"ids": ["1", "3"]}}],
            [refused("1", "Gone"), {"id": "2", "success": True}, refused("3", "Gone")],
        ),
        # an error that names no item leaves none that is not reported for done
        (
            [{"id": "1"}, {"id": "2"}],
            [{"id": "1"}, {"message": "Locked"}],
            [{"id": "1", "success": True}, refused("2", UNNAMED)],
        ),
        # an entry about something else
        ([{"id": "1"}], [{"id": "7", "message": "Locked"}], [{"id": "1", "success": True}]),
        ([{"id": "1"}, {"id": "1"}], [{"id": "1", "message": "Twice"}], [refused("1", "Twice")] * 2),
    ],
)
def test_an_item_is_done_only_where_nothing_speaks_against_it(items, entries, lines):
    assert item_lines(TRACED, items, entries, None) == lines
