"""The only middleware: request id, limits, token, scope, audit, errors, metrics and access log."""

import logging
import re
import time
from contextlib import AbstractContextManager
from functools import cache
from io import BytesIO
from random import getrandbits

from aiohttp import web
from aiohttp.hdrs import AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, ORIGIN, SERVER
from aiohttp.typedefs import Handler
from msgspec import Struct
from multidict import istr

from gateway.access.audit.entry import Entry, begin_request
from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, id_of, id_text
from gateway.contract.scim import SCIM
from gateway.errors import (
    GatewayError,
    HeadersTooLarge,
    InsufficientScope,
    InternalError,
    MalformedRequest,
    UnsupportedEncoding,
)
from gateway.foundation.aio.turns import compute_for
from gateway.foundation.telemetry import tracing
from gateway.foundation.telemetry.metrics import REQUEST_SECONDS, REQUESTS
from gateway.web.admission.load_shedding import ANSWER_MEMORY, LIMITS, SLOT, Limits, release_slot
from gateway.web.bodies import UnknownId, json_response, release_memory, whole_number
from gateway.web.errors import code_of, from_http, problem_response, scim_response
from gateway.web.keys import (
    ACCESS,
    AUDIT,
    CALLER,
    ENDS_WITH_CALLER,
    IS_DRAINING,
    IS_REPEATABLE,
    ORIGINS,
    RATE_HEADERS,
    REQUEST_ID,
    ROUTE_OF,
    SERVICES,
    STREAM,
)
from gateway.web.pages.error_card import CONSOLE, error_card, words_of
from gateway.web.pages.rendering import PAGES, accepts_html
from gateway.web.pages.sign_in import SignInRequired, sign_in_response
from gateway.web.route import Route
from gateway.web.server.authentication import by_token
from gateway.web.server.connection_guard import MAX_HEAD
from gateway.web.server.cors import preflight_headers, shared_headers
from gateway.web.streaming import abort
from gateway.web.unknown_ids import explained

log = logging.getLogger("gateway.access")
bugs = logging.getLogger(__name__)

#: headers of every request and response, as `istr`, because multidict lowercases a plain text at each look-up
_REQUEST_ID, _ORGANIZATION, _NO_SNIFF = istr("X-Request-Id"), istr("X-Organization-Id"), istr("X-Content-Type-Options")
#: methods that change nothing
_READING = ("GET", "HEAD", "OPTIONS")
_WELL_KNOWN = "/.well-known/"
#: bytes of a response whose memory is not counted; most have less
_UNCOUNTED = 64 << 10
#: headers that are not longer than the maximum together, because none has more than 8 KiB
_FEW_HEADERS = 4
#: bytes of a body that is written at once
_WRITTEN_AT_ONCE = 256 << 10
#: items of a page of a list; one of a thousand takes 20 ms of processor time
_LONG_PAGE = 100
_SAFE_ID = re.compile(r"[A-Za-z0-9._~:/+=-]{1,128}")
#: path variables, other than the connector's, that name the target of a change
_TARGETS = ("workspace_id", "job_id", "connector_type", "grant_id", "client_id", "person_session_id", "issuer_id")


