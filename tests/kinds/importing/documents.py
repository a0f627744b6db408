"""Small OpenAPI documents for tests: the given paths in an otherwise complete document."""

from typing import Any

from gateway.kinds.importing.mapping import Imported, Options, import_document

RECORD = {"type": "object", "properties": {"id": {"type": "string"}, "name": {"type": "string"}}}


def query(name: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema or {"type": "string"}}


def answer(schema: dict[str, Any], **response: Any) -> dict[str, Any]:
    return {"200": {"description": "", "content": {"application/json": {"schema": schema}}, **response}}


def listed(**beside: Any) -> dict[str, Any]:
    """The response of a list: `data` and members beside it."""
    return answer({"type": "object", "properties": {"data": {"type": "array", "items": RECORD}, **beside}})


def document(paths: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A document with these paths and a list without params, which is the health check."""
    return {
        "openapi": "3.0.3",
        "info": {"title": "Parcels API", "version": "1"},
        "servers": [{"url": "https://api.parcels.example.com"}],
        "paths": {"/status": {"get": {"operationId": "getStatus", "responses": answer(RECORD)}}, **paths},
        **members,
    }


def imported(paths: dict[str, Any], **members: Any) -> Imported:
    return import_document(document(paths, **members), Options())


def action(method: str, path: str, /, **operation: Any) -> dict[str, Any]:
    """The action that one operation becomes."""
    made = imported({path: {method: {"responses": answer(RECORD), **operation}}})
    entity, name = made.names[f"{method.upper()} {path}"].split(".")
    return made.entities[entity]["actions"][name]


def reasons(made: Imported) -> set[str]:
    return {finding.reason for finding in made.findings}
