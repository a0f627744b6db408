"""Typed keys of the application and of its requests."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from aiohttp import web

from gateway.aio.remembered import Remembered
from gateway.audit.log import Entry
from gateway.http.pages.rendering import Pages
from gateway.http.pages.static_files import StaticFile
from gateway.http.readiness import Readiness
from gateway.http.route import Route
from gateway.http.server.admission.load_shedding import Limits, LoadShedding, Slot
from gateway.identity.model import Caller
from gateway.monitoring.prometheus import PrometheusExporter
from gateway.services.front_end import Services

if TYPE_CHECKING:
    from gateway.http.docs_site.site import DocsSite

SERVICES = web.AppKey("services", Services)
#: set while the process drains: it is not ready for new traffic
IS_DRAINING = web.AppKey("is_draining", asyncio.Event)
#: the served OpenAPI document, generated at the first request for it
OPENAPI = web.AppKey("openapi", Remembered[StaticFile])
#: the documentation site, generated at the first request for it
DOCS_SITE: web.AppKey[Remembered["DocsSite"]] = web.AppKey("docs_site", Remembered)
#: the limits of requests
LIMITS = web.AppKey("limits", Limits)
#: refuses requests in an overload
LOAD_SHEDDING = web.AppKey("load_shedding", LoadShedding)
#: the process's metrics for Prometheus
EXPORTER = web.AppKey("exporter", PrometheusExporter)
#: whether PostgreSQL, Redis and a worker are available
READINESS = web.AppKey("readiness", Remembered[Readiness])
#: the base of links; empty if the gateway's URL is not known
LINK_BASE = web.AppKey("link_base", str)
#: whether callers reach the front end by https
IS_HTTPS = web.AppKey("is_https", bool)
#: the routes of the contract, by the route of aiohttp's router
ROUTE_OF = web.AppKey("route_of", Mapping[web.AbstractRoute, Route])
#: templates and style of the pages for people
PAGES = web.AppKey("pages", Pages)
#: maximum bytes of an uploaded file
MAX_UPLOAD = web.AppKey("max_upload", int)
CALLER = web.RequestKey("caller", Caller)
#: the cookie of who is signed in to the console
SESSION = web.RequestKey("session", str)
REQUEST_ID = web.RequestKey("request_id", str)
#: set for requests that change nothing: their handlers are canceled when the caller disconnects
ENDS_WITH_CALLER = web.RequestKey("ends_with_caller", bool)
#: the memory that the request's body takes
BODY_MEMORY = web.RequestKey("body_memory", Slot)
#: the rate-limit headers of the caller, if it has limits
RATE_HEADERS: web.RequestKey[Mapping[str, str]] = web.RequestKey("rate_headers", Mapping)
#: set for requests whose route has an audit name
AUDIT = web.RequestKey("audit", Entry)
#: the streamed response, once its headers are being sent
STREAM = web.RequestKey("stream", web.StreamResponse)