@web.middleware
async def request_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Handle every request. An error becomes a problem document, or aborts the connection if a stream has begun.

    A Struct that a handler returns is sent as the JSON of a 200.
    """
    started = time.perf_counter()
    app = request.app
    services, limits, route = app[SERVICES], app[LIMITS], app[ROUTE_OF].get(request.match_info.route)
    entry, span = _begin(request, route)
    response: web.StreamResponse | None = None
    outcome: str | None = None
    try:
        caller = await _admit(request, route, limits)
        if route is not None:
            _permit(request, route, entry, caller)
        with span:
            try:
                if caller is not None and route is not None and _is_long_page(request, route):
                    async with limits.one_long_page(caller.organization_id):
                        response = _response_of(await handler(request))
                else:
                    response = _preflight(request) or _response_of(await handler(request))
            except UnknownId as error:
                raise await explained(request, error) from error
        _hold_answer(request, limits, caller, response)
    except SignInRequired:
        outcome = "sign_in_required"
        response = sign_in_response(request)
    except GatewayError as error:
        outcome = error.code
        response = _failed(request, route, error)
    except web.HTTPException as error:
        refusal = from_http(error)
        outcome = refusal.code
        response = _failed(request, route, refusal)
    except ConnectionError:
        raise
    except Exception:
        outcome = InternalError.code
        bugs.exception("a request failed because of a bug")
        response = _failed(request, route, InternalError())
    finally:
        release_slot(request)
        release_memory(request)
        _record(
            request,
            services.logs.audit,
            entry=entry,
            response=response,
            outcome=outcome,
            seconds=time.perf_counter() - started,
        )
    if not response.prepared:
        if limits.rates.is_limiting and RATE_HEADERS in request:
            response.headers.update(request[RATE_HEADERS])
        if app[IS_DRAINING].is_set():
            # Close the connection, so that the next request goes to a process that is not stopping.
            response.force_close()
    return response


def _hold_answer(request: web.Request, limits: Limits, caller: Caller | None, response: web.StreamResponse) -> None:
    """Count the memory of a large response until it is sent; raises Unavailable for a read of too many of them."""
    if not isinstance(response, web.Response):
        return
    body = response.body
    if not isinstance(body, bytes) or len(body) <= _UNCOUNTED:
        return
    may_refuse = request.get(IS_REPEATABLE) or request.get(ENDS_WITH_CALLER)
    acquire = limits.answers.acquire if may_refuse else limits.answers.acquire_rest
    request[ANSWER_MEMORY] = acquire(None if caller is None else caller.organization_id, len(body))
    if len(body) > _WRITTEN_AT_ONCE:
        # The connection copies what its caller has not read: a large body is written as fast as it is read.
        response.headers[CONTENT_LENGTH] = str(len(body))
        response.body = BytesIO(body)


async def set_common_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Set the headers of every response, streams included; no header names the software."""
    headers = response.headers
    # aiohttp refuses an unknown expectation at an unknown path before the request has its id.
    headers[_REQUEST_ID] = request.get(REQUEST_ID) or _new_id()
    headers[_NO_SNIFF] = "nosniff"
    headers.pop(SERVER, None)
    if (origin := request.headers.get(ORIGIN)) is not None:
        headers.update(shared_headers(request.path, origin, request.app[ORIGINS]))
    if not isinstance(response, web.Response):
        request[STREAM] = response


def _response_of(answered: web.StreamResponse | Struct) -> web.StreamResponse:
    return json_response(answered) if isinstance(answered, Struct) else answered


def _is_long_page(request: web.Request, route: Route) -> bool:
    """Whether the request is for more items of a list than are read and encoded in a few milliseconds."""
    if request.method != "GET" or route.query is None or not route.has_pages:
        return False
    given = request.query.get("limit")
    limit = route.query.model_fields["limit"].default if given is None else whole_number(given)
    return limit is None or limit > _LONG_PAGE


def _preflight(request: web.Request) -> web.Response | None:
    """The response to a preflight request of a page that may call the path; None for every other request."""
    if request.method != "OPTIONS":
        return None
    headers = preflight_headers(request.path, request.headers, request.app[ORIGINS])
    return web.Response(status=204, headers=headers) if headers else None


def _new_id() -> str:
    return getrandbits(128).to_bytes(16).hex()


def _begin(request: web.Request, route: Route | None) -> tuple[Entry | None, AbstractContextManager[None]]:
    """Set the id of the request, for its log events, audit entry and trace.

    Returns its audit entry, if it has one, and the span of its handler.
    """
    given = request.headers.get(_REQUEST_ID, "")
    request_id = given if given and _SAFE_ID.fullmatch(given) else _new_id()
    request[REQUEST_ID] = request_id
    entry = begin_request(request_id, None if route is None else route.audit)
    if entry is not None:
        request[AUDIT] = entry
    return entry, tracing.begin_request(request_id, request.method, request.headers)


