"""A load balancer in front of several front ends: each request goes to the next one."""

import itertools
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from tests.harness.serving import served

#: headers of one connection (RFC 9110, 7.6.1), and those that the other connection's framing sets anew
_OWN_TO_A_CONNECTION = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})


class RoundRobin:
    """Relays requests; skips a front end that refuses connections, and answers 502 for one that dies."""

    def __init__(self, targets: Sequence[str], session: aiohttp.ClientSession) -> None:
        self._turns = itertools.cycle(targets)
        self._targets = targets
        self._session = session
        #: front end → the number of requests that it has answered
        self.answered: Counter[str] = Counter()
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        for target in itertools.islice(self._turns, len(self._targets)):
            try:
                return await self._passed_on(request, body, target)
            except aiohttp.ClientConnectorError:
                continue
            except aiohttp.ClientError as error:
                return web.Response(status=502, text=str(error))
        return web.Response(status=502, text="no front end takes a connection")

    async def _passed_on(self, request: web.Request, body: bytes, target: str) -> web.StreamResponse:
        headers = [(name, value) for name, value in request.headers.items() if _is_end_to_end(name)]
        async with self._session.request(
            request.method, target + request.raw_path, headers=headers, data=body or None, allow_redirects=False
        ) as answer:
            response = web.StreamResponse(status=answer.status)
            response.headers.extend((name, value) for name, value in answer.headers.items() if _is_end_to_end(name))
            # Nothing is sent before the first bytes have arrived, so that the death of a front end can be reported.
            first = await answer.content.readany()
            await response.prepare(request)
            await response.write(first)
            try:
                async for part in answer.content.iter_any():
                    await response.write(part)
            except aiohttp.ClientError:
                # A truncated response must not look complete.
                assert request.transport is not None
                request.transport.abort()
                return response
            await response.write_eof()
            self.answered[target] += 1
            return response


def _is_end_to_end(name: str) -> bool:
    return name.lower() not in _OWN_TO_A_CONNECTION


@asynccontextmanager
async def round_robin(targets: Sequence[str]) -> AsyncIterator[RoundRobin]:
    """A load balancer within the block; it waits at most a minute for a response."""
    options = {"timeout": aiohttp.ClientTimeout(total=None, sock_read=60), "auto_decompress": False}
    async with aiohttp.ClientSession(**options) as session:
        balancer = RoundRobin(targets, session)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", balancer.handle)
        async with served(app, handler_cancellation=True) as balancer.url:
            yield balancer
