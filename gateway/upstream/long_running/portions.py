"""The input of a long operation in portions that the application accepts, and the tally of their items. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gateway.errors import FieldError, InvalidParams
from gateway.kinds.catalog import Operation
from gateway.kinds.long_running import Split

Params = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Portion:
    """One part of the input: the params of its request, and its items, none where the input has no items."""

    params: Params
    items: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """How many items were done, how many the application refused, and of how many that is unknown."""

    succeeded: int = 0
    failed: int = 0
    unknown: int = 0

    @property
    def done(self) -> int:
        return self.succeeded + self.failed

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.succeeded + other.succeeded, self.failed + other.failed, self.unknown + other.unknown)

    def document(self) -> dict[str, int]:
        """The numbers; `unknown` only where there are such items."""
        return {name: number for name, number in asdict(self).items() if number or name != "unknown"}

    @classmethod
    def of(cls, results: Sequence[Mapping[str, Any]]) -> "Tally":
        said = Counter(result["success"] for result in results)
        return cls(said[True], said[False], said[None])

    def sentence(self, split: Split, total: int) -> str:
        """The progress in the words of the spec."""
        done = split.message.format(done=self.succeeded, total=total)
        others = {"failed": self.failed, "unknown": self.unknown}
        return "".join([done, *(f", {number} {name}" for name, number in others.items() if number)])


def portions_of(operation: Operation, params: Params) -> list[Portion]:
    """The params once for each portion of the items; raises InvalidParams where the split param holds no item."""
    how = operation.action.long_running
    if how is None or how.split is None:
        return [Portion(params)]
    split, value = how.split, params.get(how.split.param)
    items = texts_of(value) if isinstance(value, str) else list(value or ())
    if not items:
        message = f"{operation}: {split.param} holds no item; send at least one"
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