async def _admit(request: web.Request, route: Route | None, limits: Limits) -> Caller | None:
    """Authenticate the caller, and take a slot of its organization, or of the address of a request without a token.

    Raises Unauthorized, RateLimited and Unavailable, among others.
    """
    if len(request.raw_headers) > _FEW_HEADERS and sum(map(_size, request.raw_headers)) > MAX_HEAD:
        raise HeadersTooLarge(f"the headers of the request are longer than {MAX_HEAD} bytes together")
    if CONTENT_ENCODING in request.headers:
        raise UnsupportedEncoding("encoded request bodies are not supported; send the request without Content-Encoding")
    # Only the matched route decides: another route may match the decoded path. A 405 and a 404 of metadata need no
    # token, because the contract is public.
    is_open = route.is_open if route else _is_refused_openly(request)
    if is_open:
        compute_for(None)  # the connection may have had requests of an organization
        if route is not None and not route.is_probe:
            request[SLOT] = limits.tokenless.acquire(request.remote)
        return None
    authenticate = by_token if route is None or route.authenticate is None else route.authenticate
    caller = await authenticate(request)
    request[CALLER] = caller
    compute_for(caller.organization_id)
    limits.turns.learn(request.headers.get(AUTHORIZATION), caller.organization_id)
    if limits.rates.is_limiting:
        rates = limits.rates.try_acquire(caller)
        request[RATE_HEADERS] = rates.headers
        if rates.refusal is not None:
            raise rates.refusal
    limits.answers.require(caller.organization_id)
    request[SLOT] = limits.requests.acquire(caller.organization_id)
    return caller


def _size(header: tuple[bytes, bytes]) -> int:
    return len(header[0]) + len(header[1])


def _is_refused_openly(request: web.Request) -> bool:
    """Whether a request without a route is refused without a token.

    Hosts look for metadata at several paths (RFC 8414 §3.1, RFC 9728 §3.1), and take a 401 for a protected resource.
    """
    return isinstance(request.match_info.http_exception, web.HTTPMethodNotAllowed) or _WELL_KNOWN in request.path


def _permit(request: web.Request, route: Route, entry: Entry | None, caller: Caller | None) -> None:
    """Complete the audit entry, so that a refusal is recorded too, and check the scope; raises InsufficientScope."""
    if entry is not None:
        entry.connector_id = id_of(request.match_info.get("connector_id"))
        entry.target = request.match_info.get(_target_of(route.path))
        if caller is not None:
            entry.acted(caller)
    if caller is not None and route.method == "GET" and route.audit is None:
        request[ENDS_WITH_CALLER] = True
    if caller is not None and caller.session is not None and not route.in_session:
        raise InsufficientScope("a session runs operations; it cannot do this")
    if route.scope is not None and caller is not None:
        caller.require(route.scope)
    if caller is not None and request.method not in _READING and not route.while_moving:
        caller.require_settled()
    if route.is_page and "\x00" in request.query_string:
        raise MalformedRequest("the query contains NUL; remove it")


@cache
def _target_of(path: str) -> str:
    """The variable of a route's path that names a target other than the connector; empty if there is none."""
    return next((name for name in _TARGETS if f"{{{name}}}" in path), "")


def _failed(request: web.Request, route: Route | None, error: GatewayError) -> web.StreamResponse:
    """The error as a response; if a stream has begun, its connection is aborted instead."""
    stream: web.StreamResponse | None = request.get(STREAM)
    if stream is None:
        return _error_response(request, route, error)
    log.warning("a stream was aborted: %s", error.detail, extra={"code": error.code})
    abort(request, stream)
    return stream


