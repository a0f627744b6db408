"""References between the steps of a batch: `{"$from": "<id>.<path>"}` is a value of an earlier step's result. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from gateway.errors import FieldError, InvalidParams
from gateway.foundation import payloads
from gateway.kinds.suggestions import Suggestions

#: an object with only this member is a reference
FROM = "$from"
#: an id has no dot, because the path begins after the first one
_STEP_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
#: a position in an array; int() refuses thousands of digits
_INDEX = re.compile(r"[0-9]{1,9}")
#: names of members and positions of items that lead from `params` to a value
Place: TypeAlias = tuple[str | int, ...]
#: codes of faults of a whole value that a reference within it may cause
_OF_WHOLES = frozenset({"type", "oneOf", "anyOf"})
#: bytes of JSON that a step's references may stand for, because a thousand may name one large value
_MAX_FILLED = 32 << 20


class MissingValue(InvalidParams):
    """The result of a step does not have the value of a reference."""


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {FROM}


def is_step_id(text: str) -> bool:
    return _STEP_ID.fullmatch(text) is not None


def references(value: Any) -> Iterator[tuple[Place, Any]]:
    """Every reference in a step's params: its place and the value of `$from`."""
    # Members that are left, from the params inwards, with the names that led to them. A pointer for every value would
    # copy a long name once for each value below it.
    left: list[Iterator[tuple[str | int, Any]]] = [iter([("params", value)])]
    names: list[str | int] = []
    while left:
        following = next(left[-1], None)
        if following is None:
            left.pop()
            del names[-1:]
            continue
        name, member = following
        if _is_reference(member):
            yield (*names, name), member[FROM]
        elif isinstance(member, dict | list):
            names.append(name)
            left.append(iter(member.items() if isinstance(member, dict) else enumerate(member)))


def pointer_of(place: Place) -> str:
    """The JSON pointer (RFC 6901) of a place."""
    return "".join(f"/{str(name).replace('~', '~0').replace('/', '~1')}" for name in place)


def source_of(reference: str) -> str:
    """The id of the step in a reference."""
    return reference.partition(".")[0]


def faults_of(params: Mapping[str, Any], earlier: Iterable[str]) -> Iterator[FieldError]:
    """The faults in a step's references; `earlier` are the ids of earlier steps."""
    known, suggestions = set(earlier), Suggestions()
    for place, reference in references(params):
        is_reference = isinstance(reference, str) and bool(reference.partition(".")[2])
        if is_reference and source_of(reference) in known:
            continue
        pointer = pointer_of(place)
        field = pointer.removeprefix("/params/").strip("/").replace("/", ".")
        if not is_reference:
            message = f'{field} is not a reference; write {{"$from": "<id of an earlier step>.<path>"}}'
            yield FieldError(pointer, field, "reference", message)
        else:
            hint = suggestions.did_you_mean(source_of(reference), known)
            message = f"{field} refers to {source_of(reference)!r}, which is not the id of an earlier step; {hint}"
            yield FieldError(pointer, field, "reference", message)


def without_references(faults: Iterable[FieldError], params: Mapping[str, Any]) -> list[FieldError]:
    """The faults of a step's params, except those that its references may cause."""
    return [fault for fault in faults if not _is_explained(fault, params)]


def _is_explained(fault: FieldError, params: Mapping[str, Any]) -> bool:
    """Whether a fault is at a reference, within it, or about a whole value that holds one."""
    value: Any = params
    for part in fault.pointer.split("/")[2:]:
        if _is_reference(value):
            return True
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return False
    return _is_reference(value) or (fault.code in _OF_WHOLES and any(True for _ in references(value)))


def filled_params(params: Mapping[str, Any], values: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    """A step's params with each reference replaced by its value.

    Raises MissingValue, also if the params are then not an object or too large.
    """
    left = _MAX_FILLED
    decoded: dict[str, Any] = {}
    for _, reference in references(params):
        if reference not in values:
            source, _, path = reference.partition(".")
            raise MissingValue(f"{reference}: the result of {source} has no {path!r}")
        left -= len(memoryview(values[reference]))
        if left < 0:
            raise MissingValue(f"{reference}: the values of this step's references exceed {_MAX_FILLED >> 20} MiB")
        if reference not in decoded:
            decoded[reference] = payloads.value(values[reference])
    value = _filled(params, decoded)
    if not isinstance(value, dict):
        raise MissingValue(f"params is {params[FROM]}, which is not an object")
    return value


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    if _is_reference(value):
        return values[value[FROM]]
    if isinstance(value, dict):
        return {name: _filled(member, values) for name, member in value.items()}
    return [_filled(item, values) for item in value] if isinstance(value, list) else value


class _Paths(msgspec.Struct):
    """References to one value or to values below it."""

    references: list[str] = msgspec.field(default_factory=list)
    below: dict[str, "_Paths"] = msgspec.field(default_factory=dict)


def values_of(result: msgspec.Raw, named: Iterable[str]) -> Iterator[tuple[str, msgspec.Raw]]:
    """The JSON of each value of a step's result that these references name; a value that is not there is left out.

    Each object and array on the way is divided once, and nothing beside the way is parsed.
    """
    # `a.result.id` means `a.id`, unless the result has a member `result`.
    has_result = "result" in _members(result)
    root = _Paths()
    for reference in named:
        parts = reference.split(".")[1:]
        paths = root
        for part in parts[1:] if parts[0] == "result" and not has_result else parts:
            paths = paths.below.setdefault(part, _Paths())
        paths.references.append(reference)
    left = [(result, root)]
    while left:
        value, paths = left.pop()
        yield from ((reference, value) for reference in paths.references)
        if paths.below:
            members = _members(value)
            left += [(members[part], below) for part, below in paths.below.items() if part in members]


def _members(value: msgspec.Raw) -> Mapping[str, msgspec.Raw]:
    """The members of an object, or the items of an array by their positions; empty for other values."""
    if bytes(memoryview(value)[:1]) == b"{":
        return payloads.members(value)
    if bytes(memoryview(value)[:1]) == b"[":
        return _Items(payloads.items(value))
    return {}


class _Items(Mapping[str, msgspec.Raw]):
    """The items of an array by their positions in decimal digits."""

    def __init__(self, items: list[msgspec.Raw]) -> None:
        self._items = items

    def __getitem__(self, part: str) -> msgspec.Raw:
        if _INDEX.fullmatch(part) and int(part) < len(self._items):
            return self._items[int(part)]
        raise KeyError(part)

    def __iter__(self) -> Iterator[str]:
        return map(str, range(len(self._items)))

    def __len__(self) -> int:
        return len(self._items)
