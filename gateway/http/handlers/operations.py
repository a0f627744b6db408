"""The gateway about itself: liveness, readiness, its OpenAPI document and a page that shows it."""

import asyncio
from importlib.resources import files

from aiohttp import web

from gateway.errors import Unavailable
from gateway.http.keys import EXPOSITION, IS_DRAINING, OPENAPI, SERVICES
from gateway.http.responses import json_response
from gateway.services import Services

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
    services = request.app[SERVICES]
    trouble, redis, worker = await asyncio.gather(
        services.database.trouble(), services.wakeup.is_there(), _is_worker_there(services)
    )
    database = trouble is None
    is_draining = request.app[IS_DRAINING].is_set()
    is_ready = database and redis and worker and not is_draining
    document = {
        "status": "ready" if is_ready else "not_ready",
        "checks": {"postgres": database, "redis": redis, "worker": worker, "draining": is_draining},
    }
    if trouble is not None:
        document["reason"] = f"PostgreSQL: {trouble}"
    return json_response(document, 200 if is_ready else 503, {} if is_ready else {"Retry-After": "2"})


async def _is_worker_there(services: Services) -> bool:
    try:
        return await services.maintenance.is_a_worker_there()
    except Unavailable:
        return False


async def metrics(request: web.Request) -> web.Response:
    """GET /metrics: what this process counts, and the statistics that all share, as Prometheus reads them."""
    return await request.app[EXPOSITION].response()


async def openapi(request: web.Request) -> web.Response:
    """GET /openapi.json: this contract, as OpenAPI 3.1."""
    return web.Response(body=request.app[OPENAPI], content_type="application/json")


async def docs(request: web.Request) -> web.Response:
    """GET /docs: the contract as a page, with nothing loaded from elsewhere."""
    page = (files("gateway.http") / "docs.html").read_text("utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
    return web.Response(text=page, content_type="text/html", headers={"Content-Security-Policy": policy})
