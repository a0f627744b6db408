"""The portions of a long operation: the input of each, its outcome, and the state to resume from. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from gateway.contract.kinds import Effect
from gateway.errors import FieldError, GatewayError, InvalidParams, OutcomeUnknown
from gateway.kinds.catalog import Operation
from gateway.kinds.long_running import RUN_ID, Split
from gateway.upstream.long_running.item_results import Line
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.run_context import Effects

Params = Mapping[str, Any]

#: the member of the result that holds a line for each item
ITEMS = "results"
#: a larger number of items that an application reports as done counts as none: it is no column's
_MAX_COUNT = 1 << 31


@dataclass(frozen=True, slots=True)
class Portion:
    """One part of the input: the params of its request, and its items, none if the input has no items."""

    params: Params
    items: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """How many items were done, refused by the application, of unknown outcome, and not sent."""

    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    not_sent: int = 0

    @property
    def done(self) -> int:
        return self.succeeded + self.failed

    def __add__(self, other: "Tally") -> "Tally":
        mine, others = asdict(self), asdict(other)
        return Tally(**{name: number + others[name] for name, number in mine.items()})

    def document(self) -> dict[str, int]:
        """The numbers; `unknown` and `not_sent` only if there are such items."""
        return {name: number for name, number in asdict(self).items() if number or name in ("succeeded", "failed")}

    @classmethod
    def of(cls, lines: Sequence[Line]) -> "Tally":
        counts = Counter(line["success"] for line in lines)
        return cls(counts[True], counts[False], counts[None])

    def sentence(self, split: Split, total: int) -> str:
        """The progress in the words of the spec."""
        done = split.message.format(done=self.succeeded, total=total)
        others = {"failed": self.failed, "unknown": self.unknown, "not sent": self.not_sent}
        return "".join([done, *(f", {number} {name}" for name, number in others.items() if number)])


class ResultPosition(msgspec.Struct, frozen=True):
    """Where to continue: the number of the page from 0, the request that reads it, and the params that it adds."""

    page: int = 0
    #: how many records were read before it
    records: int = 0
    request: int = 0
    following: dict[str, Any] = msgspec.field(default_factory=dict)


class Portions:
    """The portions of one run by their numbers; `state` is what an earlier attempt saved last."""

    def __init__(self, call: PreparedCall, state: Mapping[str, Any]) -> None:
        how = call.operation.action.long_running
        assert how is not None
        self._how, self._effect = how, call.effect
        self.inputs = portions_of(call.operation, call.params)
        self._total = sum(len(portion.items) for portion in self.inputs)
        self._finished = {int(number): Tally(**tally) for number, tally in state.get("finished", {}).items()}
        #: of all finished portions together
        self._tally = sum(self._finished.values(), Tally())
        #: portion → the application's id of it
        self.started = {int(number): str(name) for number, name in state.get("started", {}).items()}
        #: portions whose start is in flight; those of an earlier attempt cannot be followed
        self.starting = set(state.get("starting", ()))
        #: portion → the position of its next page of records
        self._positions = {
            int(number): msgspec.convert(position, ResultPosition)
            for number, position in state.get("positions", {}).items()
        }
        #: portions that the application has ended without a result; the next attempt learns that again
        self._stopped: set[int] = set()
        #: running portion → items that the application has done so far
        self._under_way: dict[int, int] = {}

    @property
    def unsent(self) -> list[int]:
        """The numbers of the portions that are neither started nor finished."""
        known = {*self._finished, *self.started}
        return [number for number in range(len(self.inputs)) if number not in known]

    @property
    def has_begun(self) -> bool:
        """Whether any portion was or may have been started."""
        return bool(self.is_open or self._finished)

    @property
    def is_open(self) -> bool:
        """Whether the application may still run a portion, or may have been sent one."""
        return bool(self.starting or self.started)

    def follow_up_params(self, number: int) -> dict[str, Any]:
        """The params of the requests that follow a start."""
        return {**self.inputs[number].params, RUN_ID: self.started.get(number)}

    def position(self, number: int) -> ResultPosition:
        """The page of records that is read next."""
        return self._positions.get(number, ResultPosition())

    def is_answered(self, number: int) -> bool:
        """Whether the state shows that the start of the portion was answered."""
        return number in self.started or number in self._finished

    def note_start(self, number: int, is_in_flight: bool) -> None:
        """Note that the start of the portion is about to be sent, or that it was certainly not executed."""
        (self.starting.add if is_in_flight else self.starting.discard)(number)

    def note_started(self, number: int, run_id: str) -> None:
        """Note that the application started the portion under this id."""
        self.started[number] = run_id
        self.starting.discard(number)

    def note_progress(self, number: int, reported: Any) -> None:
        """Note how many items of a running portion are done, as the application reports it."""
        is_count = isinstance(reported, int | float) and 0 <= reported < _MAX_COUNT
        items, done = len(self.inputs[number].items), int(reported) if is_count else 0
        self._under_way[number] = min(done, items) if items else done

    def continue_at(self, number: int, position: ResultPosition) -> None:
        """Note that the records before this position are stored."""
        self._positions[number], self._under_way[number] = position, position.records

    def finish(self, number: int, tally: Tally) -> None:
        """Note that the portion has ended and its results are stored."""
        self.abandon(number, tally)
        self.end(number)

    def abandon(self, number: int, tally: Tally) -> None:
        """Note the stored results of a portion that the application may still run, but that nothing follows."""
        self._finished[number] = tally
        self._tally += tally
        self._under_way.pop(number, None)

    def note_stopped(self, number: int) -> None:
        """Note that the application has ended the portion without a result."""
        self._stopped.add(number)

    def end(self, number: int) -> None:
        """Stop following the portion."""
        self.starting.discard(number)
        self.started.pop(number, None)
        self._positions.pop(number, None)
        self._under_way.pop(number, None)

    def lost_start(self) -> GatewayError | None:
        """The error of a run if an earlier attempt lost the response to a start; else None."""
        if not self._tally.unknown:
            return None
        return OutcomeUnknown("the worker was lost while it sent a part of the items", extra={"outcome": "unknown"})

    def state(self) -> dict[str, Any]:
        """The state from which another process resumes the run."""
        return {
            "finished": {str(number): {"unknown": 0, **each.document()} for number, each in self._finished.items()},
            "started": {str(number): name for number, name in self.started.items()},
            "starting": sorted(self.starting),
            "positions": {str(number): msgspec.to_builtins(each) for number, each in self._positions.items()},
            **self._effects().document(),
        }

    def _effects(self) -> Effects:
        """The changes of the run in the application so far, for the job's final status."""
        if self._effect is Effect.READ:
            return Effects()
        if self._how.results.items is None:
            started = [{"run_id": run_id} for run_id in self.started.values()]
            is_open = not self.started.keys() <= self._stopped
            return Effects(known=started[0], is_open=is_open, summary=self._message()) if started else Effects()
        if not self.has_begun:
            return Effects()
        summary = self.summary()
        known = {
            "batches": len(self.inputs),
            "batches_started": len(self.started),
            "batches_finished": len(self._finished.keys() - self.started.keys()),
            "items": self._total,
            "items_done": summary["progress"],
        }
        if self._tally.unknown:
            known["items_unknown"] = self._tally.unknown
        if self._tally.not_sent:
            known["items_not_sent"] = self._tally.not_sent
        return Effects(known=known, is_open=self.is_open, summary=summary["message"], result=summary, collected=ITEMS)

    def summary(self) -> dict[str, Any]:
        """The documented job record as far as the run knows it; the job that runs it adds its id and address."""
        message, tally = self._message(), self._tally
        return {"total": self._total, "progress": tally.done, "message": message, **tally.document()}

    def _message(self) -> str:
        """The progress of all portions together, for people."""
        if self._how.split is not None:
            return self._tally.sentence(self._how.split, self._total)
        if self._stopped:
            return "the application may have done a part of it"
        return f"{self._tally.done} records read" if self._tally.done else "the application runs it"

    def progress(self) -> tuple[int, int | None, str]:
        """The number of items done in all portions, their total if it is known, and a message for people."""
        message, split = self._message(), self._how.split
        done = self._tally.done + sum(self._under_way.values())
        if split is not None and self._under_way:
            message = split.message.format(done=done, total=self._total)
        return done, self._total or None, message


def portions_of(operation: Operation, params: Params) -> list[Portion]:
    """The portions that the input is split into; raises InvalidParams if the split param has no items."""
    how = operation.action.long_running
    if how is None or how.split is None:
        return [Portion(params)]
    split, value = how.split, params.get(how.split.param)
    items = texts_of(value) if isinstance(value, str) else list(value or ())
    if not items:
        message = f"{operation}: {split.param} has no items; send at least one"
        raise InvalidParams(faults=[FieldError(f"/params/{split.param}", split.param, "minItems", message)])
    trace = how.results.items.trace if how.results.items else None
    return [
        Portion({**params, split.param: ",".join(part) if isinstance(value, str) else part}, part)
        for part in _parts(items, split.size, trace)
    ]


def texts_of(text: str) -> list[str]:
    """The items between commas, blanks and repetitions removed."""
    return list(dict.fromkeys(each for each in (part.strip() for part in text.split(",")) if each))


def _parts(items: Sequence[Any], size: int, trace: str | None) -> Iterator[list[Any]]:
    for start in range(0, len(items), size):
        part = list(items[start : start + size])
        yield part if trace is None else [{**item, trace: str(number)} for number, item in enumerate(part)]
