"""The result of a search for operations."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.kinds.find.entries import OperationEntry


@dataclass(frozen=True, slots=True)
class Match:
    """An operation and its score; scores are comparable within one search only, and None in a list of everything."""

    entry: OperationEntry
    score: float | None


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of a search."""

    #: the operations that do the task, best first
    data: Sequence[Match] = ()
    #: the closest operations, if none does the task
    closest: Sequence[Match] = ()
    #: a message that says what is missing, if no operation does the task
    message: str | None = None
