"""The SOQL that the sandbox supports."""

import pytest

from gateway.sandbox.kinds.crm_query import soql
from gateway.sandbox.kinds.crm_query.grouping import grouped
from gateway.sandbox.kinds.crm_query.soql import MalformedQuery
from gateway.sandbox.store import Row

ROWS = [
    Row("1", {"Id": "1", "Name": "Alder", "Size": 3, "Open": True, "At": "2025-03-01T10:00:00.000+0000"}),
    Row("2", {"Id": "2", "Name": "O'Hara", "Size": 1, "Open": False, "At": "2025-04-01T10:00:00.000+0000"}),
    Row("3", {"Id": "3", "Name": "Birch", "Size": None, "Open": True, "At": "2025-05-01T10:00:00.000+0000"}),
]


@pytest.mark.parametrize(
    ("rest", "ids"),
    [
        ("", "123"),
        ("WHERE Name = 'Alder'", "1"),
        ("WHERE Name = 'O\\'Hara'", "2"),
        ("WHERE name LIKE '%r%'", "123"),
        ("WHERE Name LIKE 'A%'", "1"),
        ("WHERE Open = true AND Size >= 3", "1"),
        ("WHERE Open = false OR Size = null", "23"),
        ("WHERE NOT (Open = true)", "2"),
        ("WHERE Name IN ('Alder', 'Birch')", "13"),
        ("WHERE Name NOT IN ('Alder')", "23"),
        ("WHERE At >= 2025-04-01T10:00:00Z", "23"),
        ("WHERE At > 2025-04-01T10:00:00.000+0000 ", "3"),
        ("ORDER BY Size DESC", "123"),
        ("ORDER BY Open ASC, Name DESC", "231"),
        ("ORDER BY Size ASC NULLS LAST LIMIT 1", "2"),
        ("LIMIT 1 OFFSET 1", "2"),
    ],
)
def test_a_query_finds_its_rows(rest, ids):
    query = soql.parse(f"SELECT Id FROM Thing {rest}")

    assert "".join(row.id for row in soql.run(query, ROWS)) == ids


def test_groups_are_counted_and_summed():
    query = soql.parse("SELECT Open, COUNT(Id), SUM(Size) total FROM Thing GROUP BY Open")

    found = grouped(query, ROWS)

    assert [(record["Open"], record["expr0"], record["total"]) for record in found] == [(True, 2, 3), (False, 1, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "DELETE FROM Thing",
        "SELECT Id FROM Thing WHERE",
        "SELECT Id FROM Thing WHERE Name",
        "SELECT Id FROM Thing WHERE Name = 'open",
        "SELECT Id FROM Thing WHERE (Name = 'x'",
        "SELECT Id FROM Thing LIMIT many",
        "SELECT Id FROM Thing SORTED",
    ],
)
def test_an_invalid_query_is_malformed(text):
    with pytest.raises(MalformedQuery):
        soql.parse(text)
