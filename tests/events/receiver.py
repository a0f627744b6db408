"""A receiver of webhooks that verifies every delivery with two libraries, and answers as it is told."""

import inspect
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from standardwebhooks.webhooks import Webhook
from svix.webhooks import Webhook as SvixWebhook

from tests.harness.serving import served

#: the status, or a response, for a delivery; soon or after a while
Answer = Callable[[dict[str, Any]], int | web.Response | Awaitable[web.Response]]


class Receiver:
    """What arrived, by path, in its order."""

    def __init__(self) -> None:
        self.url = ""
        #: path → secret
        self.secrets: dict[str, str] = {}
        self.answers: dict[str, Answer] = {}
        self.received: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        #: when each of them arrived, in seconds since 1970
        self.arrived: defaultdict[str, list[float]] = defaultdict(list)
        self.ids: defaultdict[str, list[str]] = defaultdict(list)
        self.headers: defaultdict[str, list[dict[str, str]]] = defaultdict(list)

    async def handle(self, request: web.Request) -> web.Response:
        body, headers = await request.read(), dict(request.headers)
        if secret := self.secrets.get(request.path):
            Webhook(secret).verify(body, headers)
            SvixWebhook(secret).verify(body, headers)
        event = msgspec.json.decode(body)
        self.headers[request.path].append(headers)
        answered = self.answers.get(request.path, lambda _: 204)(event)
        if inspect.isawaitable(answered):
            answered = await answered
        response = answered if isinstance(answered, web.Response) else web.Response(status=answered, text="as told")
        self.ids[request.path].append(headers["webhook-id"])
        if 200 <= response.status < 300:
            self.received[request.path].append(event)
            self.arrived[request.path].append(time.time())
        return response


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver on a port of its own for as long as the block lasts."""
    receiver, app = Receiver(), web.Application()
    app.router.add_post("/{name:.*}", receiver.handle)
    async with served(app) as receiver.url:
        yield receiver
