"""Results of `write`: by default the id and the URL of the record and the written members. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.agents.tools.answers import shortened
from gateway.contract.kinds import Effect
from gateway.operation_search.entries import OperationEntry
from gateway.upstream.field_selection import FieldSelection, selected
from gateway.upstream.responses import OperationResult

#: members that identify a record, or lead a person to it, in the APIs of applications
_IDENTITY = frozenset(
    """
    id iid gid ts key number identifier url html_url web_url webViewLink permalink permalink_url
    """.split()  # noqa: SIM905
)
#: bytes of a member that is shown whole; depth and characters of a text of longer ones
_WHOLE, _DEPTH, _CHARACTERS = 500, 2, 100

#: the shown part of an answer
Shape = Callable[[OperationResult], OperationResult]


def whole(answer: OperationResult) -> OperationResult:
    """The answer as it is."""
    return answer


@dataclass(frozen=True, slots=True)
class AskedWrite:
    """An operation as `write` was asked to run it."""

    entry: OperationEntry
    params: Mapping[str, Any]

    def shown(self, answer: OperationResult) -> OperationResult:
        """The answer of a write without what the model neither wrote nor needs to find the record again.

        The result of a long operation is not a record, and is shown whole.
        """
        if self.entry.effect is Effect.READ or self.entry.action is None or self.entry.action.runs != "inline":
            return answer
        record = answer.decoded()
        if not isinstance(record, Mapping):
            return answer
        search = self.entry.entity.search
        names = {*_names(self.params), *_IDENTITY, *([search.primary_key] if search else [])}
        return replace(answer, result=msgspec.Raw(msgspec.json.encode(_kept(record, names) or record)))


def shown_of_batch(writes: Sequence[AskedWrite], fields: Sequence[str] | None) -> Shape:
    """The answer of a batch for a model: each result as `AskedWrite.shown` returns it, or the requested fields."""

    def shown(answer: OperationResult) -> OperationResult:
        document = answer.decoded()
        for item in document["results"]:
            if "result" in item:
                item["result"] = of_item(item["index"], item["result"])
        return replace(answer, result=msgspec.Raw(msgspec.json.encode(document)))

    def of_item(index: int, result: Any) -> msgspec.Raw:
        one = OperationResult(msgspec.Raw(msgspec.json.encode(result)))
        return (selected(one, FieldSelection(select_fields=fields)) if fields else writes[index].shown(one)).result

    return shown


def _names(value: Any) -> Iterator[str]:
    """The names of all members, at any depth."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield name
            yield from _names(member)
    elif isinstance(value, list):
        for item in value:
            yield from _names(item)


def _kept(record: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name in record.keys() & names:
        value = record[name]
        inner = _kept(value, names) if isinstance(value, Mapping) else {}
        if inner:
            kept[name] = inner
        elif len(msgspec.json.encode(value)) <= _WHOLE:
            kept[name] = value
        else:
            kept[name] = shortened(value, _DEPTH, _CHARACTERS)
    return {name: kept[name] for name in record if name in kept}
