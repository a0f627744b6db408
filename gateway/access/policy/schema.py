"""The Cedar schema of the catalog: entities, an action for every operation, and its params as types of Cedar.

Files and params without a plain type (unions, free-form objects, arrays of objects) are left out, so that policies
cannot name them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gateway.contract.kinds import Effect
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Catalog, Kind, Operation

#: a type of Cedar's JSON schema format
Type = Mapping[str, Any]

#: levels of objects in params
_MAX_DEPTH = 6
_STRING: Type = {"type": "String"}
_SCALARS: Mapping[str, Type] = {
    "string": _STRING,
    "integer": {"type": "Long"},
    "boolean": {"type": "Boolean"},
    "number": {"type": "Extension", "name": "decimal"},
}
#: Cedar's JSON format gives these members of objects a meaning
_RESERVED = ("__entity", "__extn", "__expr")


def _counted(type_: Type) -> Type:
    members = {name: {**type_, "required": True} for name in ("last_hour", "today")}
    return {"type": "Record", "attributes": members}


#: the members of `context`, beside params and their sums
CONTEXT: Mapping[str, Type] = {
    "surface": _STRING,
    "time": {"type": "Extension", "name": "datetime"},
    "approved": {"type": "Boolean"},
    "calls": _counted(_SCALARS["integer"]),
    "writes": _counted(_SCALARS["integer"]),
}
#: Cedar's longs, and digits after the point of its decimals
_LONGS, _DIGITS = range(-(2**63), 2**63), 4


class Unreadable(ValueError):
    """A param whose value Cedar cannot represent, or not compare soon, so that no policy can judge it."""


#: maximum characters of texts and elements of arrays that the policies read of a call
_MAX_TEXT, _MAX_ELEMENTS = 64 << 10, 5_000
#: a decimal takes Cedar as long to read as so many elements
_OF_DECIMAL = 3
#: the type of a param that policies only ask for, whatever its value is
PRESENT: Type = {"type": "Present"}


@dataclass(slots=True)
class Room:
    """How many characters of texts and elements of arrays may still be read."""

    text: int = _MAX_TEXT
    elements: int = _MAX_ELEMENTS

    def take(self, *, text: int = 0, elements: int = 0) -> None:
        """Raises Unreadable if there is less."""
        self.text -= text
        self.elements -= elements
        if self.text < 0 or self.elements < 0:
            raise Unreadable("size")


def action_id(kind: str, entity: str, action: str) -> str:
    """The id of an operation as an action of policies."""
    return f"{kind}.{entity}.{action}"


def params_type(operation: Operation | None) -> Type:
    """The record of an operation's params; empty for a search of the copy."""
    if operation is None:
        return _record({}, ())
    required = set(operation.action.required)
    properties = {name: dict(schema) for name, schema in operation.schema["properties"].items()}
    return _record(dict(_members(operation, properties, _MAX_DEPTH)), required)


def sums_type(params: Type) -> Type:
    """The record of the sums of an operation's params, as the params are nested."""
    sums: dict[str, Type] = {}
    for name, type_ in params["attributes"].items():
        plain = {word: value for word, value in type_.items() if word != "required"}
        if plain in (_SCALARS["integer"], _SCALARS["number"]):
            sums[name] = _counted(plain)
        elif plain["type"] == "Record" and (below := sums_type(plain))["attributes"]:
            sums[name] = below
    return _record(sums, set(sums))


def document(catalog: Catalog) -> dict[str, Any]:
    """The schema of all kinds, in Cedar's JSON format."""
    actions: dict[str, Any] = {effect.value: {} for effect in Effect}
    for kind in catalog.kinds.values():
        actions.update(_actions_of(kind))
    return {
        "": {
            "entityTypes": {
                "Client": {},
                "Group": {},
                "Person": {"memberOfTypes": ["Group", "Client"]},
                "Kind": {},
                "Workspace": {},
                "Connector": {
                    "memberOfTypes": ["Kind", "Workspace"],
                    "shape": {"type": "Record", "attributes": {"name": _STRING}},
                },
            },
            "actions": actions,
        }
    }


