"""Files over HTTP: streamed through as they come, whole or in ranges, never longer held than they are sent."""

from aiohttp import web

from gateway.downloads.replies import Wanted
from gateway.errors import GatewayError
from gateway.execution import Call
from gateway.http.handlers.outcomes import note
from gateway.http.keys import CALLER, SERVICES
from gateway.http.streaming import sent


async def download(request: web.Request, call: Call) -> web.StreamResponse:
    """The file of a download action: its status is known, and can still be an error, before the first byte goes out."""
    try:
        range_header = call.params.get("range_header")
        wanted = Wanted.of(
            request.headers,
            method=request.method,
            range_header=range_header if isinstance(range_header, str) else None,
        )
        async with request.app[SERVICES].execution.download(request[CALLER], call, wanted) as file:
            note(request, call, "succeeded")
            return await sent(request, file.status, file.headers, file)
    except GatewayError as error:
        note(request, call, error.code)
        raise
