"""The answer of a search for operations."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.operation_search.entries import OperationEntry


@dataclass(frozen=True, slots=True)
class Match:
    """An operation, and how well it fits; scores compare within one search only, and are None where all are listed."""

    entry: OperationEntry
    score: float | None


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of a search."""

    #: the operations that do the task, best first
    data: Sequence[Match] = ()
    #: where none does it, those that come closest
    closest: Sequence[Match] = ()
    #: where none does it, a sentence that says what is missing
    message: str | None = None
