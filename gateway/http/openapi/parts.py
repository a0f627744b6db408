"""Pieces that the schemas of the OpenAPI document are put together from."""

from typing import Any

Schema = dict[str, Any]

REF = "#/components/schemas/"
ID = "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11"
TIME = "2026-03-01T09:00:00Z"
MOMENT = {"format": "date-time"}


def ref(name: str) -> Schema:
    """The schema of that name."""
    return {"$ref": f"{REF}{name}"}


def record(example: Schema, /, **members: Schema) -> Schema:
    """An object that always has the members of its example; others may be missing."""
    required = sorted(name for name in example if name in members)
    return {"type": "object", "required": required, "properties": members, "examples": [example]}


def text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def number(description: str, **more: Any) -> Schema:
    """A whole number."""
    return {"type": "integer", "description": description, **more}


def flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def nullable(type_: str, description: str, **more: Any) -> Schema:
    return {"type": [type_, "null"], "description": description, **more}


def array(of: Schema, description: str) -> Schema:
    return {"type": "array", "items": of, "description": description}


def by_name(of: Schema, description: str) -> Schema:
    """An object whose members all have one schema."""
    return {"type": "object", "additionalProperties": of, "description": description}


def page(of: str, example: Schema) -> Schema:
    """A page of a list, whose items have the schema of that name and look like the example."""
    return record(
        {"data": [example], "next_cursor": None},
        data=array(ref(of), "the items of this page"),
        next_cursor=nullable("string", "`cursor` of the call that gives the next page; null at the end"),
    )
