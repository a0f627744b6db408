"""The error responses of operations, with an example of each code."""

from typing import Any

from gateway.contract.scim import ERROR_SCHEMA, MEDIA_TYPE
from gateway.errors import (
    BY_CODE,
    FieldError,
    GatewayError,
    InvalidParams,
    UpstreamError,
    UpstreamFault,
    UpstreamRejected,
)
from gateway.web.errors import PROBLEM, MethodNotAllowed, problem, status_of
from gateway.web.openapi.headers import error_headers
from gateway.web.openapi.requests import has_body
from gateway.web.openapi.schemas import ref
from gateway.web.route import Route

MEANINGS = {
    400: "Malformed request",
    401: "Missing or invalid token",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    410: "Gone",
    412: "Another version is current",
    413: "Body too large",
    415: "Unsupported encoding",
    416: "Range not satisfiable",
    422: "Invalid params",
    424: "The connector must be authorized again",
    429: "Rate limited",
    431: "Request header fields too large",
    500: "A bug of the gateway",
    502: "The application failed",
    503: "Temporarily unavailable",
    504: "The application did not answer in time",
}
#: errors of the endpoints of RFC 6749 and 7009, which have another format
FORM_ERRORS = {
    400: "Invalid request or grant",
    401: "Unknown client or wrong secret",
    413: "Body too large",
    429: "Too many wrong secrets",
}
_OF_ALL = {400, 405, 415, 429, 431, 500, 503}
_REQUEST_ID = "5e1f0c3d"


def statuses_of(route: Route) -> list[int]:
    """The statuses of the errors that a route may return."""
    statuses = {*_OF_ALL, *route.errors}
    if not route.is_open:
        statuses |= {401, 403}
    if "{" in route.path:
        statuses.add(404)
    has_query = route.query is not None and not route.is_browser_step
    if has_query or "{kind}" in route.path or "{connector_type}" in route.path:
        statuses |= {404, 422}
    if has_body(route):
        statuses |= {404, 413, 422}
    if route.method != "GET" and "{" in route.path:
        statuses |= {409, 424, 502, 504}
    return sorted(statuses)


def error_responses() -> dict[str, Any]:
    """The error responses of any operation, by status."""
    return {
        str(status): {"description": meaning, "headers": error_headers(status), "content": problems(status)}
        for status, meaning in MEANINGS.items()
    }


def problems(status: int) -> dict[str, Any]:
    """The error documents of a status, with an example for each of its codes."""
    examples = {
        error.code: {"value": problem(error, _REQUEST_ID)}
        for error in map(_example, (*BY_CODE.values(), MethodNotAllowed))
        if status_of(error) == status
    }
    return {PROBLEM: {"schema": ref("Problem"), "examples": examples}}


def form_errors() -> dict[str, Any]:
    example = {"error": "invalid_client", "error_description": "the client is unknown or the secret is wrong"}
    return {"application/json": {"schema": ref("OAuthError"), "example": example}}


def scim_errors() -> dict[str, Any]:
    """The errors of SCIM (RFC 7644 §3.12)."""
    example = {"schemas": [ERROR_SCHEMA], "status": "409", "detail": "the userName is taken", "scimType": "uniqueness"}
    return {MEDIA_TYPE: {"schema": ref("ScimError"), "example": example}}


def _example(cls: type[GatewayError]) -> GatewayError:
    """An example error of a code; codes with faults or with the application's message have an example of these."""
    if cls is InvalidParams:
        message = "tickets.list: sort_order is 'up'; allowed: asc, desc"
        right = {"entity": "tickets", "action": "list", "params": {"per_page": 10}}
        return cls(faults=[FieldError("/params/sort_order", "sort_order", "enum", message)], extra={"example": right})
    if cls in (UpstreamError, UpstreamRejected):
        status, code = (503, "Unavailable") if cls is UpstreamError else (422, "RecordInvalid")
        return cls(
            upstream=UpstreamFault(status=status, code=code, message="the application's own words", request_id="c0ffee")
        )
    if cls is MethodNotAllowed:
        return cls("this path supports GET", extra={"allowed": "GET"})
    return cls()
