"""Turns an error response into the exception that the gateway raised: the same class, code, faults and upstream."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway import errors
from gateway.errors import FieldError, GatewayError, UpstreamFault
from gateway.foundation import payloads

#: errors for responses without an error code of the gateway, such as those of a proxy
_BY_STATUS: Mapping[int, type[GatewayError]] = {
    400: errors.MalformedRequest,
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.BodyTooLarge,
    416: errors.RangeNotSatisfiable,
    422: errors.InvalidParams,
    429: errors.RateLimited,
    502: errors.Unavailable,
    503: errors.Unavailable,
    504: errors.Unavailable,
}
#: members of the problem document that are attributes of the error, or follow from its class
_KNOWN = frozenset({"type", "title", "code", "detail", "message", "retryable", "errors", "upstream", "retry_after"})


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> GatewayError:
    """The error of a response; `extra` has its `http_status`, `request_id` and further members."""
    problem = _document(body)
    code = problem.get("code")
    cls = errors.BY_CODE.get(code) if isinstance(code, str) else None
    if cls is None:
        cls = _BY_STATUS.get(status, errors.InternalError if status >= 500 else errors.RequestError)
    extra = {name: value for name, value in problem.items() if name not in _KNOWN}
    if extra.get("status") == status:
        del extra["status"]
    extra["http_status"] = status
    if "X-Request-Id" in headers:
        extra.setdefault("request_id", headers["X-Request-Id"])
    return cls(
        _detail(problem, status, headers),
        faults=_faults(problem.get("errors")),
        upstream=_upstream(problem.get("upstream")),
        retry_after=retry_after(headers),
        extra=extra,
    )


def retry_after(headers: Mapping[str, str]) -> int | None:
    """The seconds in `Retry-After`, which is always an integer in the gateway's responses."""
    text = headers.get("Retry-After", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = payloads.typed(body, Any)
    except msgspec.DecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _detail(problem: Mapping[str, Any], status: int, headers: Mapping[str, str]) -> str:
    message = problem.get("detail") or problem.get("message")
    if isinstance(message, str):
        return message
    if 300 <= status < 400:
        return f"the gateway's URL redirects to {headers.get('Location', 'another URL')}; set GATEWAY_URL to that URL"
    return f"the response with status {status} is not from a gateway; check GATEWAY_URL"


def _faults(value: object) -> list[FieldError]:
    if not isinstance(value, list):
        return []
    names = ("pointer", "field", "code", "message")
    return [FieldError(*(str(fault.get(name, "")) for name in names)) for fault in value if isinstance(fault, dict)]


def _upstream(value: object) -> UpstreamFault | None:
    try:
        return None if value is None else msgspec.convert(value, UpstreamFault)
    except msgspec.ValidationError:
        return None
