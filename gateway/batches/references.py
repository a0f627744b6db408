"""References between the steps of a batch: `{"$from": "<id>.<path>"}` is a value of an earlier step's result. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from gateway.errors import FieldError, InvalidParams
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


def filled_params(params: Mapping[str, Any], results: Mapping[str, Any]) -> dict[str, Any]:
    """A step's params with each reference replaced; raises MissingValue, also if they are then not an object or too
    large.
    """
    _require_bounded(params, results)
    value = filled(params, results)
    if not isinstance(value, dict):
        raise MissingValue(f"params is {params[FROM]}, which is not an object")
    return value


def _require_bounded(params: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    """Raise MissingValue if the values of all references, each as often as it occurs, have too many bytes of JSON."""
    sizes: dict[str, int] = {}
    left = _MAX_FILLED
    for _, reference in references(params):
        if reference not in sizes:
            sizes[reference] = len(msgspec.json.encode(_found(reference, results)))
        left -= sizes[reference]
        if left < 0:
            raise MissingValue(f"{reference}: the values of this step's references exceed {_MAX_FILLED >> 20} MiB")


def filled(value: Any, results: Mapping[str, Any]) -> Any:
    """The value with each reference replaced; `results` by the id of the step. Raises MissingValue."""
    if isinstance(value, dict):
        if _is_reference(value):
            return _found(value[FROM], results)
        return {name: filled(member, results) for name, member in value.items()}
    return [filled(item, results) for item in value] if isinstance(value, list) else value


def _found(reference: str, results: Mapping[str, Any]) -> Any:
    source, _, path = reference.partition(".")
    parts = path.split(".")
    value = results[source]
    # `a.result.id` means `a.id`, unless the result has a member `result`.
    if parts[0] == "result" and not (isinstance(value, dict) and "result" in value):
        parts = parts[1:]
    for part in parts:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and _INDEX.fullmatch(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            raise MissingValue(f"{reference}: the result of {source} has no {part!r}")
    return value
