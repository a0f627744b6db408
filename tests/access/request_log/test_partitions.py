"""Which partitions of the request log are dropped, and when it continues in another one."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway.access.request_log.partitions import Partition, dropped, is_full

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
YESTERDAY = NOW - 24 * HOUR


def partition(name: str, ids: int = 100, *, began_at: datetime | None = NOW, is_recent: bool = True) -> Partition:
    return Partition(name, ids, began_at, is_recent)


EMPTY = partition("empty", 0, began_at=None, is_recent=False)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (EMPTY, False),
        (partition("new", 1), False),
        (partition("nearly an eighth of the rows", 124), False),
        (partition("an eighth of the rows", 125), True),
        (partition("nearly an eighth of a day", began_at=NOW - 2.9 * HOUR), False),
        (partition("an eighth of a day", began_at=NOW - 3 * HOUR), True),
        (partition("a month", began_at=NOW - 720 * HOUR, is_recent=False), True),
        (partition("the clock was set back", began_at=NOW + 720 * HOUR), False),
    ],
    ids=lambda value: value.name if isinstance(value, Partition) else "",
)
def test_a_partition_has_an_eighth_of_the_time_or_of_the_rows(last: Partition, expected: bool):
    assert is_full(last, YESTERDAY, NOW, 1000) is expected


def test_without_retention_the_log_continues_at_once():
    assert is_full(partition("last"), NOW, NOW, 1000)
    assert not is_full(EMPTY, NOW, NOW, 1000)


OLD, LAST = partition("old", is_recent=False), partition("last", 1)


@pytest.mark.parametrize(
    ("partitions", "names"),
    [
        ([EMPTY], []),
        ([OLD], []),
        ([partition("first"), LAST], []),
        ([OLD, LAST], ["old"]),
        ([partition("first"), OLD, LAST], ["old"]),
        ([EMPTY, LAST], ["empty"]),
        ([partition("first", 200), partition("second", 800), LAST], []),
        ([partition("first", 126), partition("second", 874), LAST], ["first"]),
        ([partition("first", 125), partition("second", 125), partition("third", 874), LAST], ["first", "second"]),
        ([partition("more than all", 5000), LAST], []),
        ([partition("more than all", 5000), partition("second", 874), LAST], ["more than all"]),
    ],
    ids=lambda value: " ".join(each.name if isinstance(each, Partition) else each for each in value) or "none",
)
def test_old_partitions_and_those_beyond_the_rows_are_dropped(partitions: list[Partition], names: list[str]):
    assert list(dropped(partitions, 1000)) == names
