"""Files: streamed through as they come, whole or in ranges."""

from aiohttp import web

from gateway.errors import UnknownAction
from gateway.execution import Call


async def download(request: web.Request, call: Call) -> web.StreamResponse:
    """Stream the file of a download action."""
    raise UnknownAction(f"{call.entity}.download is not there yet")
