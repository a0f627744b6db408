"""The OpenAPI 3.1 document, made from the routes, their models and the specs."""

import inspect
import re
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from gateway.authorization.metadata import AUTHORIZE, REGISTER
from gateway.errors import BY_CODE
from gateway.http.errors import PROBLEM, MethodNotAllowed, problem, status_of
from gateway.http.openapi_answers import SCHEMAS, answer_schema
from gateway.http.openapi_headers import error_headers, header_parameters, response_headers
from gateway.http.route import Route
from gateway.http.routes import ROUTES
from gateway.kinds.catalog import Catalog

#: what programs call; pages for people are no part of the contract
_ROUTES = tuple(route for route in ROUTES if not route.is_page)
_REF = "#/components/schemas/"
_ERRORS = {
    "400": "Malformed request",
    "401": "No good token",
    "403": "Not allowed",
    "404": "Not found",
    "405": "Another method",
    "409": "Conflict",
    "410": "Gone",
    "413": "Body too large",
    "415": "Unsupported encoding",
    "422": "Invalid",
    "424": "The connector must be authorized again",
    "429": "Rate limited",
    "500": "A bug of the gateway",
    "502": "The application failed",
    "503": "Temporarily unavailable",
    "504": "The application did not answer in time",
}


def openapi_document(catalog: Catalog, version: str, base_url: str) -> dict[str, Any]:
    """The contract as callers can rely on it."""
    models = [model for route in _ROUTES for model in (route.body, route.query) if model is not None]
    _, schemas = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)], ref_template=_REF + "{model}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for route in _ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Agent connector gateway",
            "version": version,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "One way for software agents to read and change data in business applications.",
        },
        "servers": [{"url": base_url}],
        "security": [{"bearer": []}],
        "tags": [{"name": name} for name in dict.fromkeys(route.tag for route in _ROUTES)],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": {**schemas.get("$defs", {}), **SCHEMAS, "Problem": _PROBLEM_SCHEMA},
            "responses": {status: _error_response(status, meaning) for status, meaning in _ERRORS.items()},
        },
        "x-connector-types": {
            kind.name: {entity: kind.actions_of(entity) for entity in kind.spec.entities} for kind in catalog
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    answers: dict[str, Any] = {
        str(status): {
            "description": meaning,
            "headers": response_headers(route, status),
            **({} if status == 304 else {"content": _content(route, status)}),
        }
        for status, meaning in route.answers.items()
    }
    for status, meaning in _ERRORS.items():
        answers.setdefault(status, {"$ref": f"#/components/responses/{status}", "description": meaning})
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "description": inspect.getdoc(route.handler),
        "tags": [route.tag],
        "parameters": [
            *_path_parameters(route.path),
            *_query_parameters(route.query),
            *header_parameters(route),
        ],
        "responses": answers,
    }
    if route.body is not None:
        schema = {"$ref": _REF + route.body.__name__}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if route.is_open:
        operation["security"] = []
    return operation


def _error_response(status: str, meaning: str) -> dict[str, Any]:
    """An error of any operation."""
    return {"description": meaning, "headers": error_headers(int(status)), "content": _problems(int(status))}


def _problems(status: int) -> dict[str, Any]:
    """The error documents of a status, with an example for each of its codes."""
    examples = {
        error.code: {"value": problem(error, "5e1f0c3d")}
        for error in (cls() for cls in (*BY_CODE.values(), MethodNotAllowed))
        if status_of(error) == status
    }
    return {PROBLEM: {"schema": {"$ref": _REF + "Problem"}, "examples": examples}}


def _content(route: Route, status: int) -> dict[str, Any]:
    if route.path.startswith("/mcp") and route.method == "POST":
        return {} if status == 202 else {"application/json": {}, "text/event-stream": {}, PROBLEM: {}}
    if route.path.startswith(AUTHORIZE):
        return {"text/html": {}, PROBLEM: {}}
    if route.path == REGISTER and status == 400:
        return {"application/json": {}, PROBLEM: {}}
    if status >= 400 and status != 503:  # not ready is told as a state, not as a problem
        return _problems(status)
    if "/download/" in route.path or status == 206:
        return {"*/*": {}}
    if 206 in route.answers and status == 200:
        lines: dict[str, Any] = {"application/x-ndjson": {}} if route.path.endswith("/result") else {}
        return {"application/json": answer_schema(route, status), **lines, "*/*": {}}
    if route.path == "/docs":
        return {"text/html": {}}
    if route.path == "/metrics":
        return {"text/plain": {}}
    if route.path.endswith("/events"):
        return {"text/event-stream": {}}
    return {"application/json": answer_schema(route, status)}


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _query_parameters(model: type[BaseModel] | None) -> list[dict[str, Any]]:
    if model is None:
        return []
    schema = model.model_json_schema(ref_template=_REF + "{model}")
    return [
        {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": member}
        for name, member in schema["properties"].items()
    ]


_PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "RFC 9457. `message` repeats `detail`; each of `errors` stands alone.",
    "required": ["type", "title", "status", "code", "detail", "message", "retryable", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"enum": sorted((*BY_CODE, MethodNotAllowed.code)), "description": "what to match on"},
        "detail": {"type": "string"},
        "message": {"type": "string"},
        "retryable": {"type": "boolean"},
        "request_id": {"type": "string"},
        "outcome": {"const": "unknown", "description": "what was asked may have been done"},
        "known": {
            "type": "object",
            "description": "what is sure of it: that it was sent and when, how to look it up, what was finished",
        },
        "safe_to_retry": {"type": "boolean", "description": "whether it can be sent again without harm"},
        "result": {"type": "object", "description": "of a job that ended in the middle: what was done before"},
        "example": {"type": "object", "description": "of refused params: the params of a call that is right"},
        "connector_status": {"type": "string", "description": "of a connector that is not ready: its status"},
        "next_step": {"type": "string", "description": "of a connector that is not ready: what to do"},
        "allowed": {"type": "string", "description": "of 405: the methods that the path takes"},
        "size": {"type": "integer", "description": "of 416: the bytes that the file has"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "field", "code", "message"],
                "properties": {name: {"type": "string"} for name in ("pointer", "field", "code", "message")},
            },
        },
        "upstream": {
            "type": "object",
            "properties": {
                "status": {"type": "integer"},
                "code": {"type": "string"},
                "message": {"type": "string"},
                "request_id": {"type": "string"},
                "field": {"type": "string", "description": "what the application names of the request"},
            },
        },
    },
}
