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

from gateway.foundation.aio.remembered import Remembered
from gateway.foundation.telemetry.tracing import configure_tracing
from gateway.run.monitoring.prometheus import PrometheusExporter, exposed
from gateway.run.services import Services, open_front_end, watch_restarts
from gateway.settings import Settings
from gateway.web.admission.load_shedding import LIMITS, LOAD_SHEDDING, Limits, LoadShedding
from gateway.web.api.mcp import set_up_mcp
from gateway.web.docs_site.served import DOCS_SITE
from gateway.web.keys import (
    ACCESS,
    EXPORTER,
    INDEX,
    IS_DRAINING,
    IS_HTTPS,
    LINK_BASE,
    MAX_UPLOAD,
    READINESS,
    ROUTE_OF,
    SERVICES,
)
from gateway.web.openapi.served import OPENAPI
from gateway.web.pages.brand import Brand
from gateway.web.pages.rendering import PAGES, Pages
from gateway.web.pages.static_files import StaticFile
from gateway.web.readiness import readiness
from gateway.web.routes import ROUTES, methods_of
from gateway.web.server.middleware import request_middleware, set_common_headers

if TYPE_CHECKING:
    from gateway.web.docs_site.site import DocsSite


def create_app(settings: Settings) -> web.Application:
    """The application; it opens its services when it starts and closes them when it stops."""
    app = web.Application(middlewares=[request_middleware], client_max_size=settings.max_body_bytes)
    app[IS_DRAINING] = asyncio.Event()
    app[LIMITS] = limits = Limits(settings)
    app[PAGES] = Pages(Brand.of(settings))
    probes = frozenset(route.path for route in ROUTES if route.is_probe)
    app[LOAD_SHEDDING] = LoadShedding(limits, probes, app[PAGES])
    app[MAX_UPLOAD] = settings.max_upload_bytes
    app[LINK_BASE] = settings.link_base
    app[IS_HTTPS] = settings.base_url.startswith("https://")
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
            open_front_end(settings) as front_end,
            exposed(settings.metrics_bind, front_end.services.database, front_end.services.catalog),
        ):
            opened = front_end.services
            waits = opened.jobs.waiters.waits, opened.events.feed.waits
            transport = opened.connectors.upstreams.transport
            with limits.watching(
                opened.process.loop_lag,
                lambda: sum(each.of_requests for each in waits),
                lambda: transport.under_way,
            ):
                app[SERVICES], app[ACCESS], app[INDEX] = opened, front_end.access, front_end.index
                watch_restarts(opened, limits.load.expect_restart)
                set_up_mcp(app)

                def version() -> int:
                    return opened.catalog.version

                app[READINESS] = readiness(opened)
                app[EXPORTER] = PrometheusExporter(opened.database, opened.catalog)
                app[OPENAPI] = Remembered(partial(asyncio.to_thread, _openapi, opened), inf, version)
                app[DOCS_SITE] = Remembered(partial(_docs_site, app), inf, version)
                yield

    app.cleanup_ctx.append(services)
    return app


async def _ask_for_body(request: web.Request) -> None:
    """Answer `Expect: 100-continue`; other expectations are ignored (RFC 9110 §10.1.1)."""
    if request.version >= HttpVersion11 and request.headers["Expect"].lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the head of the response has not been sent yet


def _openapi(services: Services) -> StaticFile:
    from gateway.web.openapi.document import openapi_document  # the import takes 0.1 s, and few processes need it

    document = openapi_document(
        ROUTES, services.catalog, version("agent-connector-gateway"), services.settings.base_url
    )
    return StaticFile.of("openapi.json", msgspec.json.encode(document)).packed()


async def _docs_site(app: web.Application) -> "DocsSite":
    from gateway.web.docs_site.site import DocsSite  # imports libraries that nothing else needs

    document = msgspec.json.decode((await app[OPENAPI]()).content)
    return await asyncio.to_thread(DocsSite, app[SERVICES].catalog, document)
