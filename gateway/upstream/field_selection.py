"""Field selection: the fields of a response, and truncation of long texts. Without a selection nothing is parsed."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from gateway import payloads
from gateway.errors import FieldError, InvalidParams
from gateway.kinds.suggestions import did_you_mean
from gateway.upstream.responses import OperationResult

#: characters of a text that are kept when a caller asks for truncation
_MAX_CHARACTERS = 1000
#: levels of a record below which texts are not truncated
_DEPTH = 100
_TRUNCATED = "… [truncated]"


class FieldSelection(msgspec.Struct, frozen=True):
    """The fields, the truncation and the number of records that a caller asks for."""

    select_fields: Sequence[str] | None = None
    exclude_fields: Sequence[str] | None = None
    skip_truncation: bool = True
    #: maximum records of a list that the application does not page
    limit: int | None = None

    def as_document(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


#: every record, with every field and whole texts
EVERYTHING = FieldSelection()


def ensure_declared(
    selection: FieldSelection, subject: str, fields: Collection[str], example: Mapping[str, Any] | None = None
) -> None:
    """Raise InvalidParams for fields that no record has; of a nested field only the first name is checked.

    `fields` may be empty: nothing is declared. `example` is a valid call.
    """
    if fields:
        faults = [*_unknown(selection.select_fields, "select_fields", subject, fields)]
        faults += _unknown(selection.exclude_fields, "exclude_fields", subject, fields)
        if faults:
            raise InvalidParams(faults=faults, extra={"example": example} if example else None)


def _unknown(paths: Sequence[str] | None, member: str, subject: str, fields: Collection[str]) -> Iterator[FieldError]:
    for index, path in enumerate(paths or ()):
        if path.split(".")[0] not in fields:
            message = f"{subject}: {member} names {path!r}; {did_you_mean(path.split('.')[0], fields)}"
            yield FieldError(f"/{member}/{index}", f"{member}[{index}]", "unknown", message)


def selected(answer: OperationResult, selection: FieldSelection) -> OperationResult:
    """The result with the selection applied; unchanged if it selects everything."""
    if selection == EVERYTHING:
        return answer
    document = payloads.editable(answer.result)
    if isinstance(document, list):
        document = [_record(record, selection) for record in document[: selection.limit]]
    else:
        document = _record(document, selection)
    return replace(answer, result=msgspec.Raw(msgspec.json.encode(document)))


def selected_records(records: Sequence[msgspec.Raw], selection: FieldSelection) -> Sequence[Any]:
    """The records of a search with the selection applied; unchanged if it selects everything."""
    if selection == EVERYTHING:
        return records
    return [_record(payloads.editable(record), selection) for record in records]


def _record(record: Any, selection: FieldSelection) -> Any:
    if selection.select_fields:
        record = _selected(record, [path.split(".") for path in selection.select_fields])
    for path in selection.exclude_fields or ():
        record = _without(record, path.split("."))
    return record if selection.skip_truncation else _truncated(record)


def _selected(record: Any, paths: Sequence[Sequence[str]]) -> Any:
    """Only the members at these paths; a path goes through every item of an array."""
    if isinstance(record, list):
        return [_selected(item, paths) for item in record]
    if not isinstance(record, Mapping):
        return record
    selected_members = {}
    for name in dict.fromkeys(path[0] for path in paths):
        if name in record:
            deeper = [path[1:] for path in paths if path[0] == name]
            selected_members[name] = (
                record[name] if any(not path for path in deeper) else _selected(record[name], deeper)
            )
    return selected_members


def _without(record: Any, path: Sequence[str]) -> Any:
    if isinstance(record, list):
        return [_without(item, path) for item in record]
    if not isinstance(record, Mapping) or path[0] not in record:
        return record
    if len(path) == 1:
        return {name: value for name, value in record.items() if name != path[0]}
    return {name: _without(value, path[1:]) if name == path[0] else value for name, value in record.items()}


def _truncated(value: Any, depth: int = _DEPTH) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _MAX_CHARACTERS else value[:_MAX_CHARACTERS] + _TRUNCATED
    if isinstance(value, list) and depth:
        return [_truncated(item, depth - 1) for item in value]
    if isinstance(value, Mapping) and depth:
        return {name: _truncated(member, depth - 1) for name, member in value.items()}
    return value
