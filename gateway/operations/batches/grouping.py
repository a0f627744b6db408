"""Groups the operations of a batch for bulk requests: pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.contract.kinds import Effect
from gateway.operations.batches.model import StoredOperation
from gateway.upstream.bulk import Match, group_of, match_of
from gateway.upstream.prepared import PreparedCall

#: an operation with its index in the batch
Numbered: TypeAlias = tuple[int, StoredOperation]


@dataclass(frozen=True, slots=True)
class _Group:
    """A group that further operations may join."""

    members: list[Numbered]
    max_items: int
    #: the values that distinguish its calls; a request writes each record once
    matches: set[Match] = field(default_factory=set)

    def takes(self, call: PreparedCall) -> bool:
        is_other = call.effect is Effect.READ or match_of(call) not in self.matches
        return is_other and len(self.members) < self.max_items


def grouped(operations: Iterable[tuple[Numbered, PreparedCall | None]]) -> list[list[Numbered]]:
    """The operations in groups, in the order of their first members; an operation whose call is None is alone.

    No operation moves past a write: reads are grouped up to the next write, and writes with adjacent ones.
    """
    groups: list[list[Numbered]] = []
    may_grow: dict[str, _Group] = {}
    is_reading = True
    for numbered, call in operations:
        key = None if call is None else group_of(call)
        is_read = call is not None and call.effect is Effect.READ
        if not (is_read and is_reading):
            may_grow = {key: may_grow[key]} if key is not None and key in may_grow and not is_read else {}
        is_reading = is_read
        how = None if call is None or key is None else call.operation.action.bulk
        if call is None or key is None or how is None:
            groups.append([numbered])
            continue
        group = may_grow.get(key)
        if group is None or not group.takes(call):
            group = may_grow[key] = _Group([], how.max_items)
            groups.append(group.members)
        group.members.append(numbered)
        group.matches.add(match_of(call))
    return groups
