"""What a run leaves behind as it goes, so that another process can go on where it stopped."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Effects:
    """What a run has changed in the application so far, kept in its state for whoever has to say how it ended."""

    #: what is sure, such as `batches_finished` and `items_done`; empty while nothing was started
    known: Mapping[str, Any] = field(default_factory=dict)
    #: whether the application still works at something that was started
    is_open: bool = False
    #: how far it came, for people
    summary: str = ""
    #: the result without the records that are saved, and the member that they belong in
    result: Mapping[str, Any] | None = None
    collected: str | None = None
    #: whether a canceled run is run once more, to complete its result
    needs_closing: bool = False

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> "Effects":
        return cls(**state.get("effects", {}))

    def document(self) -> dict[str, Any]:
        """As a member of the state."""
        return {"effects": asdict(self)}


class RunContext(Protocol):
    """The durable memory of one run. A job's is its row; a caller's own process keeps none."""

    @property
    def state(self) -> Mapping[str, Any]:
        """What an earlier attempt of this run saved last; empty at first."""

    async def mark_in_flight(self) -> None:
        """Note, durably, that the first byte of a write is about to go out; raises when it must not."""

    def first_byte_sent(self) -> None:
        """Note, in memory, that the first byte has gone out: what is marked only may not have been sent."""

    async def clear_in_flight(self) -> None:
        """Note, durably, that the application certainly did not do it: it did not arrive, or was refused for now."""

    def answered(self) -> None:
        """Note that what was sent was answered; what the answer came to is durable with the next checkpoint."""

    async def checkpoint(self, state: Mapping[str, Any], records: Sequence[Any] = (), part: int | None = None) -> None:
        """Keep this state for a later attempt and add these records to the run's result, both or neither.

        Saved twice it counts once: records have their place by the number of their part, the next one by itself.
        """

    async def progress(self, done: int, total: int | None, message: str) -> None:
        """Tell who watches how far the run has come."""


class InMemoryRunContext:
    """The context of a run that nobody can take over: it keeps the records, and only for as long as the run."""

    def __init__(self) -> None:
        self.state: Mapping[str, Any] = {}
        self._parts: dict[int, Sequence[Any]] = {}

    @property
    def records(self) -> list[Any]:
        return [record for _, part in sorted(self._parts.items()) for record in part]

    async def mark_in_flight(self) -> None:
        """Nothing to note."""

    def first_byte_sent(self) -> None:
        """Nothing to note."""

    async def clear_in_flight(self) -> None:
        """Nothing to note."""

    def answered(self) -> None:
        """Nothing to note."""

    async def checkpoint(self, state: Mapping[str, Any], records: Sequence[Any] = (), part: int | None = None) -> None:
        self.state = state
        if records:
            self._parts[part or max(self._parts, default=0) + 1] = records

    async def progress(self, done: int, total: int | None, message: str) -> None:
        """Nobody watches."""
