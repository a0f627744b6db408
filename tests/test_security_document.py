"""docs/security.md promises nothing that no test holds."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> list[str]:
    """The promises: rows of the tables below their headings."""
    promises = (ROOT / "docs/security.md").read_text("utf-8").split("## Promises")[1].split("## What is not")[0]
    return [
        row for row in promises.splitlines() if row.startswith("| ") and not row.startswith(("| promise", "| resource"))
    ]


def test_every_promise_names_a_test():
    assert [row for row in rows() if not TEST.search(row)] == []


def test_every_named_test_exists():
    named = {test for row in rows() for test in TEST.findall(row)}
    missing = {
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).exists() or not re.search(rf"def {name}\b", (ROOT / path).read_text("utf-8"))
    }

    assert missing == set()
