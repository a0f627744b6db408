"""The front end: `create_app(settings)` creates the application."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from importlib.metadata import version
from math import inf
from typing import TYPE_CHECKING, cast

import msgspec
from aiohttp import HttpVersion11, web
from aiohttp.typedefs import Handler

from gateway.aio.remembered import Remembered
from gateway.http.api.mcp import set_up_mcp
from gateway.http.keys import (
    DOCS_SITE,
    EXPORTER,
    IS_DRAINING,
    IS_HTTPS,
    LIMITS,
    LINK_BASE,
    LOAD_SHEDDING,
    MAX_UPLOAD,
    OPENAPI,
    PAGES,
    READINESS,
    ROUTE_OF,
    SERVICES,
)
from gateway.http.pages.brand import Brand
from gateway.http.pages.rendering import Pages
from gateway.http.pages.static_files import StaticFile
from gateway.http.readiness import readiness
from gateway.http.routes import ROUTES, methods_of
from gateway.http.server.admission.load_shedding import Limits, LoadShedding
from gateway.http.server.middleware import request_middleware, set_common_headers
from gateway.monitoring.prometheus import PrometheusExporter, exposed
from gateway.services.front_end import Services, open_services
from gateway.services.stores import watch_restarts
from gateway.settings import Settings
from gateway.telemetry.tracing import configure_tracing

if TYPE_CHECKING:
    from gateway.http.docs_site.site import DocsSite


def create_app(settings: Settings) -> web.Application:
    """The application; it opens its services when it starts and closes them when it stops."""
    app = web.Application(middlewares=[request_middleware], client_max_size=settings.max_body_bytes)
    app[IS_DRAINING] = asyncio.Event()
    app[LIMITS] = limits = Limits(settings)
    app[LOAD_SHEDDING] = LoadShedding(limits, frozenset(route.path for route in ROUTES if route.is_probe))
    app[MAX_UPLOAD] = settings.max_upload_bytes
    app[LINK_BASE] = settings.link_base
    app[IS_HTTPS] = settings.base_url.startswith("https://")
    app[PAGES] = Pages(Brand.of(settings))
    app[ROUTE_OF] = {
        app.router.add_route(method, route.path, cast(Handler, route.handler), expect_handler=_ask_for_body): route
        for route in ROUTES
        for method in methods_of(route)
    }
    app.on_response_prepare.append(set_common_headers)

    async def services(app: web.Application) -> AsyncIterator[None]:
        if settings.tracing:
            configure_tracing("gateway")
        async with (
            open_services(settings) as opened,
            exposed(settings.metrics_bind, opened.database, opened.catalog),
        ):
            transport = opened.upstreams.transport
            with limits.watching(
                opened.loop_lag,
                lambda: opened.job_waiters.waiting + opened.feed.idle,
                lambda: transport.under_way,
            ):
                app[SERVICES] = opened
                watch_restarts(opened, limits.load.expect_restart)
                set_up_mcp(app, opened)
                app[READINESS] = readiness(opened)
                app[EXPORTER] = PrometheusExporter(opened.database, opened.catalog)
                app[OPENAPI] = Remembered(partial(asyncio.to_thread, _openapi, opened), inf)
                app[DOCS_SITE] = Remembered(partial(_docs_site, app), inf)
                yield

    app.cleanup_ctx.append(services)
    return app


async def _ask_for_body(request: web.Request) -> None:
    """Answer `Expect: 100-continue`; other expectations are ignored (RFC 9110 §10.1.1)."""
    if request.version >= HttpVersion11 and request.headers["Expect"].lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the head of the response has not been sent yet


def _openapi(services: Services) -> StaticFile:
    from gateway.http.openapi.document import openapi_document  # the import takes 0.1 s, and few processes need it

    document = openapi_document(services.catalog, version("agent-connector-gateway"), services.settings.base_url)
    return StaticFile.of("openapi.json", msgspec.json.encode(document)).packed()


async def _docs_site(app: web.Application) -> "DocsSite":
    from gateway.http.docs_site.site import DocsSite  # imports libraries that nothing else needs

    document = msgspec.json.decode((await app[OPENAPI]()).content)
    return await asyncio.to_thread(DocsSite, app[SERVICES].catalog, document)
