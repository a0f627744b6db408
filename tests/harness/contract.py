"""Compares requests and responses with the OpenAPI document; anything that it does not describe fails the test.

In the document, objects may have additional members, because callers must accept them. Here they may not.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jsonschema_rs

from gateway.web.openapi.document import openapi_document
from gateway.web.routes import ROUTES
from tests.harness.catalog import shipped_catalog

#: headers of connection and body, which OpenAPI does not describe, and those that clients send themselves
OF_HTTP = {
    *("accept", "accept-encoding", "authorization", "connection", "content-encoding", "content-length", "content-type"),
    *("cookie", "date", "expect", "host", "keep-alive", "server", "transfer-encoding", "user-agent"),
}
#: prefixes of headers
_OPEN_PREFIXES = ("mcp-param-",)
#: keywords whose values are schemas or lists of them
_SUBSCHEMAS = ("items", "additionalProperties", "anyOf", "oneOf", "allOf", "then", "if")


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document of the shipped kinds."""
    return openapi_document(ROUTES, shipped_catalog(), "1", "http://localhost")


def check(
    method: str, url: str, sent: Mapping[str, str], body: Any, status: int, headers: Mapping[str, str], answer: bytes
) -> None:
    """Fail if the document does not describe the call."""
    faults = untold(method, url, sent=sent, body=body, status=status, headers=headers, answer=answer)
    assert not faults, "\n".join(faults)


def untold(
    method: str, url: str, sent: Mapping[str, str], body: Any, status: int, headers: Mapping[str, str], answer: bytes
) -> list[str]:
    """The parts of a call that the document does not describe; nothing for a path that is not in it.

    `body` is the JSON of the request, if any; it is compared if the request was accepted.
    """
    parts = urlsplit(url)
    found = _operation(method, parts.path)
    if found is None:
        return []
    name, operation = found
    faults = [*_response_faults(operation, status, headers, answer)]
    if status < 400:
        faults += _request_faults(operation, parts.query, sent, body)
    return [f"{name} {status}: {fault}" for fault in faults]


def _operation(method: str, path: str) -> tuple[str, Mapping[str, Any] | None] | None:
    """The path and its operation, which is None for a method that the path does not have."""
    for pattern, template in _patterns():
        if pattern.fullmatch(path):
            methods = document()["paths"][template]
            operation = methods.get(method.lower()) or (methods.get("get") if method == "HEAD" else None)
            return f"{method} {template}", operation
    return None


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """The paths as patterns, with the fewest variables first."""
    templates = sorted(document()["paths"], key=lambda template: template.count("{"))
    return [(re.compile(re.sub(r"{\w+}", "[^/]+", template)), template) for template in templates]


def _response_faults(
    operation: Mapping[str, Any] | None, status: int, headers: Mapping[str, str], body: bytes
) -> Iterator[str]:
    responses = document()["components"]["responses"] if operation is None else operation["responses"]
    if str(status) not in responses:
        yield "the status is not declared"
        return
    response = _resolved(responses[str(status)])
    told = {name.lower() for name in response.get("headers", {})}
    yield from (f"the header {name} is not declared" for name in _names(headers) - told)
    content = response.get("content", {})
    media_type = headers.get("Content-Type", "").partition(";")[0]
    if not body:
        return
    if media_type not in content and "*/*" not in content:
        yield f"the media type {media_type} is not declared"
    elif "json" in media_type and "schema" in content.get(media_type, {}) and "ndjson" not in media_type:
        yield from schema_faults(content[media_type]["schema"], json.loads(body))


def _request_faults(
    operation: Mapping[str, Any] | None, query: str, sent: Mapping[str, str], body: Any
) -> Iterator[str]:
    if operation is None:
        return
    parameters = operation["parameters"]
    told = {each["name"].lower() for each in parameters if each["in"] == "header"}
    extra = {name for name in _names(sent) - told if not name.startswith(_OPEN_PREFIXES)}
    yield from (f"the request's header {name} is not declared" for name in extra)
    in_query = {each["name"]: each["schema"] for each in parameters if each["in"] == "query"}
    if not any(schema.get("additionalProperties") is True for schema in in_query.values()):
        yield from (f"?{name} is not declared" for name, _ in parse_qsl(query, True) if name not in in_query)
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None and content is None:
        yield "a JSON body is not declared"
    elif body is not None:
        yield from (f"in the body {fault}" for fault in schema_faults(content["schema"], body))


def _names(headers: Mapping[str, str]) -> set[str]:
    return {name.lower() for name in headers} - OF_HTTP


def _resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in node:
        _, _, part, name = node["$ref"].split("/")
        node = document()["components"][part][name]
    return node


def schema_faults(schema: Mapping[str, Any], value: Any) -> Iterator[str]:
    """The faults of a value by a schema of the document."""
    for error in _validator(json.dumps(schema)).iter_errors(value):
        place = "/".join(map(str, error.instance_path))
        yield f"/{place}: {error.message[:300]}"


@cache
def _validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    whole = {**closed(json.loads(schema)), "components": {"schemas": _closed_components()}}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


@cache
def _closed_components() -> dict[str, Any]:
    return {name: closed(schema) for name, schema in document()["components"]["schemas"].items()}


def closed(schema: Any) -> Any:
    """The schema without additional members of objects, unless it allows them explicitly."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: _closed_part(name, part) for name, part in schema.items()}
    is_whole = "properties" in schema and schema.get("type") == "object"
    return {**({"additionalProperties": False} if is_whole else {}), **inner}


def _closed_part(keyword: str, part: Any) -> Any:
    if keyword in ("properties", "$defs"):
        return {name: closed(each) for name, each in part.items()}
    return closed(part) if keyword in _SUBSCHEMAS else part
