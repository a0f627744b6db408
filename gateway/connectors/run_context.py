"""What a run leaves behind as it goes, so that another process can go on where it stopped."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Journal(Protocol):
    """The durable memory of one run. A job's journal is its row; a caller's own process keeps none."""

    @property
    def state(self) -> Mapping[str, Any]:
        """What an earlier attempt of this run saved last; empty at first."""

    async def sending(self) -> None:
        """Note, durably, that the first byte of a write is about to go out; raises when it must not."""

    def not_done(self) -> None:
        """Note that the application certainly did not do it: it did not arrive, or was refused for now."""

    async def save(self, state: Mapping[str, Any], records: Sequence[Any] = ()) -> None:
        """Keep this state for a later attempt and add these records to the run's result, both or neither."""

    async def progress(self, done: int, total: int | None, message: str) -> None:
        """Tell who watches how far the run has come."""


class MemoryJournal:
    """The journal of a run that nobody can take over: it keeps the records, and only for as long as the run."""

    def __init__(self) -> None:
        self.state: Mapping[str, Any] = {}
        self.records: list[Any] = []

    async def sending(self) -> None:
        """Nothing to note."""

    def not_done(self) -> None:
        """Nothing to note."""

    async def save(self, state: Mapping[str, Any], records: Sequence[Any] = ()) -> None:
        self.state = state
        self.records.extend(records)

    async def progress(self, done: int, total: int | None, message: str) -> None:
        """Nobody watches."""
