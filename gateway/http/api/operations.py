"""The gateway about itself: liveness, readiness, what it counts, its OpenAPI document."""

from dataclasses import asdict

from aiohttp import web

from gateway.http.keys import CALLER, EXPORTER, IS_DRAINING, OPENAPI, READINESS, SERVICES
from gateway.http.responses import json_response
from gateway.monitoring.organization_health import organization_checks
from gateway.monitoring.statistics import read_in_hand

_SIGNPOST = {"name": "agent connector gateway", "api": "/api/v1", "openapi": "/openapi.json", "docs": "/docs"}


async def root(request: web.Request) -> web.Response:
    """GET /: a browser is led to the pages for people, a program is told where the API and its documents are."""
    if "text/html" in request.headers.get("Accept", ""):
        pages = {resource.canonical for resource in request.app.router.resources()}
        location = "/console" if "/console" in pages else "/docs"
        return web.Response(status=303, headers={"Location": location, "Vary": "Accept"})
    return json_response(_SIGNPOST, headers={"Vary": "Accept"})


async def healthz(request: web.Request) -> web.Response:
    """GET /healthz: the process runs."""
    return json_response({"status": "ok"})


async def readyz(request: web.Request) -> web.Response:
    """GET /readyz: whether to send traffic here. Redis away does not stop the work; it is told all the same."""
    readiness = await request.app[READINESS]()
    checks = {**readiness.checks, "draining": request.app[IS_DRAINING].is_set()}
    is_ready = all(readiness.checks.values()) and not checks["draining"]
    document = {"status": "ready" if is_ready else "not_ready", "checks": checks}
    if readiness.reason is not None:
        document["reason"] = readiness.reason
    return json_response(document, 200 if is_ready else 503, {} if is_ready else {"Retry-After": "2"})


async def metrics(request: web.Request) -> web.Response:
    """GET /metrics: what this process counts, and the statistics that all share, as Prometheus reads them."""
    return await request.app[EXPORTER].response()


async def openapi(request: web.Request) -> web.Response:
    """GET /openapi.json: this contract, as OpenAPI 3.1."""
    return web.Response(body=await request.app[OPENAPI](), content_type="application/json")


async def list_health_checks(request: web.Request) -> web.Response:
    """GET /api/v1/health/checks: what keeps the gateway from working for the caller's organization."""
    in_hand = await read_in_hand(request.app[SERVICES].database, request[CALLER].organization_id)
    checks = organization_checks((await request.app[READINESS]()).checks, in_hand)
    return json_response({"data": [asdict(check) for check in checks]})
