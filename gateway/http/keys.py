"""What the application and its requests carry, by typed keys."""

import asyncio

from aiohttp import web

from gateway.http.admission import Limits
from gateway.identity.model import Caller
from gateway.services import Services
from gateway.telemetry.prometheus import Exposition

SERVICES = web.AppKey("services", Services)
#: set while the process drains: it takes no new traffic
IS_DRAINING = web.AppKey("is_draining", asyncio.Event)
#: the served OpenAPI document
OPENAPI = web.AppKey("openapi", bytes)
#: what is refused before anything is done for it
LIMITS = web.AppKey("limits", Limits)
#: what the process tells Prometheus
EXPOSITION = web.AppKey("exposition", Exposition)
CALLER = web.RequestKey("caller", Caller)
REQUEST_ID = web.RequestKey("request_id", str)
