"""Schemas of the OpenAPI document: of the Structs of responses, and of the models and Structs of requests."""

from collections.abc import Iterable, Mapping
from itertools import compress
from typing import Any

import msgspec
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

Schema = dict[str, Any]

REF = "#/components/schemas/"


def component_name(struct: type[msgspec.Struct]) -> str:
    """The name of a Struct in the document: `JobView` is `Job` there."""
    return struct.__name__.removesuffix("View")


def ref(name: str) -> Schema:
    """A reference to the schema of that name."""
    return {"$ref": f"{REF}{name}"}


def response_schemas(structs: Iterable[type[msgspec.Struct]]) -> dict[str, Schema]:
    """The schemas of the Structs of responses, and of the Structs that they contain; each has an example.

    The members that are always encoded are required, so that callers can rely on them.
    """
    schemas = _struct_schemas(structs)
    for struct in _structs_within(structs):
        schemas[component_name(struct)]["required"] = _always_encoded(struct)
    return _with_examples(schemas)


def _always_encoded(struct: type[msgspec.Struct]) -> list[str]:
    """The members that are encoded for any value; `omit_defaults` leaves out simple defaults, empty dicts and lists.

    `UNSET` is never encoded.
    """
    written = [
        field.default is not msgspec.UNSET
        and (
            not struct.__struct_config__.omit_defaults
            or field.required
            or field.default_factory not in (msgspec.NODEFAULT, dict, list)
        )
        for field in msgspec.structs.fields(struct)
    ]
    return list(compress(struct.__struct_encode_fields__, written))


def body_schemas(structs: Iterable[type[msgspec.Struct]]) -> dict[str, Schema]:
    """The schemas of the Structs of request bodies; unknown members are allowed and ignored."""
    schemas = _struct_schemas(structs)
    return _with_examples({name: {**schema, "additionalProperties": True} for name, schema in schemas.items()})


def model_schemas(models: Iterable[type[BaseModel]]) -> dict[str, Schema]:
    """The schemas of the models of bodies and forms, and of the models that they contain."""
    _, schemas = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)], ref_template=f"{REF}{{model}}"
    )
    return {name: _without_defaults(normalized(schema)) for name, schema in schemas["$defs"].items()}


def _without_defaults(schema: Schema) -> Schema:
    """Move defaults into descriptions: client generators assume that a member with a default is always present."""
    if "items" in schema:
        schema = {**schema, "items": _without_defaults(schema["items"])}
    if "properties" not in schema:
        return schema
    return {**schema, "properties": {name: _in_words(member) for name, member in schema["properties"].items()}}


def _in_words(member: Schema) -> Schema:
    member = _without_defaults(member)
    default = member.get("default")
    rest = {key: part for key, part in member.items() if key != "default"}
    if default in (None, "", [], {}):
        return rest
    return {**rest, "description": f"{rest.get('description', '')}; default: {msgspec.json.encode(default).decode()}"}


def normalized(schema: Any) -> Any:
    """The schema in the form that client generators expect: arrays have `items`, enums a `type`, references the final
    name, and objects without named members `additionalProperties`.
    """
    if isinstance(schema, list):
        return [normalized(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: part if key in ("examples", "example") else normalized(part) for key, part in schema.items()}
    if isinstance(found.get("$ref"), str):
        found["$ref"] = found["$ref"].removesuffix("View")
    if "array" in found.get("type", ()):
        found.setdefault("items", {})
    if found.get("type") in ("object", ["object", "null"]) and not found.keys() & {"properties", "patternProperties"}:
        found.setdefault("additionalProperties", True)
    if isinstance(found.get("enum"), list) and all(isinstance(each, str) for each in found["enum"]):
        found.setdefault("type", "string")
    return found


def _struct_schemas(structs: Iterable[type[msgspec.Struct]]) -> dict[str, Schema]:
    _, components = msgspec.json.schema_components(structs, ref_template=f"{REF}{{name}}")
    return {name.removesuffix("View"): _component(schema) for name, schema in components.items()}


def _component(schema: Schema) -> Schema:
    """The schema without its title, which repeats the name, and without defaults, which only clients use."""
    members = {
        name: {key: part for key, part in member.items() if key != "default"}
        for name, member in schema.get("properties", {}).items()
    }
    whole = {key: part for key, part in schema.items() if key != "title"}
    found: Schema = normalized({**whole, "properties": members} if members else whole)
    return found


def _structs_within(structs: Iterable[type[msgspec.Struct]]) -> set[type[msgspec.Struct]]:
    """The Structs, and all Structs that they contain."""
    found: set[type[msgspec.Struct]] = set()
    waiting: list[Any] = list(msgspec.inspect.multi_type_info(structs))
    while waiting:
        each = waiting.pop()
        if isinstance(each, msgspec.inspect.StructType):
            if each.cls in found:
                continue
            found.add(each.cls)
            waiting += [field.type for field in each.fields]
        for name in ("type", "item_type", "value_type"):
            waiting += [inner] if isinstance(inner := getattr(each, name, None), msgspec.inspect.Type) else []
        waiting += getattr(each, "types", ())
    return found


def _with_examples(schemas: dict[str, Schema]) -> dict[str, Schema]:
    return {
        name: {**schema, "examples": [example_of(schema, schemas)]} if "properties" in schema else schema
        for name, schema in schemas.items()
    }


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Schema]) -> Any:
    """An example of a schema, built from the examples of its members."""
    if schema.get("examples"):
        return schema["examples"][0]
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].removeprefix(REF)], schemas)
    if "enum" in schema:
        return schema["enum"][0]
    if "properties" in schema:
        shown = {name: member for name, member in schema["properties"].items() if _is_shown(name, member, schema)}
        return {name: example_of(member, schemas) for name, member in shown.items()}
    match schema.get("type"):
        case "array":
            return [example_of(schema["items"], schemas)] if schema["items"] else []
        case "object":
            values = schema.get("additionalProperties")
            return {"tickets": example_of(values, schemas)} if isinstance(values, dict) and "$ref" in values else {}
        case "boolean":
            return False
        case "integer":
            return 0
        case "string":
            return "…"
        case _:
            return None


def _is_shown(name: str, member: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    return name in schema.get("required", ()) or bool(member.get("examples"))
