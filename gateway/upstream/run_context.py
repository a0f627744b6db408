"""The durable state of a run, from which another process can resume it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """The changes of a run in the application so far; stored in its state, for the job's final status."""

    #: confirmed effects, such as `batches_finished` and `items_done`; empty before anything was started
    known: Mapping[str, Any] = field(default_factory=dict)
    #: whether the application is still running something that was started
    is_open: bool = False
    #: the progress, in words for people
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
        """The state that an earlier attempt of this run saved last; empty at first."""

    @property
    def is_canceled(self) -> bool:
        """Whether a caller wants the run to start nothing more."""

    async def mark_in_flight(self) -> None:
        """Note, durably, that the first byte of a write is about to go out; raises when it must not."""

    def first_byte_sent(self) -> None:
        """Note, in memory, that the first byte was sent: a request that is only marked may not have been sent."""

    async def clear_in_flight(self) -> None:
        """Note, durably, that the request was certainly not executed: it did not arrive, or it was refused."""

    def refused(self) -> None:
        """Note, in memory, that the application refused the request permanently; durable with the next checkpoint."""

    async def checkpoint(
        self, state: Mapping[str, Any], records: Sequence[Any] = (), part: int | None = None, *, answers: int = 0
    ) -> None:
        """Store this state for a later attempt and add these records to the run's result, both or neither.

        Saving a part twice stores its records once: `part` numbers them, by default the next number. `answers` is how
        many requests have their answers in this state for the first time: they are in flight until then.
        """

    async def progress(self, done: int, total: int | None, message: str) -> None:
        """Report the run's progress to clients that stream or poll the job."""


class InMemoryRunContext:
    """The context of a run that no other process can resume: it keeps the records in memory during the run."""

    #: only its caller's task can cancel it
    is_canceled = False

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

    def refused(self) -> None:
        """Nothing to note."""

    async def checkpoint(
        self, state: Mapping[str, Any], records: Sequence[Any] = (), part: int | None = None, *, answers: int = 0
    ) -> None:
        self.state = state
        if records:
            self._parts[part or max(self._parts, default=0) + 1] = records

    async def progress(self, done: int, total: int | None, message: str) -> None:
        """Nothing to report."""
