"""An attempt for the request log: method, path, status, time and sizes; never bodies, headers or queries."""

from collections.abc import Callable, Mapping
from time import monotonic
from uuid import UUID

import msgspec

from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.telemetry import tracing
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.redaction import Secrets
from gateway.upstream.requests import UpstreamRequest

#: characters of a path
_MAX_PATH = 500
#: characters of an application's own id of a request
_MAX_ID = 200
#: the error code of a request whose caller was canceled or whose process stopped
INTERRUPTED = "interrupted"
#: headers in which applications name a request
_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-zendesk-request-id", "x-hubspot-correlation-id")


class SentRequest(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One attempt of one request to an application."""

    #: the connector; of token requests during a consent the consent
    connector_id: UUID
    #: when it ended, in seconds since the epoch
    at: float
    method: str
    #: without the query; `//host/…` if the host is not the application's own
    path: str
    attempt: int
    duration_ms: int
    bytes_out: int
    #: of the decoded response
    bytes_in: int = 0
    status: int | None = None
    #: the error code of a request without a complete response
    error: str | None = None
    operation: str | None = None
    upstream_request_id: str | None = None
    request_id: str | None = None
    job_id: str | None = None


#: takes note of a request that has ended
Observe = Callable[[SentRequest], None]


class Received(msgspec.Struct, frozen=True):
    """The response to an attempt; header names in lower case."""

    status: int = 0
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    size: int = 0
    error: str | None = None


def sent_request(
    request: UpstreamRequest, scope: RateScope, *, secrets: Secrets, attempt: int, began: float, received: Received
) -> SentRequest:
    """An attempt of a connector's request that ends now, without its secrets; `began` is of the monotonic clock."""
    assert scope.connector_id is not None
    upstream_request_id, context = request_id_of(received.headers, secrets), tracing.log_fields()
    path = request.logged_path or secrets.masked_value(request.url.raw_path)
    if scope.foreign_host is not None:
        path = f"//{scope.foreign_host}/…"
    return SentRequest(
        connector_id=scope.connector_id,
        at=CLOCK.unix_time(),
        method=request.method,
        path=path[:_MAX_PATH],
        attempt=attempt,
        duration_ms=round((monotonic() - began) * 1000),
        bytes_out=len(request.body or b"") or request.size,
        bytes_in=received.size,
        status=received.status or None,
        error=received.error,
        operation=request.operation,
        upstream_request_id=upstream_request_id,
        request_id=context.get("request_id"),
        job_id=context.get("job_id"),
    )


def request_id_of(headers: Mapping[str, str], secrets: Secrets) -> str | None:
    """The application's own id of a request, masked and cut to its limit."""
    for name in _REQUEST_ID_HEADERS:
        if name in headers:
            return secrets.masked(headers[name])[:_MAX_ID]
    return None
