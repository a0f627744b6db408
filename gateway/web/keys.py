"""Typed keys of the application and of its requests."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from aiohttp import web

from gateway.access.audit.entry import Entry
from gateway.access.identity.model import Caller
from gateway.access.services import AccessServices
from gateway.foundation.aio.remembered import Remembered
from gateway.run.monitoring.prometheus import PrometheusExporter
from gateway.run.services import Services
from gateway.web.readiness import Readiness
from gateway.web.route import Route

if TYPE_CHECKING:
    from gateway.kinds.find.index import OperationIndex

SERVICES = web.AppKey("services", Services)
#: who sends requests, and what they may do
ACCESS = web.AppKey("access", AccessServices)
#: the origins of pages that may call /mcp and the endpoints of OAuth
ORIGINS = web.AppKey("mcp_origins", frozenset[str])
#: finds operations by words; created for the first search
INDEX: web.AppKey[Remembered["OperationIndex"]] = web.AppKey("index", Remembered)
#: set while the process drains: it is not ready for new traffic
IS_DRAINING = web.AppKey("is_draining", asyncio.Event)
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
#: maximum bytes of an uploaded file
MAX_UPLOAD = web.AppKey("max_upload", int)
CALLER = web.RequestKey("caller", Caller)
#: the cookie of who is signed in to the console
SESSION = web.RequestKey("session", str)
REQUEST_ID = web.RequestKey("request_id", str)
#: set for requests that change nothing: their handlers are canceled when the caller disconnects
ENDS_WITH_CALLER = web.RequestKey("ends_with_caller", bool)
#: set while a file is sent, whose reader may pause for minutes
MAY_PAUSE = web.RequestKey("may_pause", bool)
#: set for calls whose answer may be refused after they were done, because they changed nothing
IS_REPEATABLE = web.RequestKey("is_repeatable", bool)
#: the rate-limit headers of the caller, if it has limits
RATE_HEADERS: web.RequestKey[Mapping[str, str]] = web.RequestKey("rate_headers", Mapping)
#: set for requests whose route has an audit name
AUDIT = web.RequestKey("audit", Entry)
#: the streamed response, once its headers are being sent
STREAM = web.RequestKey("stream", web.StreamResponse)
