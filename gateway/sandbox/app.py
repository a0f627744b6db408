"""The sandbox as one aiohttp application: all kinds on one port, at different paths."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from gateway.kinds.catalog import Catalog
from gateway.kinds.members import FORM, is_json
from gateway.sandbox import control, sending
from gateway.sandbox.application import Route
from gateway.sandbox.bodies import parsed_body
from gateway.sandbox.calls import Call, FileReply, Refusal, Reply
from gateway.sandbox.faults import Fault, Faults
from gateway.sandbox.journal import CallJournal, ReceivedRequest
from gateway.sandbox.kinds import APPLICATIONS
from gateway.sandbox.notices import Notices
from gateway.sandbox.rude import Rude
from gateway.sandbox.spec_application import SpecApplication

#: the prefix of the paths of each kind, because two kinds may have the same path
OWN_PATH = "/_kinds"
#: maximum bytes of a request body
_MAX_BODY_BYTES = 32 << 20


def create_sandbox(
    catalog: Catalog,
    *,
    seed: int = 0,
    scale: float = 1,
    job_seconds: float = 1.0,
    journal: CallJournal | None = None,
) -> web.Application:
    """A stand-in for every kind of the catalog, with `scale` times the usual records; a long job takes `job_seconds`.

    A kind is served below `/_kinds/KIND`, and at the root unless an earlier kind has the same path; there kinds with
    behaviour of their own come first.
    """
    applications = [
        APPLICATIONS.get(kind.name, SpecApplication)(kind, seed=seed, scale=scale, job_seconds=job_seconds)
        for kind in catalog
    ]
    rude = {application.kind.name: Rude(application) for application in applications}
    faults, journal, notices = Faults(), journal or CallJournal(), Notices()
    app = web.Application(client_max_size=_MAX_BODY_BYTES)
    app.cleanup_ctx.append(notices.running)
    app.add_routes(control.routes(applications, rude, faults, journal, notices))
    in_order = sorted(applications, key=lambda each: each.kind.name not in APPLICATIONS)
    routes = [(application, route) for application in in_order for route in application.routes()]
    taken: set[tuple[str, str]] = set()
    for application, route in sorted(routes, key=lambda each: _specificity(each[1])):
        handler = _handler(rude[application.kind.name], route, faults, journal, notices)
        _add(app, route.method, f"{OWN_PATH}/{application.kind.name}{route.path}", handler)
        line = route.method, re.sub(r"{\w+}", "{}", route.path)
        if line not in taken:
            taken.add(line)
            _add(app, route.method, route.path, handler)
    app.router.add_route("*", "/{path:.*}", _handler(None, None, faults, journal, notices))
    return app


def _specificity(route: Route) -> tuple[int, ...]:
    """A sort key: `/pages/search` and `/pages/{id}.json` come before `/pages/{id}`."""
    return tuple(("{" in segment) + segment.endswith("}") for segment in route.path.split("/"))


def _add(
    app: web.Application, method: str, path: str, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> None:
    app.router.add_route(method, path, handler)
    if method == "GET":
        app.router.add_route("HEAD", path, handler)


def _handler(
    rude: Rude | None, route: Route | None, faults: Faults, journal: CallJournal, notices: Notices
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    application = rude.application if rude else None
    kind = application.kind.name if application else None
    entities = tuple({operation.entity_id: None for operation in route.operations}) if route else ()

    async def handle(request: web.Request) -> web.StreamResponse:
        """Record the call in the journal, apply a matching fault, else answer as the application."""
        body = await request.read()
        now = time.time()
        received = ReceivedRequest(
            kind=kind,
            entities=entities,
            method=request.method,
            path=request.path,
            query=dict(request.query),
            headers=dict(request.headers),
            body=body,
            at=now,
        )
        journal.received(received)
        fault = faults.take(kind, request.path, entities, request.method)
        if fault is not None:
            await asyncio.sleep(fault.latency_ms / 1000)
        reply = _reply(rude, route, request=request, body=body, now=now, fault=fault)
        if application is not None:
            notices.announce(application)
        return await sending.send(request, reply, fault, journal, received)

    return handle


def _reply(
    rude: Rude | None,
    route: Route | None,
    request: web.Request,
    body: bytes,
    now: float,
    fault: Fault | None,
) -> Reply | FileReply:
    application = rude.application if rude else None
    if fault is not None and fault.replaces_answer:
        if fault.body is not None or application is None or (fault.status or 200) < 400:
            return fault.reply()
        return application.refused(Refusal(fault.status or 500, headers=fault.headers))
    if rude is None or route is None:
        return Reply({"error": f"no kind of the sandbox has {request.method} {request.path}"}, 404)
    try:
        members = parsed_body(body, request.headers.get("Content-Type", ""))
    except Refusal as refusal:
        return rude.application.refused(refusal)
    return rude.answer(route, _call(request, members, body, now))


def _call(request: web.Request, body: Mapping[str, object], content: bytes, now: float) -> Call:
    headers = {name.lower(): value for name, value in request.headers.items()}
    origin = f"{request.scheme}://{request.host}"
    is_form, is_json_body = request.content_type == FORM, not body or is_json(request.content_type)
    return Call(
        request.method,
        request.path,
        params=request.match_info,
        query=request.query,
        headers=headers,
        body=body,
        is_form=is_form,
        is_json=is_json_body,
        origin=origin,
        now=now,
        content=content,
    )
