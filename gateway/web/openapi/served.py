"""The OpenAPI document as the process serves it."""

from aiohttp import web

from gateway.foundation.aio.remembered import Remembered
from gateway.web.pages.static_files import StaticFile

#: generated at the first request for it
OPENAPI = web.AppKey("openapi", Remembered[StaticFile])
