"""The OpenAPI 3.1 document, generated from the routes, their Structs and models, and the specs."""

import inspect
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from pydantic import BaseModel

from gateway.contract.answers import FileChunkView, SearchResultView
from gateway.contract.gateway_state import UsageEventView
from gateway.contract.kinds import AnthropicToolView, McpToolView, OpenAIToolView
from gateway.contract.problems import OAuthErrorView, Problem
from gateway.contract.scim import LIST_SCHEMA, MEDIA_TYPE, ScimErrorView
from gateway.kinds.catalog import Catalog
from gateway.kinds.search_schema import search_components
from gateway.web.bodies import CLOUD_EVENTS
from gateway.web.openapi.errors import (
    FORM_ERRORS,
    MEANINGS,
    error_responses,
    form_errors,
    problems,
    scim_errors,
    statuses_of,
)
from gateway.web.openapi.headers import header_parameters, response_headers
from gateway.web.openapi.requests import path_parameters, query_parameters, request_body, search_condition
from gateway.web.openapi.samples import samples_of
from gateway.web.openapi.schemas import (
    REF,
    Schema,
    body_schemas,
    component_name,
    model_schemas,
    normalized,
    ref,
    response_schemas,
)
from gateway.web.openapi.tags import TAGS
from gateway.web.route import FILE_MEDIA, Route

#: schemas that belong to no single route: errors, and the contents of `result` and `data`
_SHARED: tuple[type[Struct], ...] = (
    Problem,
    OAuthErrorView,
    ScimErrorView,
    SearchResultView,
    FileChunkView,
    McpToolView,
    OpenAIToolView,
    AnthropicToolView,
)
_TEXT_EXAMPLES = {
    "text/event-stream": 'id: 2\nevent: status\ndata: {"status":"running","progress":0}\n\n',
    "application/x-ndjson": '{"id":1,"subject":"The printer is on fire"}\n',
    "text/plain": "gateway_requests_total 1.0\n",
}


def openapi_document(routes: Sequence[Route], catalog: Catalog, version: str, base_url: str) -> dict[str, Any]:
    """The OpenAPI document of the routes that programs call, without the pages for people; `base_url` is its server."""
    called = tuple(route for route in routes if not route.is_page)
    schemas, paths = _schemas(called), dict[str, dict[str, Any]]()
    for route in called:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
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
        "tags": [{"name": name, "description": TAGS[name]} for name in dict.fromkeys(route.tag for route in called)],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of POST /api/v1/account/applications/token or POST /oauth/token.",
                }
            },
            "schemas": schemas,
            "responses": error_responses(),
        },
        "x-connector-types": {
            kind.name: {entity: kind.actions_of(entity) for entity in kind.spec.entities} for kind in catalog
        },
    }


def _schemas(routes: Sequence[Route]) -> dict[str, Schema]:
    bodies = [route.body for route in routes if route.body is not None]
    models = [body for body in bodies if issubclass(body, BaseModel)]
    models += [route.form for route in routes if route.form is not None]
    read = model_schemas(models)
    answered = [route.response_of(status) for route in routes for status in (*route.answers, *MEANINGS)]
    return {
        **read,
        "ExecuteBody": {**read["ExecuteBody"], **search_condition()},
        **body_schemas(dict.fromkeys(body for body in bodies if issubclass(body, Struct))),
        **response_schemas(dict.fromkeys((*(struct for struct in answered if struct is not None), *_SHARED))),
        **normalized(search_components(REF)),
    }


def _operation(route: Route, schemas: dict[str, Schema]) -> dict[str, Any]:
    meanings = {**route.answers, **(FORM_ERRORS if route.form else {})}
    answers: dict[str, Any] = {
        str(status): {"description": meaning, **_response(route, status, schemas)}
        for status, meaning in meanings.items()
    }
    for status in statuses_of(route):
        response = {"$ref": f"#/components/responses/{status}", "description": MEANINGS[status]}
        if route.is_scim:
            response = {"description": MEANINGS[status], **_response(route, status, schemas)}
        answers.setdefault(str(status), response)
    body, samples = request_body(route, schemas), samples_of(route, schemas)
    return {
        "operationId": operation_id(route),
        "summary": route.summary,
        "description": _description(route),
        "tags": [route.tag],
        "parameters": [*path_parameters(route.path), *query_parameters(route), *header_parameters(route)],
        **({} if body is None else {"requestBody": body}),
        "responses": dict(sorted(answers.items())),
        **({"security": []} if route.is_open else {}),
        **({"x-codeSamples": samples} if samples else {}),
    }


def operation_id(route: Route) -> str:
    """The handler's name in camel case; it is a part of URLs of the reference."""
    first, *others = route.handler.__name__.split("_")
    return first + "".join(word.capitalize() for word in others)


def _response(route: Route, status: int, schemas: dict[str, Schema]) -> dict[str, Any]:
    content = _content(route, status, schemas)
    return {"headers": response_headers(route, status), **({"content": content} if content else {})}


def _content(route: Route, status: int, schemas: dict[str, Schema]) -> dict[str, Any]:
    """The media types of a response, each with schema and example; empty for a response without a body.

    JSON comes first, because client generators read the first media type.
    """
    if route.form and status in FORM_ERRORS:
        return form_errors()
    if route.is_scim and status >= 400:
        return scim_errors()
    content: dict[str, Any] = {}
    struct = route.response_of(status)
    if struct is not None:
        name = component_name(struct)
        media_type = MEDIA_TYPE if route.is_scim else "application/json"
        schema, example = ref(name), schemas[name]["examples"][0]
        if route.is_array:
            schema, example = {"type": "array", "items": schema}, [example]
        content[media_type] = {"schema": schema, "example": example}
    for media_type in route.media.get(status, ()):
        content[media_type] = _media(media_type, schemas)
    return {**content, **(problems(status) if status >= 400 else {})}


def _media(media_type: str, schemas: dict[str, Schema]) -> dict[str, Any]:
    if media_type in FILE_MEDIA:
        return {"schema": {"type": "string", "format": "binary"}}
    if media_type == CLOUD_EVENTS:
        name = component_name(UsageEventView)
        return {"schema": {"type": "array", "items": ref(name)}, "example": [schemas[name]["examples"][0]]}
    if media_type == MEDIA_TYPE:
        schema = {"type": "object", "additionalProperties": True}
        return {"schema": schema, "example": {"schemas": [LIST_SCHEMA], "totalResults": 2}}
    if media_type == "application/json":
        return {"schema": {"type": "object", "additionalProperties": True}}
    example = _TEXT_EXAMPLES.get(media_type)
    return {"schema": {"type": "string"}, **({"example": example} if example else {})}


def _description(route: Route) -> str:
    """The handler's docstring, with the lines of each paragraph joined, and the scope."""
    paragraphs = (inspect.getdoc(route.handler) or route.summary).split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    return text if route.scope is None else f"{text}\n\nNeeds the scope `{route.scope.value}`."
