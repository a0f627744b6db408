"""The target of an operation and the members that it writes, for the audit log: names only, never values. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from gateway.kinds.catalog import Operation

#: names of one entry, and characters of a name and of a target: free-form objects hold what callers wrote
_MAX_MEMBERS, _MAX_LENGTH = 100, 200


class _Identified(msgspec.Struct):
    """The member of a created record that names it."""

    id: str | int | None = None


_RECORD = msgspec.json.Decoder(_Identified)


def target_of(operation: Operation, params: Mapping[str, Any]) -> str | None:
    """The record that a call names in its path, `42` or `42/7` where it names several; None for a list or a create."""
    named = (params.get(each.name) for each in operation.placements if each.where == "path")
    return "/".join(str(value) for value in named if value is not None)[:_MAX_LENGTH] or None


def changed_members(operation: Operation, params: Mapping[str, Any]) -> list[str]:
    """The dotted names of what a call writes, one level into objects: `ticket.status`, `ticket.priority`."""
    in_path = {each.name for each in operation.placements if each.where == "path"}
    names = sorted({name[:_MAX_LENGTH] for name in _names(params) if name.partition(".")[0] not in in_path})
    return names[:_MAX_MEMBERS]


def _names(params: Mapping[str, Any]) -> Iterator[str]:
    for name, value in params.items():
        if isinstance(value, Mapping) and value:
            yield from (f"{name}.{member}" for member in value)
        else:
            yield name


def created_id(result: msgspec.Raw) -> str | None:
    """The id of the record that a write answered; None where the answer is no record or has no id."""
    try:
        record = _RECORD.decode(result)
    except msgspec.MsgspecError:
        return None
    return None if record.id is None else str(record.id)[:_MAX_LENGTH]
