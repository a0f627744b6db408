"""The front end: `create_app(settings)` is the only way in."""

import asyncio
from collections.abc import AsyncIterator
from importlib.metadata import version

import msgspec
from aiohttp import web

from gateway.http.admission import Limits
from gateway.http.handlers.mcp import open_servers
from gateway.http.keys import EXPORTER, IS_DRAINING, LIMITS, OPENAPI, PAGES, READINESS, ROUTE_OF, SERVICES
from gateway.http.middleware import request_middleware, set_common_headers
from gateway.http.openapi import openapi_document
from gateway.http.readiness import readiness
from gateway.http.routes import ROUTES
from gateway.pages.brand import Brand
from gateway.pages.rendering import Pages
from gateway.services import open_services
from gateway.settings import Settings
from gateway.telemetry.prometheus import PrometheusExporter, exposed
from gateway.telemetry.tracing import configure_tracing


def create_app(settings: Settings) -> web.Application:
    """The application; its services open when it starts and close when it ends."""
    app = web.Application(middlewares=[request_middleware], client_max_size=settings.max_body_bytes)
    app[IS_DRAINING] = asyncio.Event()
    app[LIMITS] = Limits(settings)
    app[PAGES] = Pages(Brand.of(settings))
    app[ROUTE_OF] = {
        app.router.add_route(method, route.path, route.handler): route
        for route in ROUTES
        for method in (route.method, *(["HEAD"] if route.has_head else []))
    }
    app.on_response_prepare.append(set_common_headers)

    async def services(app: web.Application) -> AsyncIterator[None]:
        if settings.tracing:
            configure_tracing("gateway")
        async with (
            open_services(settings) as opened,
            exposed(settings.metrics_bind, opened.database),
        ):
            with app[LIMITS].watching(opened.lag, lambda: opened.watch.waiting):
                app[SERVICES] = opened
                open_servers(app, opened)
                app[READINESS] = readiness(opened)
                app[EXPORTER] = PrometheusExporter(opened.database)
                document = openapi_document(opened.catalog, version("agent-connector-gateway"), settings.base_url)
                app[OPENAPI] = msgspec.json.encode(document)
                yield

    app.cleanup_ctx.append(services)
    return app
