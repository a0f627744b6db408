"""References between the steps of a batch: `{"$from": "<id>.<path>"}` is a value of an earlier step's result. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from gateway.errors import FieldError, InvalidParams
from gateway.kinds.suggestions import did_you_mean

#: an object with only this member is a reference
FROM = "$from"
#: an id has no dot, because the path begins after the first one
_STEP_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
#: a position in an array; int() refuses thousands of digits
_INDEX = re.compile(r"[0-9]{1,9}")
#: codes of faults of a whole value that a reference within it may cause
_OF_WHOLES = frozenset({"type", "oneOf", "anyOf"})
#: bytes of JSON that a step's references may stand for, because a thousand may name one large value
_MAX_FILLED = 32 << 20


class MissingValue(InvalidParams):
    """The result of a step does not have the value of a reference."""


def is_step_id(text: str) -> bool:
    return _STEP_ID.fullmatch(text) is not None


def references(value: Any, pointer: str = "/params") -> Iterator[tuple[str, Any]]:
    """Every reference in a step's params: its JSON pointer (RFC 6901) and the value of `$from`."""
    if isinstance(value, dict):
        if value.keys() == {FROM}:
            yield pointer, value[FROM]
            return
        for name, member in value.items():
            yield from references(member, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from references(item, f"{pointer}/{index}")


def source_of(reference: str) -> str:
    """The id of the step in a reference."""
    return reference.partition(".")[0]


def faults_of(params: Mapping[str, Any], earlier: Iterable[str]) -> Iterator[FieldError]:
    """The faults in a step's references; `earlier` are the ids of earlier steps."""
    known = list(earlier)
    for pointer, reference in references(params):
        field = pointer.removeprefix("/params/").strip("/").replace("/", ".")
        if not isinstance(reference, str) or not reference.partition(".")[2]:
            message = f'{field} is not a reference; write {{"$from": "<id of an earlier step>.<path>"}}'
            yield FieldError(pointer, field, "reference", message)
        elif source_of(reference) not in known:
            hint = did_you_mean(source_of(reference), known)
            message = f"{field} refers to {source_of(reference)!r}, which is not the id of an earlier step; {hint}"
            yield FieldError(pointer, field, "reference", message)


def without_references(faults: Iterable[FieldError], params: Mapping[str, Any]) -> list[FieldError]:
    """The faults of a step's params, except those that its references may cause."""
    places = [pointer for pointer, _ in references(params)]
    return [fault for fault in faults if not any(_is_explained(fault, place) for place in places)]


def _is_explained(fault: FieldError, place: str) -> bool:
    if fault.pointer == place or fault.pointer.startswith(f"{place}/"):
        return True
    return fault.code in _OF_WHOLES and place.startswith(f"{fault.pointer}/")


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
        if value.keys() == {FROM}:
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
