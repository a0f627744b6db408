"""Descriptions of headers, and the headers of each operation in the OpenAPI document.

Accept, Authorization and Content-Type are left out: OpenAPI describes them by media types and the security scheme.
"""

from typing import Any

from gateway.contract.members import ID
from gateway.web.bodies import MAX_WAIT
from gateway.web.route import Route
from gateway.web.server.cors import shared_headers

_TEXT: dict[str, Any] = {"type": "string"}
_SECONDS: dict[str, Any] = {"type": "integer", "minimum": 0}

_REQUEST: dict[str, tuple[str, dict[str, Any]]] = {
    "X-Organization-Id": (
        "The organization; required when the client can access several.",
        {"type": "string", "format": "uuid", "examples": [ID]},
    ),
    "X-Request-Id": (
        "Your id for the request; it is in the response and in the logs.",
        {"type": "string", "pattern": "^[A-Za-z0-9._~:/+=-]{1,128}$"},
    ),
    "traceparent": (
        "W3C Trace Context: the caller's trace, which the gateway continues.",
        {"type": "string", "examples": ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]},
    ),
    "tracestate": ("W3C Trace Context: forwarded with `traceparent`.", _TEXT),
    "Prefer": (
        "RFC 7240: `respond-async` answers with a job at once, `wait=N` waits for up to "
        f"{MAX_WAIT} seconds before it does. Other preferences are ignored.",
        {"type": "string", "examples": ["respond-async", "wait=20"]},
    ),
    "Idempotency-Key": (
        "A value of the caller's choice, a new one for each write. A repetition of the request with the same key gets "
        "the first response; nothing is sent again.",
        {"type": "string", "pattern": "^[!-~]{1,255}$", "examples": ["order-4711-ticket"]},
    ),
    "Cache-Control": (
        "RFC 9111, for operations that read: `max-age=N` accepts a cached response of at most N seconds, "
        "`only-if-cached` accepts no other, `no-store` does not cache the response.",
        {"type": "string", "examples": ["max-age=60"]},
    ),
    "Range": ("RFC 9110: the requested range of the file.", {"type": "string", "examples": ["bytes=0-1023"]}),
    "If-Range": (
        "The ETag or date of the range's file; if the file has changed, the response is the whole file.",
        _TEXT,
    ),
    "If-Match": ("The ETag of the version to change; 412 if another one is current.", _TEXT),
    "If-None-Match": ("The known ETag; 304 if it is still current.", _TEXT),
    "Last-Event-ID": ("The id of the last event received; the stream continues after it.", _TEXT),
    "MCP-Protocol-Version": (
        "The revision of the Model Context Protocol.",
        {"type": "string", "examples": ["2026-07-28"]},
    ),
    "Mcp-Method": ("The same as `method` of the body, for routers.", _TEXT),
    "Mcp-Name": ("The same as the name in `params` (a tool, a resource, a task), for routers.", _TEXT),
    "Origin": (
        "The origin of the calling page, sent by browsers; origins that are not allowed are refused.",
        _TEXT,
    ),
    "Upload-Complete": (
        "`?1` if the body ends the file, else `?0` (draft-ietf-httpbis-resumable-upload).",
        {"enum": ["?1", "?0"]},
    ),
    "Upload-Offset": ("The byte of the file that the body begins with.", {"type": "integer", "minimum": 0}),
    "Upload-Length": ("Bytes of the whole file, if the body is only a part of it.", {"type": "integer", "minimum": 0}),
    "X-ADP-Agent-SDK": (
        "Sent by callers that cannot follow a job: they get redirects (303) to the result, and files as JSON chunks.",
        _TEXT,
    ),
}