def _error_response(request: web.Request, route: Route | None, error: GatewayError) -> web.Response:
    """The error as a problem document, or as a page if the route is a page."""
    response = problem_response(error, request[REQUEST_ID])
    if response.status == 500 and not isinstance(error, InternalError):
        bugs.error("a request failed: %s", error.detail, exc_info=error)
    if request.path.startswith(f"{SCIM}/") if route is None else route.is_scim:
        return scim_response(error, request[REQUEST_ID])
    if route is None:
        is_page = request.path.startswith(CONSOLE)
        return _error_page(request, _console_route(request), error, response) if is_page else response
    if response.status == 401 and route.is_resource:
        # The challenge names the authorization server (RFC 9728 §5.1).
        response.headers["WWW-Authenticate"] = request.app[ACCESS].authorization.challenge(request.path)
    is_page = route.is_page or (route.is_link and accepts_html(request.headers.get("Accept", "")))
    return _error_page(request, route, error, response) if is_page else response


def _console_route(request: web.Request) -> Route:
    """The route of the console's first page, whose errors look like those of unknown paths and methods below it."""
    return next(route for route in request.app[ROUTE_OF].values() if route.path == CONSOLE)


def _error_page(request: web.Request, route: Route, error: GatewayError, problem: web.Response) -> web.Response:
    """The page for people, with the status and the headers of the problem document."""
    status, pages = problem.status, request.app[PAGES]
    if route.error_page is not None:
        page = route.error_page(request, *words_of(error, status), status)
    else:
        home = CONSOLE if request.path.startswith(CONSOLE) else None
        page = error_card(pages, error, status, request[REQUEST_ID], home)
    page.headers.update({name: value for name, value in problem.headers.items() if name in ("Retry-After", "Allow")})
    return page


def _record(
    request: web.Request,
    audit: Audit,
    entry: Entry | None,
    response: web.StreamResponse | None,
    outcome: str | None,
    seconds: float,
) -> None:
    """Write the audit entry; count and log a request that was answered. `outcome` is the code of its error."""
    if outcome is None:
        outcome = "interrupted" if response is None else _outcome_of(response.status)
    if entry is not None and entry.end(outcome, request[REQUEST_ID], round(seconds * 1000)):
        audit.note(entry)
    if response is None:
        return
    status, resource = response.status, request.match_info.route.resource
    path = "none" if resource is None else resource.canonical
    REQUESTS.add("none" if resource is None else request.method, path, str(status))
    REQUEST_SECONDS.observe(seconds, path)
    if log.isEnabledFor(logging.INFO) and _is_logged(request, status):
        fields = {
            "method": request.method,
            "route": path,
            "status": status,
            "took_ms": round(seconds * 1000, 1),
            **_subject(request, entry),
        }
        if status >= 400:
            fields["error"] = outcome
        log.info("request", extra=fields)


def _is_logged(request: web.Request, status: int) -> bool:
    """Whether the access log has the request: of the successful ones a share, which is chosen at random."""
    settings = request.app[SERVICES].settings
    return settings.access_log and (status >= 400 or getrandbits(32) < settings.access_log_share * 2**32)


def _outcome_of(status: int) -> str:
    """The outcome in the access log and the audit log if the use case has set none."""
    if status == 202:
        return "accepted"
    return "succeeded" if status < 400 else code_of(status)


def _subject(request: web.Request, entry: Entry | None) -> dict[str, str]:
    """The client, connector, operation and kind of a request, as far as they are known; never params."""
    caller = request.get(CALLER)
    context = {} if caller is None else {"client_id": str(caller.client_id)}
    if entry is None or entry.connector_id is None:
        return context
    context["connector_id"] = id_text(entry.connector_id)
    if entry.what is not None:
        context["operation"] = entry.what
    if caller is not None:
        kind = request.app[SERVICES].connectors.resolver.kind_of(caller.organization_id, entry.connector_id)
        context |= {} if kind is None else {"kind": kind}
    return context
