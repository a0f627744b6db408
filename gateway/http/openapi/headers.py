"""What each header means, and the headers of each operation in the OpenAPI document.

OpenAPI describes Accept, Authorization and Content-Type by media types and the security scheme.
"""

from typing import Any

from gateway.contract.members import ID
from gateway.http.bodies import MAX_WAIT
from gateway.http.route import Route

_TEXT: dict[str, Any] = {"type": "string"}
_SECONDS: dict[str, Any] = {"type": "integer", "minimum": 0}

_REQUEST: dict[str, tuple[str, dict[str, Any]]] = {
    "X-Organization-Id": (
        "The organization; required when the client can access several.",
        {"type": "string", "format": "uuid", "examples": [ID]},
    ),
    "X-Request-Id": (
        "Your own id for the request: it comes back, and stands in the logs.",
        {"type": "string", "pattern": "^[A-Za-z0-9._~:/+=-]{1,128}$"},
    ),
    "traceparent": (
        "W3C Trace Context: the trace that the request is a part of; it is continued.",
        {"type": "string", "examples": ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]},
    ),
    "tracestate": ("W3C Trace Context: passed on with `traceparent`.", _TEXT),
    "Prefer": (
        "RFC 7240: `respond-async` answers with a job at once, `wait=N` waits for up to "
        f"{MAX_WAIT} seconds before it does. Other preferences are ignored.",
        {"type": "string", "examples": ["respond-async", "wait=20"]},
    ),
    "Idempotency-Key": (
        "Chosen by the caller, one for each write that is meant: the same request again is answered with the first "
        "answer, and nothing is sent.",
        {"type": "string", "pattern": "^[!-~]{1,255}$", "examples": ["order-4711-ticket"]},
    ),
    "Cache-Control": (
        "RFC 9111, of operations that only read: `max-age=N` accepts an answer of that age, `only-if-cached` nothing "
        "else, `no-store` keeps none.",
        {"type": "string", "examples": ["max-age=60"]},
    ),
    "Range": ("RFC 9110: the part of the file that is wanted.", {"type": "string", "examples": ["bytes=0-1023"]}),
    "If-Range": ("The ETag or date that the range is of; the whole file comes when it has changed.", _TEXT),
    "If-None-Match": ("The ETag that is known; 304 while it holds.", _TEXT),
    "Last-Event-ID": ("The last event that was seen: the stream goes on after it.", _TEXT),
    "MCP-Protocol-Version": ("The revision that the request is of.", {"type": "string", "examples": ["2026-07-28"]}),
    "Mcp-Method": ("`method` of the body once more, for whoever routes; it must agree.", _TEXT),
    "Mcp-Name": ("What `params` names (a tool, a resource, a task) once more; it must agree.", _TEXT),
    "Origin": ("The page that calls, as browsers tell it; one that is not allowed is refused.", _TEXT),
    "X-ADP-Agent-SDK": (
        "Sent by callers that cannot follow a job: redirects (303) lead to the result, and files come as JSON chunks.",
        _TEXT,
    ),
}

_ANSWER: dict[str, tuple[str, dict[str, Any]]] = {
    "X-Request-Id": ("The id of the request, to quote when asking for help.", _TEXT),
    "X-Content-Type-Options": ("`nosniff`.", _TEXT),
    "RateLimit": ("What is left of each limit, where the operator has set any.", _TEXT),
    "RateLimit-Policy": ("The limits themselves.", _TEXT),
    "Location": ("Where the new thing, or the next step, is.", {"type": "string", "format": "uri-reference"}),
    "Retry-After": ("Seconds after which it is worth asking again.", _SECONDS),
    "Preference-Applied": ("The preference that was followed.", {"type": "string", "examples": ["respond-async"]}),
    "Idempotency-Replayed": ("`true`: it is the first answer to this Idempotency-Key again.", {"const": "true"}),
    "ETag": ("The version.", {"type": "string", "examples": ['"3"']}),
    "Last-Modified": ("When the file was changed.", _TEXT),
    "Content-Range": ("Which bytes of how many these are; of 416 how many there are.", _TEXT),
    "Accept-Ranges": ("`bytes`, or `none` where the application knows no ranges.", {"enum": ["bytes", "none"]}),
    "Content-Disposition": ("The file's name, made safe.", _TEXT),
    "Content-Security-Policy": ("What a browser may do with it; with a file nothing.", _TEXT),
    "Age": ("Seconds since the application gave this answer.", _SECONDS),
    "Cache-Status": (
        "RFC 9211: whether the answer was remembered.",
        {"type": "string", "examples": ["gateway; hit"]},
    ),
    "Deprecation": ("RFC 9745: since when what the call relies on is deprecated.", _TEXT),
    "Sunset": ("RFC 8594: when it ends.", _TEXT),
    "Link": ("Where to read of it.", _TEXT),
    "WWW-Authenticate": ("How to authenticate; at /mcp also where to get a token (RFC 9728).", _TEXT),
    "Allow": ("The methods that the path takes.", _TEXT),
    "Accept-Encoding": ("`identity`: bodies are taken as they are.", _TEXT),
    "Cache-Control": ("Who may keep the answer, and for how long.", _TEXT),
    "Set-Cookie": ("What ties the consent to this browser.", _TEXT),
    "Pragma": ("`no-cache`, as RFC 6749 has it.", _TEXT),
    "Vary": ("The request header that decided what is answered.", _TEXT),
    "Referrer-Policy": ("`no-referrer`: the address holds what others must not see.", _TEXT),
    "Access-Control-Allow-Origin": ("`*`: any page may read it.", _TEXT),
    "X-Accel-Buffering": ("`no`: a proxy must pass events on at once.", _TEXT),
}

_OF_ERRORS: dict[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    409: ("Retry-After",),
    415: ("Accept-Encoding",),
    416: ("Content-Range",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
_ALWAYS = ("X-Request-Id", "X-Content-Type-Options")
_READ_ALWAYS = ("X-Request-Id", "traceparent", "tracestate")


def header_parameters(route: Route) -> list[dict[str, Any]]:
    """The headers that the operation reads, as parameters."""
    names = _READ_ALWAYS if route.is_open else (*_READ_ALWAYS, "X-Organization-Id")
    return [_parameter(name) for name in (*names, *route.reads)]


def response_headers(route: Route, status: int) -> dict[str, Any]:
    """The headers that an answer of the operation may have."""
    limits = () if route.is_open else ("RateLimit", "RateLimit-Policy")
    return _headers((*_ALWAYS, *limits, *route.sends.get(status, ()), *_OF_ERRORS.get(status, ())))


def error_headers(status: int) -> dict[str, Any]:
    """The headers that an error of any operation may have."""
    return _headers((*_ALWAYS, "RateLimit", "RateLimit-Policy", "Idempotency-Replayed", *_OF_ERRORS.get(status, ())))


def _parameter(name: str) -> dict[str, Any]:
    description, schema = _REQUEST[name]
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}


def _headers(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: {"description": _ANSWER[name][0], "schema": _ANSWER[name][1]} for name in dict.fromkeys(names)}
