"""The one middleware: request id, authentication, errors and the access log, in one frame for speed."""

import logging
import re
import time
from uuid import uuid4

from aiohttp import web
from aiohttp.typedefs import Handler

from gateway.errors import GatewayError, InternalError, MalformedRequest, Unauthorized
from gateway.http.bodies import bearer_token
from gateway.http.errors import from_http, problem_response
from gateway.http.handlers.jobs import follower
from gateway.http.keys import CALLER, IS_DRAINING, REQUEST_ID, SERVICES
from gateway.identity.model import Caller

log = logging.getLogger("gateway.access")
bugs = logging.getLogger(__name__)

_SAFE_ID = re.compile(r"[A-Za-z0-9._~:/+=-]{1,128}")
#: paths that need no token
_OPEN = frozenset(
    {
        "/api/v1/account/applications/token",
        "/oauth/token",
        "/api/v1/integrations/connectors/oauth/callback",
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/docs",
    }
)


@web.middleware
async def edge(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every request passes here; whatever goes wrong leaves as a problem document."""
    started = time.perf_counter()
    given = request.headers.get("X-Request-Id", "")
    request_id = given if _SAFE_ID.fullmatch(given) else uuid4().hex
    request[REQUEST_ID] = request_id
    try:
        if request.path not in _OPEN:
            request[CALLER] = await _caller(request)
        response = await handler(request)
    except GatewayError as error:
        response = _told(error, request_id)
    except web.HTTPException as error:
        response = problem_response(from_http(error), request_id)
    except ConnectionError:
        raise
    except Exception:
        bugs.exception("a request failed by a bug", extra={"request_id": request_id})
        response = problem_response(InternalError(), request_id)
    if not response.prepared:
        response.headers["X-Request-Id"] = request_id
        if request.app[IS_DRAINING].is_set():
            # The next request belongs on another connection, to a process that stays.
            response.force_close()
    _log(request, response, started)
    return response


def _told(error: GatewayError, request_id: str) -> web.Response:
    response = problem_response(error, request_id)
    if response.status == 500:
        bugs.error("a request failed: %s", error.detail, extra={"request_id": request_id}, exc_info=error)
    return response


async def _caller(request: web.Request) -> Caller:
    """Who calls, for which organization; the same refusal for every token that is not good."""
    token = bearer_token(request)
    if "access_token" in request.query:
        raise MalformedRequest("a token does not belong in a query string; send it in the Authorization header")
    try:
        client = await request.app[SERVICES].tokens.verify(token)
    except Unauthorized:
        caller = await follower(request, token)
        if caller is None:
            raise
        return caller
    return client.caller(request.headers.get("X-Organization-Id"))


def _log(request: web.Request, response: web.StreamResponse, started: float) -> None:
    if not log.isEnabledFor(logging.INFO):
        return
    resource = request.match_info.route.resource
    fields = {
        "request_id": request[REQUEST_ID],
        "method": request.method,
        "route": resource.canonical if resource else None,
        "status": response.status,
        "took_ms": round((time.perf_counter() - started) * 1000, 1),
    }
    log.info("request", extra=fields)
