"""The baselines of execute: an application with prepared responses, and relays that only forward them.

python -m tests.benchmarks.relays aiohttp|starlette PORT APPLICATION_URL
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator

from aiohttp import ClientSession, TCPConnector, web

_TICKET = {
    "id": 1,
    "subject": "The printer on the second floor is on fire again",
    "description": "It started after lunch. " * 12,
    "status": "open",
    "priority": "urgent",
    "tags": ["printer", "fire"],
    "custom_fields": [{"id": number, "value": "value"} for number in range(4)],
    "created_at": "2026-01-01T00:00:00Z",
}
#: records in an answer of about 2 KB and of about 100 KB
SMALL, LARGE = 3, 160


def answer(records: int) -> bytes:
    tickets = [{**_TICKET, "id": number} for number in range(records)]
    return json.dumps({"tickets": tickets, "next_page": None, "previous_page": None, "count": records}).encode()


def aiohttp_relay(upstream: str) -> web.Application:
    """The least that an aiohttp server can do: read the body, ask, pass on the bytes."""
    session = web.AppKey("session", ClientSession)

    async def relay(request: web.Request) -> web.Response:
        params = json.loads(await request.read())["params"]
        async with request.app[session].get(
            f"{upstream}/api/v2/tickets.json?per_page={params['per_page']}"
        ) as response:
            return web.Response(body=await response.read(), content_type="application/json")

    async def opened(app: web.Application) -> AsyncIterator[None]:
        async with ClientSession(connector=TCPConnector(limit=0)) as app[session]:
            yield

    app = web.Application()
    app.cleanup_ctx.append(opened)
    app.router.add_post("/", relay)
    return app


def starlette_relay(upstream: str, port: int) -> None:
    """The same with starlette, httpx and uvicorn."""
    import httpx
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    client = httpx.AsyncClient(limits=httpx.Limits(max_connections=200))

    async def relay(request: Request) -> Response:
        params = json.loads(await request.body())["params"]
        response = await client.get(f"{upstream}/api/v2/tickets.json?per_page={params['per_page']}")
        return Response(response.content, media_type="application/json")

    app = Starlette(routes=[Route("/", relay, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


async def _serve(app: web.Application, port: int) -> None:
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=4096).start()
    await asyncio.Event().wait()


def main(what: str, port: str, upstream: str) -> None:
    if what == "starlette":
        starlette_relay(upstream, int(port))
        return
    import uvloop

    uvloop.run(_serve(aiohttp_relay(upstream), int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