def value_of(value: Any, type_: Type, room: Room) -> Any:
    """A value in Cedar's JSON format; raises Unreadable if it is not of the type, or too large."""
    match type_["type"]:
        case "String" if isinstance(value, str):
            room.take(text=len(value))
            return value
        case "Present":
            return True
        case "Boolean" if isinstance(value, bool):
            return value
        case "Long" if isinstance(value, int) and not isinstance(value, bool) and value in _LONGS:
            return value
        case "Extension" if isinstance(value, int | float) and not isinstance(value, bool):
            room.take(elements=_OF_DECIMAL)
            return {"__extn": {"fn": "decimal", "arg": _decimal(value)}}
        case "Set" if isinstance(value, list | tuple):
            room.take(elements=len(value))
            return [value_of(each, type_["element"], room) for each in value]
        case "Record" if isinstance(value, Mapping):
            attributes = type_["attributes"]
            members = ((name, value.get(name), attribute) for name, attribute in attributes.items())
            return {name: value_of(each, attribute, room) for name, each, attribute in members if each is not None}
    raise Unreadable(type_["type"])


def _decimal(value: float) -> str:
    exact = Decimal(repr(value))
    rounded = exact.quantize(Decimal(1).scaleb(-_DIGITS)) if abs(exact) < 10**14 else None
    if rounded is None or rounded != exact:
        raise Unreadable("decimal")
    return f"{rounded:f}"


def _actions_of(kind: Kind) -> Iterator[tuple[str, Any]]:
    for operation in kind.operations.values():
        name = action_id(kind.name, operation.entity_id, operation.action_id)
        effects = {operation.action.effect, *([Effect.WRITE] if operation.action.write_if else [])}
        yield name, _action(sorted(effects), params_type(operation))
    for entity in kind.spec.entities:
        if SEARCH_ACTION in kind.actions_of(entity):
            yield action_id(kind.name, entity, SEARCH_ACTION), _action([Effect.READ], params_type(None))


def _action(effects: list[Effect], params: Type) -> dict[str, Any]:
    return {
        "memberOf": [{"id": effect.value} for effect in effects],
        "appliesTo": {
            "principalTypes": ["Client", "Person"],
            "resourceTypes": ["Connector"],
            "context": {
                "type": "Record",
                "attributes": {**CONTEXT, "params": params, "sum": sums_type(params)},
            },
        },
    }


def _record(members: Mapping[str, Type], required: set[str] | tuple[str, ...]) -> Type:
    attributes = {name: {**type_, "required": name in required} for name, type_ in sorted(members.items())}
    return {"type": "Record", "attributes": attributes}


def _members(operation: Operation, properties: Mapping[str, Any], depth: int) -> Iterator[tuple[str, Type]]:
    for name, schema in properties.items():
        type_ = None if name in _RESERVED else _type_of(operation, schema, depth)
        if type_ is not None:
            yield name, type_


def _type_of(operation: Operation, schema: Mapping[str, Any], depth: int) -> Type | None:
    """The Cedar type of a JSON Schema; None if it has no plain one."""
    schema = operation.resolved(schema)
    if any(word in schema for word in ("anyOf", "oneOf", "allOf", "$ref", "not", "if", "contentEncoding")):
        return None
    names = schema.get("type")
    known = [
        name for name in ([names] if isinstance(names, str) else names or _types_of_values(schema)) if name != "null"
    ]
    if len(known) != 1:
        return None
    match known[0]:
        case "array":
            element = _type_of(operation, schema.get("items") or {}, 0)
            return None if element is None else {"type": "Set", "element": element}
        case "object" if depth:
            members = dict(_members(operation, schema.get("properties", {}), depth - 1))
            return _record(members, ()) if members else None
        case name:
            return _SCALARS.get(name)


def _types_of_values(schema: Mapping[str, Any]) -> set[str]:
    """The types of an enum or constant without `type`."""
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    return {"string" if isinstance(value, str) else "null" if value is None else "other" for value in values}
