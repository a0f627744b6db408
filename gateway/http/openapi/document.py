"""The OpenAPI 3.1 document, made from the routes, their models and the specs."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from gateway.http.openapi.answers import SCHEMAS, answer_content
from gateway.http.openapi.descriptions import DESCRIPTIONS
from gateway.http.openapi.errors import FORM_ERRORS, MEANINGS, error_responses, statuses_of
from gateway.http.openapi.headers import header_parameters, response_headers
from gateway.http.openapi.parts import REF
from gateway.http.openapi.requests import FORMS, path_parameters, query_parameters, request_body, search_condition
from gateway.http.openapi.samples import samples_of
from gateway.http.openapi.tags import TAGS
from gateway.http.route import Route
from gateway.http.routes import ROUTES
from gateway.kinds.catalog import Catalog
from gateway.kinds.search_schema import search_components

#: what programs call; pages for people are no part of the contract
_ROUTES = tuple(route for route in ROUTES if not route.is_page)


def openapi_document(catalog: Catalog, version: str, base_url: str) -> dict[str, Any]:
    """The contract as callers can rely on it."""
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
        "tags": [{"name": name, "description": TAGS[name]} for name in dict.fromkeys(route.tag for route in _ROUTES)],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of POST /api/v1/account/applications/token or POST /oauth/token.",
                }
            },
            "schemas": {**_request_schemas(), **SCHEMAS, **search_components(REF)},
            "responses": error_responses(),
        },
        "x-connector-types": {
            kind.name: {entity: kind.actions_of(entity) for entity in kind.spec.entities} for kind in catalog
        },
    }


def _request_schemas() -> dict[str, Any]:
    """Those of the models that read bodies, forms and queries."""
    models: list[type[BaseModel]] = [m for route in _ROUTES for m in (route.body, route.query) if m is not None]
    _, schemas = models_json_schema(
        [(model, "validation") for model in dict.fromkeys((*models, *FORMS.values()))], ref_template=f"{REF}{{model}}"
    )
    queries = {route.query.__name__ for route in _ROUTES if route.query is not None}  # told as parameters
    components = {name: schema for name, schema in schemas["$defs"].items() if name not in queries}
    return {**components, "ExecuteBody": {**components["ExecuteBody"], **search_condition()}}


def _operation(route: Route) -> dict[str, Any]:
    meanings = {**route.answers, **(FORM_ERRORS if route.path in FORMS else {})}
    answers: dict[str, Any] = {
        str(status): {"description": meaning, **_response(route, status)} for status, meaning in meanings.items()
    }
    for status in statuses_of(route):
        response = {"$ref": f"#/components/responses/{status}", "description": MEANINGS[status]}
        answers.setdefault(str(status), response)
    body, samples = request_body(route), samples_of(route)
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
    """The handler's name in camel case, which addresses of the reference hold as it is."""
    first, *others = route.handler.__name__.split("_")
    return first + "".join(word.capitalize() for word in others)


def _response(route: Route, status: int) -> dict[str, Any]:
    content = answer_content(route, status)
    return {"headers": response_headers(route, status), **({"content": content} if content else {})}


def _description(route: Route) -> str:
    scope = "" if route.scope is None else f"\n\nNeeds the scope `{route.scope.value}`."
    return DESCRIPTIONS.get(route.handler.__name__, f"{route.summary}.") + scope
