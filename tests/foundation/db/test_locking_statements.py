"""Statements that lock rows lock no more than they say, and see no other rows as they were before.

PostgreSQL's documentation: *Read Committed Isolation Level* (a statement that waited for a lock reads the locked row
again, and other rows as they were when it began), and *The Locking Clause*.
"""

import importlib
import pkgutil
import re
from collections.abc import Iterator

import gateway

_LOCKING = re.compile(r"FOR (?:NO KEY )?(?:UPDATE|SHARE)\b")
_TABLES = re.compile(r"\b(?:FROM|JOIN)\b")
#: statements that read other rows beside those that they lock and wait for, and why they may
WAITING = {
    "gateway.jobs.leases": "the others are the statement's arguments",
    "gateway.operations.approvals.store": "the other is the approval, which is locked before its job",
    "gateway.operations.approvals.notice_store": "names, and whether a client was disabled a moment ago",
    "gateway.run.moving.freeze": "a job that ended a moment ago is tried again",
}


def locking_selects() -> Iterator[tuple[str, str, str]]:
    """Each SELECT with a locking clause: its module, what stands before its parenthesis, and its text."""
    for module in pkgutil.walk_packages(gateway.__path__, "gateway."):
        if module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, str):
                for clause in _LOCKING.finditer(value):
                    begin = _begin_of(value, clause.start())
                    end = value.find(")", clause.end())
                    yield module.name, value[:begin].rstrip(" ("), value[begin : end if end > 0 else None].strip()


def _begin_of(text: str, position: int) -> int:
    """Where the innermost parentheses around this position begin; 0 outside of all."""
    depth = 0
    for place in range(position - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[place], 0)
        if depth < 0:
            return place + 1
    return 0


def test_a_subquery_that_locks_some_rows_runs_once():
    """A CTE and ARRAY run once; PostgreSQL may run another subquery again, which locks the next rows too."""
    seen = list(locking_selects())
    repeated = {
        f"{module}: {text}"
        for module, before, text in seen
        if "LIMIT" in text and before and not re.search(r"\bAS(?: MATERIALIZED)?$|\bARRAY$", before)
    }

    assert len(seen) > 50
    assert repeated == set()


def test_a_statement_that_waits_for_a_lock_reads_no_other_rows():
    stale = {
        f"{module}: {text}"
        for module, _, text in locking_selects()
        if "SKIP LOCKED" not in text and len(_TABLES.findall(text)) > 1 and module not in WAITING
    }

    assert stale == set()


def test_each_exception_is_needed():
    needed = {
        module for module, _, text in locking_selects() if "SKIP LOCKED" not in text and len(_TABLES.findall(text)) > 1
    }

    assert needed >= set(WAITING)
