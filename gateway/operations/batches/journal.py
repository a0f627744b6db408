"""The operations of a batch that have ended and those in flight, as a document that stays small. Pure."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from gateway.operations.batches.model import ItemStatus
from gateway.upstream.run_context import Effects

#: maximum operations of one stored part of the result
PART_LINES = 1000
#: maximum bytes of one stored part of the result; a single larger result is one part
PART_BYTES = 1 << 20


class Journal:
    """The operations of a batch that have ended, as ranges of indexes, and the writes that are in flight."""

    def __init__(self, total: int) -> None:
        self.total = total
        #: ranges [first, end), ascending and not adjacent
        self._done: list[tuple[int, int]] = []
        #: indexes of writes that may have been sent and whose response is not stored
        self.in_flight: set[int] = set()
        #: the same of idempotent writes, which the next attempt repeats
        self.repeatable: set[int] = set()
        #: indexes of writes whose intent is in the audit log, and whose end is not
        self.intended: set[int] = set()
        self.counts: Counter[str] = Counter()

    @classmethod
    def of(cls, state: Mapping[str, Any], total: int) -> "Journal":
        """The journal that an earlier attempt stored; an empty one for the first."""
        journal = cls(total)
        journal._done = [(first, end) for first, end in state.get("done", ())]
        journal.in_flight = set(state.get("in_flight", ()))
        journal.repeatable = set(state.get("repeatable", ()))
        journal.intended = set(state.get("intended", ()))
        journal.counts = Counter(state.get("counts", {}))
        return journal

    def document(self) -> dict[str, Any]:
        """The journal as the job's state, with the counts that maintenance needs to end the job."""
        open_items = len(self.in_flight | self.repeatable)
        known = {"items": self.total, "items_done": self.done, "items_in_flight": open_items}
        effects = Effects(
            known=known,
            is_open=bool(open_items),
            needs_closing=self.done < self.total,
            summary=self.summary,
            result=self.head(),
            collected="results",
        )
        return {
            "done": self._done,
            "in_flight": sorted(self.in_flight),
            "repeatable": sorted(self.repeatable),
            "intended": sorted(self.intended),
            "counts": dict(self.counts),
            **effects.document(),
        }

    @property
    def done(self) -> int:
        """The number of operations that have ended."""
        return self.counts.total()

    @property
    def has_failures(self) -> bool:
        """Whether an operation was sent and did not succeed."""
        return bool(self.counts[ItemStatus.FAILED] or self.counts[ItemStatus.UNKNOWN])

    @property
    def summary(self) -> str:
        """The numbers of operations that succeeded and that did not, for people."""
        others = (ItemStatus.FAILED, ItemStatus.UNKNOWN, ItemStatus.SKIPPED)
        counted = [f", {self.counts[status]:,} {status}" for status in others if self.counts[status]]
        return f"{self.counts[ItemStatus.SUCCEEDED]:,} of {self.total:,} operations done{''.join(counted)}"

    def head(self) -> dict[str, Any]:
        """The head of the result; of operations that have not ended, writes in flight are unknown, others skipped."""
        counts = {status.value: self.counts[status] for status in ItemStatus}
        open_items = len(self.in_flight | self.repeatable)
        counts[ItemStatus.UNKNOWN] += open_items
        counts[ItemStatus.SKIPPED] += self.total - self.done - open_items
        return {"total": self.total, **counts}

    def is_done(self, index: int) -> bool:
        place = bisect_right(self._done, (index, self.total)) - 1
        return place >= 0 and index < self._done[place][1]

    def begin(self, indexes: Collection[int], *, is_repeatable: bool) -> None:
        """Record that writes are about to be sent, whose intents are stored with it."""
        self.intended.update(indexes)
        (self.repeatable if is_repeatable else self.in_flight).update(indexes)

    def clear(self, index: int) -> None:
        """Record that a write was certainly not done."""
        self.in_flight.discard(index)
        self.repeatable.discard(index)

    def finish(self, index: int, status: ItemStatus) -> None:
        """Record the end of an operation."""
        self.clear(index)
        self.intended.discard(index)
        self.counts[status] += 1
        first, end = index, index + 1
        place = bisect_right(self._done, (index, self.total))
        if place < len(self._done) and self._done[place][0] == end:
            end = self._done.pop(place)[1]
        if place and self._done[place - 1][1] == first:
            place -= 1
            first = self._done.pop(place)[0]
        self._done.insert(place, (first, end))

    def gaps(self) -> Iterator[range]:
        """The operations that have not ended, as ranges of at most `PART_LINES`."""
        first = 0
        for done_from, done_to in [*self._done, (self.total, self.total)]:
            for start in range(first, done_from, PART_LINES):
                yield range(start, min(start + PART_LINES, done_from))
            first = done_to


def parts_of(lines: Mapping[int, str]) -> dict[int, str]:
    """Number of a part → its lines; the number is the index of its first operation plus one.

    Operations end in any order, and are stored when they end. Each part has consecutive operations, so that the parts
    in the order of their numbers are the result in the order of the operations.
    """
    parts: dict[int, list[str]] = {}
    first, previous, size = 0, -2, 0
    for index in sorted(lines):
        is_full = index - first >= PART_LINES or size >= PART_BYTES
        if index != previous + 1 or is_full:
            first, size = index, 0
            parts[first + 1] = []
        parts[first + 1].append(lines[index])
        size += len(lines[index])
        previous = index
    return {number: "".join(part) for number, part in parts.items()}
