"""The gateway's own endpoints: liveness, readiness, metrics and the OpenAPI document."""

from dataclasses import asdict

from aiohttp import web

from gateway.access.identity.model import Scope
from gateway.contract.gateway_state import AliveView, HealthCheckList, HealthCheckView, ReadinessView, RootView
from gateway.foundation.aio.clock import CLOCK
from gateway.run.monitoring.organization_health import RECENT, organization_checks
from gateway.run.monitoring.statistics import read_work_in_progress
from gateway.web.bodies import json_response
from gateway.web.keys import CALLER, EXPORTER, IS_DRAINING, READINESS, SERVICES
from gateway.web.openapi.served import OPENAPI
from gateway.web.pages.rendering import accepts_html
from gateway.web.pages.static_files import file_response
from gateway.web.route import Route

_ROOT = RootView(name="agent connector gateway", api="/api/v1", openapi="/openapi.json", docs="/docs")


async def root(request: web.Request) -> web.Response:
    """Redirects a browser to the console or the documentation; programs get the URLs of the API and its documents."""
    if accepts_html(request.headers.get("Accept", "")):
        pages = {resource.canonical for resource in request.app.router.resources()}
        location = "/console" if "/console" in pages else "/docs"
        return web.Response(status=303, headers={"Location": location, "Vary": "Accept"})
    return json_response(_ROOT, headers={"Vary": "Accept"})


async def healthz(request: web.Request) -> AliveView:
    """200 while the process runs; checks nothing else."""
    return AliveView("ok")


async def readyz(request: web.Request) -> web.Response:
    """Whether to send traffic to this process: PostgreSQL and Redis answer, and a worker sent a heartbeat. Otherwise,
    and while the process drains, 503 with `Retry-After`.
    """
    readiness = await request.app[READINESS]()
    checks = {**readiness.checks, "draining": request.app[IS_DRAINING].is_set()}
    is_ready = all(readiness.checks.values()) and not checks["draining"]
    view = ReadinessView("ready" if is_ready else "not_ready", checks, readiness.reason)
    return json_response(view, 200 if is_ready else 503, {} if is_ready else {"Retry-After": "2"})


async def metrics(request: web.Request) -> web.Response:
    """The metrics of this process, and the statistics shared by all processes, in the format of Prometheus."""
    return await request.app[EXPORTER].response()


async def openapi(request: web.Request) -> web.Response:
    """This document; compressed for clients that accept gzip."""
    return await file_response(request, await request.app[OPENAPI](), {"Cache-Control": "no-cache"})


async def list_health_checks(request: web.Request) -> HealthCheckList:
    """Whether PostgreSQL, Redis and workers answer, and the state of the organization's connectors, jobs and copies;
    each check is `passed`, `warning` or `failed`. Only `gateway doctor` checks settings and other organizations.
    """
    services, caller = request.app[SERVICES], request[CALLER]
    in_progress = await read_work_in_progress(services.database, caller.organization_id, caller.client.workspaces)
    ended = await services.jobs.access.ended(caller, CLOCK.now() - RECENT)
    connectors = await services.connectors.access.count(caller)
    checks = organization_checks((await request.app[READINESS]()).checks, in_progress, ended, connectors)
    return HealthCheckList([HealthCheckView(**asdict(check)) for check in checks])


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/health/checks",
        list_health_checks,
        "Check the gateway and the organization's work",
        "Operations",
        response=HealthCheckList,
        scope=Scope.ADMIN,
    ),
    Route(
        "GET",
        "/",
        root,
        "URLs of the API and its documents",
        "Operations",
        response=RootView,
        answers={
            200: "The URLs of the API and its documents",
            303: "Redirects a browser to the console or the documentation",
        },
        sends={200: ("Vary",), 303: ("Location", "Vary")},
        is_open=True,
    ),
    Route(
        "GET",
        "/healthz",
        healthz,
        "Whether the process runs",
        "Operations",
        response=AliveView,
        is_open=True,
        is_probe=True,
    ),
    Route(
        "GET",
        "/readyz",
        readyz,
        "Whether to send traffic here",
        "Operations",
        response={200: ReadinessView, 503: ReadinessView},
        answers={200: "Ready", 503: "Not ready"},
        is_open=True,
        is_probe=True,
        command="gateway status",
    ),
    Route(
        "GET",
        "/metrics",
        metrics,
        "Metrics for Prometheus",
        "Operations",
        media={200: ("text/plain",)},
        is_open=True,
        is_probe=True,
    ),
    Route(
        "GET",
        "/openapi.json",
        openapi,
        "This document",
        "Operations",
        answers={200: "The document", 304: "It has not changed"},
        media={200: ("application/json",)},
        reads=("If-None-Match",),
        sends={200: ("ETag", "Vary", "Cache-Control"), 304: ("ETag", "Vary", "Cache-Control")},
        is_open=True,
    ),
)
