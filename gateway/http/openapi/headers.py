"""Which headers each operation reads and answers with, as the OpenAPI document tells it.

Accept, Authorization and Content-Type are told by media types and the security scheme, as OpenAPI has it.
"""

from typing import Any

from gateway.http.bodies import MAX_WAIT
from gateway.http.openapi.parts import ID
from gateway.http.openapi.paths import (
    CALLBACK,
    CONNECT_SESSIONS,
    CONNECTOR,
    CONNECTORS,
    CONSENT,
    DOWNLOAD,
    EXECUTE,
    JOB,
    REVOKE,
    TOKEN,
    TOKENS,
)
from gateway.http.route import Route
from gateway.oauth_server.metadata import AUTHORIZE, REGISTER, RESOURCE_METADATA, SERVER_METADATA

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

_RANGE = ("Range", "If-Range", "If-None-Match")
_RPC = ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Origin")
#: by method and path, beside those that every operation reads
READ_HEADERS: dict[tuple[str, str], tuple[str, ...]] = {
    ("POST", EXECUTE): ("Prefer", "Idempotency-Key", "Cache-Control", *_RANGE, "X-ADP-Agent-SDK"),
    ("GET", DOWNLOAD): _RANGE,
    ("HEAD", DOWNLOAD): _RANGE,
    ("GET", JOB): ("Prefer", "If-None-Match"),
    ("GET", f"{JOB}/events"): ("Last-Event-ID",),
    ("GET", f"{JOB}/result"): ("Prefer", *_RANGE, "X-ADP-Agent-SDK"),
    ("HEAD", f"{JOB}/result"): ("Prefer", *_RANGE),
    ("POST", "/mcp"): _RPC,
    ("POST", "/mcp/{kind}"): _RPC,
    **{("POST", f"{AUTHORIZE}/{step}"): ("Origin",) for step in ("sign-in", "provider", "organization", "consent")},
}

_SUNSET = ("Deprecation", "Sunset", "Link")
_FILE = ("Accept-Ranges", "ETag", "Last-Modified", "Content-Disposition", "Content-Security-Policy", "Cache-Control")
_PART = ("Content-Range", *_FILE)
_ACCEPTED = ("Location", "Retry-After", "Preference-Applied")
_NO_STORE = ("Cache-Control", "Pragma")
_PRIVATE = ("Cache-Control", "Referrer-Policy")
_PAGE = (*_PRIVATE, "Content-Security-Policy")
_PUBLIC: dict[int, tuple[str, ...]] = {200: ("Cache-Control", "Access-Control-Allow-Origin")}
_EVENTS = ("Cache-Control", "X-Accel-Buffering")
_FILES: dict[int, tuple[str, ...]] = {200: _FILE, 206: _PART, 304: _FILE, 416: ("Content-Range", "Accept-Ranges")}
_BROWSER: dict[int, tuple[str, ...]] = {303: ("Location", "Set-Cookie", *_PRIVATE), 400: _PRIVATE}
_GRANTED: dict[int, tuple[str, ...]] = dict.fromkeys((200, 400, 401, 413, 429), _NO_STORE)
#: by method and path, then status
SENT_HEADERS: dict[tuple[str, str], dict[int, tuple[str, ...]]] = {
    ("POST", EXECUTE): {
        200: ("Preference-Applied", "Idempotency-Replayed", "Age", "Cache-Status", *_SUNSET, *_FILE),
        202: (*_ACCEPTED, "Idempotency-Replayed", *_SUNSET),
        206: _PART,
        303: ("Location",),
        304: _FILE,
    },
    ("GET", DOWNLOAD): _FILES,
    ("HEAD", DOWNLOAD): _FILES,
    ("POST", CONNECTORS): dict.fromkeys((200, 201), ("Location", *_SUNSET)),
    ("GET", CONNECTOR): {200: _SUNSET},
    ("DELETE", CONNECTOR): {202: ("Location",)},
    ("DELETE", "/api/v1/workspaces/{workspace_id}"): {202: ("Location",)},
    ("POST", f"{CONNECTORS}/oauth/initiate"): {200: _PRIVATE},
    ("GET", CONSENT): _BROWSER,
    ("GET", CALLBACK): _BROWSER,
    ("POST", f"{CONNECTOR}/context-store/sync"): {202: _ACCEPTED},
    ("POST", CONNECT_SESSIONS): {201: ("Location", "Cache-Control")},
    ("GET", JOB): dict.fromkeys((200, 304), ("ETag", "Retry-After", "Preference-Applied")),
    ("GET", f"{JOB}/events"): {200: _EVENTS},
    ("GET", f"{JOB}/result"): {**_FILES, 202: _ACCEPTED, 303: ("Location",)},
    ("HEAD", f"{JOB}/result"): {**_FILES, 202: _ACCEPTED},
    ("POST", f"{JOB}/retry"): {202: _ACCEPTED},
    ("POST", TOKENS): {200: _NO_STORE},
    ("POST", TOKEN): _GRANTED,
    ("POST", REVOKE): _GRANTED,
    ("POST", "/mcp"): {200: _EVENTS},
    ("POST", "/mcp/{kind}"): {200: _EVENTS},
    ("GET", RESOURCE_METADATA): _PUBLIC,
    ("GET", f"{RESOURCE_METADATA}/mcp"): _PUBLIC,
    ("GET", f"{RESOURCE_METADATA}/mcp/{{kind}}"): _PUBLIC,
    ("GET", SERVER_METADATA): _PUBLIC,
    ("GET", AUTHORIZE): {200: ("Set-Cookie", *_PAGE), 400: _PAGE},
    ("POST", f"{AUTHORIZE}/sign-in"): dict.fromkeys((200, 400, 403), _PAGE),
    ("POST", f"{AUTHORIZE}/provider"): {200: ("Set-Cookie", *_PAGE), 400: _PAGE, 403: _PAGE},
    ("POST", f"{AUTHORIZE}/organization"): dict.fromkeys((200, 400), _PAGE),
    ("POST", f"{AUTHORIZE}/consent"): {303: ("Location", *_PRIVATE), 400: _PAGE},
    ("POST", REGISTER): dict.fromkeys((201, 400), ("Cache-Control",)),
    ("GET", "/"): {200: ("Vary",), 303: ("Location", "Vary")},
    ("GET", "/docs"): {200: ("Content-Security-Policy", "Cache-Control")},
    ("GET", "/openapi.json"): {200: ("ETag", "Vary")},
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
    return [_parameter(name) for name in (*names, *READ_HEADERS.get((route.method, route.path), ()))]


def response_headers(route: Route, status: int) -> dict[str, Any]:
    """The headers that an answer of the operation may have."""
    sent = SENT_HEADERS.get((route.method, route.path), {}).get(status, ())
    limits = () if route.is_open else ("RateLimit", "RateLimit-Policy")
    return _headers((*_ALWAYS, *limits, *sent, *_OF_ERRORS.get(status, ())))


def error_headers(status: int) -> dict[str, Any]:
    """The headers that an error of any operation may have."""
    return _headers((*_ALWAYS, "RateLimit", "RateLimit-Policy", "Idempotency-Replayed", *_OF_ERRORS.get(status, ())))


def _parameter(name: str) -> dict[str, Any]:
    description, schema = _REQUEST[name]
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}


def _headers(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: {"description": _ANSWER[name][0], "schema": _ANSWER[name][1]} for name in dict.fromkeys(names)}
