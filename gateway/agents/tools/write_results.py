"""Reduces results of `write`: by default to the record's id, its URL and the written members. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.agents.tools.answers import shortened
from gateway.contract.kinds import Effect
from gateway.errors import UpstreamInvalidResponse
from gateway.foundation import payloads
from gateway.kinds.find.entries import OperationEntry
from gateway.upstream.field_selection import FieldSelection, selector, withheld_words
from gateway.upstream.responses import OperationResult

#: names of ids and URLs of records in the APIs of applications
_IDENTITY = frozenset(
    """
    id iid gid ts key number identifier url html_url web_url webViewLink permalink permalink_url
    """.split()  # noqa: SIM905
)
#: maximum bytes of a member that is not shortened
_WHOLE = 500
#: depth and characters of a text to which longer members are shortened
_DEPTH, _CHARACTERS = 2, 100

#: reduces an answer to the part that the model gets
Shape = Callable[[OperationResult], OperationResult]


def whole(answer: OperationResult) -> OperationResult:
    """The unchanged answer."""
    return answer


@dataclass(frozen=True, slots=True)
class RequestedWrite:
    """An operation that `write` runs, with its params."""

    entry: OperationEntry
    params: Mapping[str, Any]

    def shown(self, answer: OperationResult) -> OperationResult:
        """The answer of a write with only the written members and those that identify the record.

        The result of a long operation is not a record and is unchanged, also that of a read. Raises
        UpstreamInvalidResponse for a record that cannot be read.
        """
        if self.entry.effect is Effect.READ or self.entry.action is None or self.entry.action.runs != "inline":
            return answer
        record = payloads.editable(answer.result)
        if not isinstance(record, Mapping):
            return answer
        search = self.entry.entity.search
        names = {*_names(self.params), *_IDENTITY, *([search.primary_key] if search else [])}
        try:
            return replace(answer, result=msgspec.Raw(msgspec.json.encode(_with_names(record, names) or record)))
        except RecursionError as error:
            raise UpstreamInvalidResponse("the application's answer is nested too deeply") from error


def shown_of_batch(writes: Sequence[RequestedWrite], fields: Sequence[str] | None) -> Shape:
    """A function that reduces each result of a batch by `RequestedWrite.shown`, or to the requested fields.

    A result that cannot be read is withheld, with a warning beside it.
    """

    def shown(answer: OperationResult) -> OperationResult:
        document: dict[str, Any] = dict(payloads.members(answer.result))
        document["results"] = [of_line(line) for line in payloads.items(document["results"])]
        return replace(answer, result=msgspec.Raw(msgspec.json.encode(document)))

    def of_line(line: msgspec.Raw) -> dict[str, Any]:
        item: dict[str, Any] = dict(payloads.members(line))
        if "result" in item:
            try:
                item["result"] = of_item(payloads.value(item["index"]), item["result"])
            except UpstreamInvalidResponse as error:
                warning = payloads.value(item["warning"]) if "warning" in item else None
                item |= {"result": None, "warning": withheld_words(error, warning)}
        return item

    select = selector(FieldSelection(select_fields=fields))

    def of_item(index: int, result: msgspec.Raw) -> Any:
        if not fields:
            return writes[index].shown(OperationResult(result=result)).result
        found = payloads.editable(result)
        return [select(record) for record in found] if isinstance(found, list) else select(found)

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


def _with_names(record: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name in record.keys() & names:
        value = record[name]
        inner = _with_names(value, names) if isinstance(value, Mapping) else {}
        if inner:
            members[name] = inner
        elif len(msgspec.json.encode(value)) <= _WHOLE:
            members[name] = value
        else:
            members[name] = shortened(value, _DEPTH, _CHARACTERS)
    return {name: members[name] for name in record if name in members}
