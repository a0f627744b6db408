"""The part of the schema that statements can tell from the whole. Pure.

Cedar checks each statement for every action. Actions of the same effects that no statement names, and whose context
differs only in members that no statement reads, are checked alike, so one of them is enough.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

#: the names from `context` on that lead to a value that a statement reads
Path = tuple[str, ...]
#: the members of a record that are read, each with those of its own; None for the whole
Members = Mapping[str, "Members"] | None

_CONTEXT: Mapping[str, Any] = {"Var": "context"}


def narrowed(
    schema: Mapping[str, Any], statements: Collection[Mapping[str, Any]], alike: Collection[str] = ()
) -> dict[str, Any]:
    """The schema with the actions that these statements can tell apart, without those that are `alike`; all in Cedar's
    JSON format.
    """
    read = _read_members(statements)
    named = set(_named_actions_of(statements)) - set(alike)
    kept, seen = {}, set()
    for name, action in schema[""]["actions"].items():
        narrow = _narrow(action, read)
        likeness = msgspec.json.encode(narrow)
        if name in named or "appliesTo" not in action:
            kept[name] = narrow
        elif name not in alike and likeness not in seen:
            seen.add(likeness)
            kept[name] = narrow
    return {"": {**schema[""], "actions": kept}}


def alike_in_lists(
    schema: Mapping[str, Any], statements: Collection[Mapping[str, Any]], lists: Sequence[Sequence[str]]
) -> set[str]:
    """The actions that these statements name only in lists, and for which another action of the same lists stands.

    Cedar compares every action with every name of a list, so a check of long lists takes the square of their length.
    """
    read, everywhere = _read_members(statements), Counter(_named_actions_of(statements))
    places: dict[str, list[int]] = defaultdict(list)
    for place, names in enumerate(lists):
        for name in names:
            places[name].append(place)
    alike, seen = set(), set()
    for name, in_lists in places.items():
        action = schema[""]["actions"].get(name, {})
        if "appliesTo" in action and everywhere[name] == len(in_lists):
            likeness = (msgspec.json.encode(_narrow(action, read)), tuple(in_lists))
            if likeness in seen:
                alike.add(name)
            seen.add(likeness)
    return alike


def work_of(schema: Mapping[str, Any], statements: Collection[Mapping[str, Any]]) -> int:
    """About how many comparisons a check of these statements by this schema makes."""
    actions = len(schema[""]["actions"])
    return sum(
        actions * _size(each["action"]) + (1 if each["action"]["op"] == "==" else actions) * _size(each["conditions"])
        for each in statements
    )


def _size(node: Any) -> int:
    """The number of expressions."""
    if isinstance(node, list):
        return sum(map(_size, node))
    return 1 + sum(map(_size, node.values())) if isinstance(node, Mapping) else 0


def _read_members(statements: Collection[Mapping[str, Any]]) -> Members:
    return _members({path for each in statements for path in _paths(each["conditions"])})


def _named_actions_of(statements: Collection[Mapping[str, Any]]) -> Iterator[str]:
    for each in statements:
        yield from _named_actions([each["action"], each["conditions"]])


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
