"""The part of the schema that statements can tell from the whole. Pure.

Cedar checks each statement for every action. Actions of the same effects that no statement names, and whose context
differs only in members that no statement reads, are checked alike, so one of them is enough.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

#: the names from `context` on that lead to a value that a statement reads
Path = tuple[str, ...]
#: the members of a record that are read, each with those of its own; None for the whole
Members = Mapping[str, "Members"] | None

_CONTEXT: Mapping[str, Any] = {"Var": "context"}


def narrowed(schema: Mapping[str, Any], statements: Collection[Mapping[str, Any]]) -> dict[str, Any]:
    """The schema with the actions that these statements can tell apart; all in Cedar's JSON format."""
    read = _members({path for each in statements for path in _paths(each["conditions"])})
    named = {name for each in statements for name in _named_actions([each["action"], each["conditions"]])}
    kept, seen = {}, set()
    for name, action in schema[""]["actions"].items():
        narrow = _narrow(action, read)
        likeness = msgspec.json.encode(narrow)
        if name in named or "appliesTo" not in action:
            kept[name] = narrow
        elif likeness not in seen:
            seen.add(likeness)
            kept[name] = narrow
    return {"": {**schema[""], "actions": kept}}


def _narrow(action: Mapping[str, Any], read: Members) -> Mapping[str, Any]:
    applies = action.get("appliesTo")
    if applies is None:
        return action
    return {**action, "appliesTo": {**applies, "context": _part(applies["context"], read)}}


def _part(type_: Mapping[str, Any], read: Members) -> Mapping[str, Any]:
    """The type with the members that are read."""
    if read is None or type_["type"] != "Record":
        return type_
    attributes = type_["attributes"]
    return {**type_, "attributes": {name: _part(attributes[name], read[name]) for name in attributes if name in read}}


def _members(paths: Collection[Path]) -> Members:
    if () in paths:
        return None
    names = {path[0] for path in paths}
    return {name: _members({path[1:] for path in paths if path[0] == name}) for name in names}


def _paths(node: Any, below: Path = ()) -> Iterator[Path]:
    """What an expression reads of `context`; `below` are the members of its value that are read."""
    if node == _CONTEXT:
        yield below
    elif isinstance(node, list):
        for each in node:
            yield from _paths(each)
    elif isinstance(node, Mapping):
        access = node.get(".") or node.get("has")
        if isinstance(access, Mapping) and "attr" in access:
            yield from _paths(access["left"], (access["attr"], *below))
        else:
            for each in node.values():
                yield from _paths(each)


def _named_actions(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _named_actions(each)
    elif isinstance(node, Mapping):
        if node.get("type") == "Action":
            yield node["id"]
        for each in node.values():
            yield from _named_actions(each)
