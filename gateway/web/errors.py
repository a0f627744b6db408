"""HTTP statuses and problem documents of errors (RFC 9457); no other module maps errors to statuses."""

from dataclasses import asdict
from typing import Any

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from gateway import errors
from gateway.contract.problems import Problem
from gateway.contract.scim import ERROR_SCHEMA, MEDIA_TYPE, ScimErrorView
from gateway.errors import GatewayError
from gateway.upstream.http_ranges.ranges import unsatisfied_range

PROBLEM = "application/problem+json"

STATUS: dict[type[GatewayError], int] = {
    errors.MalformedRequest: 400,
    errors.Unauthorized: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.ResultExpired: 410,
    errors.CursorExpired: 410,
    errors.UploadExpired: 410,
    errors.Conflict: 409,
    errors.PreconditionFailed: 412,
    errors.BodyTooLarge: 413,
    errors.UnsupportedEncoding: 415,
    errors.RangeNotSatisfiable: 416,
    errors.InvalidParams: 422,
    errors.HeadersTooLarge: 431,
    errors.ReauthorizationRequired: 424,
    errors.RateLimited: 429,
    errors.UpstreamError: 502,
    errors.UpstreamTimeout: 504,
    errors.NotCached: 504,
    errors.Unavailable: 503,
    errors.WorkerCrashed: 502,
    errors.GatewayError: 500,
}


#: maximum bytes of a problem document
_MAX_BYTES = 64 << 10
#: maximum characters of each text in it, which may quote a caller or an application
_MAX_TEXT = 2000
_ALWAYS = tuple(member.name for member in msgspec.structs.fields(Problem) if member.required)
#: the members of the error of a write that may have been done, whatever else is left out
_OF_UNKNOWN = ("outcome", "known", "safe_to_retry")


def status_of(error: GatewayError) -> int:
    """The status of the error's class, or of its nearest base class that has one."""
    return next(STATUS[cls] for cls in type(error).__mro__ if cls in STATUS)


def code_of(status: int) -> str:
    """The error code for a status."""
    return next((cls.code for cls, each in STATUS.items() if each == status), errors.MalformedRequest.code)


def problem(error: GatewayError, request_id: str) -> dict[str, Any]:
    """The problem document. `message` repeats `detail`, because the public SDK reads only `message`."""
    if status_of(error) == 500:
        error = errors.InternalError(extra={name: error.extra[name] for name in _OF_UNKNOWN if name in error.extra})
    members: dict[str, Any] = {
        "type": f"urn:gateway:error:{error.code}",
        "title": error.title,
        "status": status_of(error),
        "code": error.code,
        "detail": _capped(error.detail),
        "message": _capped(error.detail),
        "retryable": error.retryable,
        "request_id": request_id,
        "docs": f"/docs/errors/{error.code}",
        **error.extra,
    }
    if error.faults:
        members["errors"] = [{name: _capped(text) for name, text in asdict(fault).items()} for fault in error.faults]
    if error.upstream or _is_of_application(error):
        fault = asdict(error.upstream or errors.UpstreamFault())
        members["upstream"] = {name: value for name, value in fault.items() if value is not None}
    return members


def _is_of_application(error: GatewayError) -> bool:
    """Whether it is a 502 of the application: it has `upstream`, which is empty if there was no response."""
    return isinstance(error, errors.UpstreamError) and status_of(error) == 502


def _capped(text: str) -> str:
    text = text.encode(errors="replace").decode()  # a header may contain bytes that are not UTF-8
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


def problem_response(error: GatewayError, request_id: str) -> web.Response:
    """The response with the problem document."""
    status = status_of(error)
    headers: CIMultiDict[str] = CIMultiDict()
    if error.retry_after is not None or status in (429, 503):
        headers["Retry-After"] = str(error.retry_after or 1)
    if error.is_replayed:
        headers["Idempotency-Replayed"] = "true"
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 405:
        headers["Allow"] = error.extra["allowed"]
    if "expected_offset" in error.extra:
        headers["Upload-Offset"] = str(error.extra["expected_offset"])
    if status == 415:
        headers["Accept-Encoding"] = "identity"
    if status == 416 and error.extra.get("size") is not None:
        headers["Content-Range"] = unsatisfied_range(error.extra["size"])
    return web.Response(status=status, body=_encoded(error, request_id), content_type=PROBLEM, headers=headers)


def scim_response(error: GatewayError, request_id: str) -> web.Response:
    """The response with the error document of SCIM (RFC 7644 §3.12), which has no 422."""
    response = problem_response(error, request_id)
    if response.status == 422:
        response.set_status(400)
    default = "invalidValue" if isinstance(error, errors.InvalidParams) else "invalidSyntax"
    scim_type = error.extra.get("scim_type", default if response.status == 400 else msgspec.UNSET)
    detail = errors.InternalError().detail if response.status == 500 else _capped(error.detail)
    document = ScimErrorView(schemas=[ERROR_SCHEMA], status=str(response.status), detail=detail, scim_type=scim_type)
    response.body, response.content_type = msgspec.json.encode(document), MEDIA_TYPE
    return response


def _encoded(error: GatewayError, request_id: str) -> bytes:
    """The document within its size limit: with fewer faults, or else with the required members only."""
    document = problem(error, request_id)
    while len(body := msgspec.json.encode(document)) > _MAX_BYTES:
        if len(document.get("errors", ())) > 1:
            document["errors"] = document["errors"][: len(document["errors"]) // 2]
        else:
            document = {name: document[name] for name in (*_ALWAYS, *_OF_UNKNOWN) if name in document}
    return body


def from_http(error: web.HTTPException) -> GatewayError:
    """aiohttp's own refusals (no such route, no such method, body too large) as errors of the gateway."""
    match error.status:
        case 404:
            return errors.NotFound("this path does not exist; /docs lists the paths")
        case 405:
            allowed = ", ".join(sorted(getattr(error, "allowed_methods", ())))
            return MethodNotAllowed(f"this path supports {allowed}", extra={"allowed": allowed})
        case 413:
            return errors.BodyTooLarge("the body is too large")
        case status if status < 500:
            return errors.MalformedRequest(error.reason)
        case _:
            return errors.InternalError()


class MethodNotAllowed(GatewayError):
    """The path does not support the method (RFC 9110 §15.5.6)."""

    code, title = "method_not_allowed", "Method not allowed"


STATUS[MethodNotAllowed] = 405
