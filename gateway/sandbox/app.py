"""The sandbox as one aiohttp application: every kind on one port, told apart by path."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web

from gateway.kinds.catalog import Catalog
from gateway.sandbox import control, sending
from gateway.sandbox.application import Application, Route
from gateway.sandbox.calls import Call, FileReply, Refusal, Reply
from gateway.sandbox.faults import Fault, Faults
from gateway.sandbox.journal import CallJournal, ReceivedRequest
from gateway.sandbox.kinds import APPLICATIONS

#: bytes of a request body
_BODY_CAP = 32 << 20


def create_sandbox(catalog: Catalog, *, seed: int = 0, scale: int = 1, job_seconds: float = 1.0) -> web.Application:
    """A stand-in for every kind of the catalog; `scale` times the usual records, a batch job takes `job_seconds`.

    Raises ValueError when two kinds use the same method and path, which one port cannot tell apart.
    """
    applications = [
        APPLICATIONS.get(kind.name, Application)(kind, seed=seed, scale=scale, job_seconds=job_seconds)
        for kind in catalog
    ]
    faults, journal = Faults(), CallJournal()
    app = web.Application(client_max_size=_BODY_CAP)
    app.add_routes(control.routes(applications, faults, journal))
    taken: dict[tuple[str, str], str] = {}
    for application in applications:
        for route in application.routes():
            _claim(taken, application, route)
            _add(app, route, _handler(application, route, faults, journal))
    app.router.add_route("*", "/{path:.*}", _handler(None, None, faults, journal))
    return app


def _claim(taken: dict[tuple[str, str], str], application: Application, route: Route) -> None:
    line = route.method, re.sub(r"{\w+}", "{}", route.path)
    if line in taken:
        raise ValueError(
            f"{application.kind.name} and {taken[line]} both answer {route.method} {route.path}; "
            "serve them from two sandboxes"
        )
    taken[line] = application.kind.name


def _add(app: web.Application, route: Route, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> None:
    app.router.add_route(route.method, route.path, handler)
    if route.method == "GET":
        app.router.add_route("HEAD", route.path, handler)


def _handler(
    application: Application | None, route: Route | None, faults: Faults, journal: CallJournal
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    kind = application.kind.name if application else None
    entities = tuple({operation.entity_id: None for operation in route.operations}) if route else ()

    async def handle(request: web.Request) -> web.StreamResponse:
        """Remember the call, do to it what the faults say, else let the application answer."""
        body = await request.read()
        now = time.time()
        received = ReceivedRequest(
            kind, entities, request.method, request.path, dict(request.query), dict(request.headers), body, now
        )
        journal.received(received)
        fault = faults.take(kind, request.path, entities, request.method)
        if fault is not None:
            await asyncio.sleep(fault.latency_ms / 1000)
        reply = _reply(application, route, request, body, now, fault)
        return await sending.send(request, reply, fault, journal, received)

    return handle


def _reply(
    application: Application | None,
    route: Route | None,
    request: web.Request,
    body: bytes,
    now: float,
    fault: Fault | None,
) -> Reply | FileReply:
    if fault is not None and fault.replaces_answer:
        if fault.body is not None or application is None or (fault.status or 200) < 400:
            return fault.reply()
        return application.refused(Refusal(fault.status or 500, headers=fault.headers))
    if application is None or route is None:
        return Reply({"error": f"no kind of the sandbox answers {request.method} {request.path}"}, 404)
    try:
        members, is_form = parsed_body(body, request.content_type)
    except Refusal as refusal:
        return application.refused(refusal)
    return application.answer(route, _call(request, members, is_form, now))


def _call(request: web.Request, body: Mapping[str, object], is_form: bool, now: float) -> Call:
    headers = {name.lower(): value for name, value in request.headers.items()}
    origin = f"{request.scheme}://{request.host}"
    return Call(request.method, request.path, request.match_info, request.query, headers, body, is_form, origin, now)


def parsed_body(body: bytes, content_type: str) -> tuple[Mapping[str, object], bool]:
    """The members of a JSON object or a form, and whether it was a form; raises Refusal."""
    if not body.strip():
        return {}, False
    if content_type == "application/x-www-form-urlencoded":
        return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True)), True
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(400, message="the body is not JSON") from error
    if not isinstance(document, dict):
        raise Refusal(400, message="the body is not a JSON object")
    return document, False