_ANSWER: dict[str, tuple[str, dict[str, Any]]] = {
    "X-Request-Id": ("The id of the request; quote it when you ask for help.", _TEXT),
    "X-Content-Type-Options": ("`nosniff`.", _TEXT),
    "RateLimit": ("The remaining quota of each limit, if the operator has set limits.", _TEXT),
    "RateLimit-Policy": ("The limits.", _TEXT),
    "Location": ("The URL of the new resource or of the next step.", {"type": "string", "format": "uri-reference"}),
    "Retry-After": ("Seconds to wait before the next request.", _SECONDS),
    "Preference-Applied": ("The preference that was followed.", {"type": "string", "examples": ["respond-async"]}),
    "Idempotency-Replayed": (
        "`true`: this is the stored response to an earlier request with this Idempotency-Key.",
        {"const": "true"},
    ),
    "ETag": ("The version of the resource.", {"type": "string", "examples": ['"3"']}),
    "Last-Modified": ("When the file was last changed.", _TEXT),
    "Content-Range": ("The range and the size of the file; of 416 the size.", _TEXT),
    "Accept-Ranges": ("`bytes`, or `none` if the application does not support ranges.", {"enum": ["bytes", "none"]}),
    "Content-Disposition": ("The file's name, sanitized.", _TEXT),
    "Content-Security-Policy": ("The restrictions for browsers.", _TEXT),
    "Age": ("Seconds since the application answered.", _SECONDS),
    "Cache-Status": (
        "RFC 9211: whether this is a cached response.",
        {"type": "string", "examples": ["gateway; hit"]},
    ),
    "Deprecation": ("RFC 9745: the date since which a part that the call uses is deprecated.", _TEXT),
    "Sunset": ("RFC 8594: the date on which that part is switched off.", _TEXT),
    "Link": ("The application's page about it.", _TEXT),
    "Upload-Complete": ("`?1` if the application has the whole file, else `?0`.", {"enum": ["?1", "?0"]}),
    "Upload-Offset": ("Bytes of the file that the application has stored.", {"type": "integer", "minimum": 0}),
    "Upload-Length": ("Bytes of the whole file.", {"type": "integer", "minimum": 0}),
    "Upload-Limit": (
        "`max-size` of a file in bytes; each part except the last must end at a multiple of `min-append-size` bytes.",
        {"type": "string", "examples": ["max-size=1073741824, min-append-size=262144"]},
    ),
    "WWW-Authenticate": ("How to authenticate; at /mcp also where to get a token (RFC 9728).", _TEXT),
    "Allow": ("The methods of the path.", _TEXT),
    "Accept-Encoding": ("`identity`: request bodies must not be encoded.", _TEXT),
    "Cache-Control": ("Whether caches may store the response.", _TEXT),
    "Set-Cookie": ("The cookie that binds the consent to this browser.", _TEXT),
    "Pragma": ("`no-cache` (RFC 6749).", _TEXT),
    "Vary": ("The request header that selected the response.", _TEXT),
    "Referrer-Policy": ("`no-referrer`: the URL contains secrets.", _TEXT),
    "Access-Control-Allow-Origin": ("The origin of GATEWAY_MCP_ORIGINS that may read the response, or `*`.", _TEXT),
    "Access-Control-Expose-Headers": ("The headers that a page may read.", _TEXT),
    "X-Accel-Buffering": ("`no`: proxies must not buffer events.", _TEXT),
}

_OF_ERRORS: dict[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    409: ("Retry-After", "Upload-Offset"),
    415: ("Accept-Encoding",),
    416: ("Content-Range",),
    429: ("Retry-After",),
    502: ("Retry-After",),
    503: ("Retry-After",),
}
_ALWAYS = ("X-Request-Id", "X-Content-Type-Options")
#: headers of responses that pages of other origins may read
_SHARED = ("Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Vary")
_READ_ALWAYS = ("X-Request-Id", "traceparent", "tracestate")


def header_parameters(route: Route) -> list[dict[str, Any]]:
    """The headers that the operation reads, as parameters."""
    names = _READ_ALWAYS if route.is_open else (*_READ_ALWAYS, "X-Organization-Id")
    return [_parameter(name) for name in (*names, *route.reads)]


def response_headers(route: Route, status: int) -> dict[str, Any]:
    """The headers that a response of the operation may have."""
    limits = () if route.is_open else ("RateLimit", "RateLimit-Policy")
    shared = _SHARED if shared_headers(route.path, "", frozenset()) else ()
    return _headers((*_ALWAYS, *limits, *route.sends.get(status, ()), *_OF_ERRORS.get(status, ()), *shared))


def error_headers(status: int) -> dict[str, Any]:
    """The headers that an error of any operation may have."""
    limits = ("RateLimit", "RateLimit-Policy")
    return _headers((*_ALWAYS, *limits, "Idempotency-Replayed", *_OF_ERRORS.get(status, ()), *_SHARED))


def _parameter(name: str) -> dict[str, Any]:
    description, schema = _REQUEST[name]
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}


def _headers(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: {"description": _ANSWER[name][0], "schema": _ANSWER[name][1]} for name in dict.fromkeys(names)}
