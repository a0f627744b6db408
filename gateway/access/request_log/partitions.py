"""Decides when the request log continues in a new partition, and which of its partitions are dropped."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

#: a partition has this part of the time and of the number of requests that are kept
_PART = 8


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition of the log."""

    name: str
    #: from its lowest id to its highest one
    ids: int
    #: the time of its first request; None if it is empty
    began_at: datetime | None
    #: whether it has a request that is not too old to be kept
    is_recent: bool


def is_full(last: Partition, oldest: datetime, now: datetime, rows: int) -> bool:
    """Whether requests from now on belong into another partition; `oldest` is the time of requests that are dropped."""
    if last.began_at is None:
        return False
    return last.ids >= rows // _PART or now - last.began_at >= (now - oldest) / _PART


def dropped(partitions: Sequence[Partition], rows: int) -> Iterator[str]:
    """The partitions whose requests are too old, and the first ones of those that have more than `rows` together.

    The last partition stays, and so does one without which fewer than seven eighths of `rows` would be left.
    """
    ids = sum(partition.ids for partition in partitions)
    for partition in partitions[:-1]:
        if not partition.is_recent or ids - partition.ids >= rows - rows // _PART:
            ids -= partition.ids
            yield partition.name
