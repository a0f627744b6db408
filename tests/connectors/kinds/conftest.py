"""What the tests of every kind share: a stand-in for the application, and connectors that call it."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from gateway.connectors.auth import StaticAuthorizer, checked_credentials, headers_for
from gateway.connectors.connector import Connector
from gateway.connectors.egress import EgressPolicy
from gateway.connectors.rate_limits import RateScope
from gateway.connectors.requests import checked_environment
from gateway.connectors.transport import Transport
from gateway.connectors.upstreams import Upstreams
from gateway.kinds.catalog import Kind, load_kind, shipped_specs

Connect = Callable[..., Connector]


@dataclass(frozen=True)
class Received:
    """A request as it came over the wire."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: Any


class UpstreamStub:
    """An application that notes what it is asked and answers from a queue."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self._answers: deque[web.Response] = deque()
        self.origin = URL()

    def answers(self, body: Any = None, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Queue one answer; `bytes` are sent as they are, anything else as JSON."""
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self._answers.append(web.Response(status=status, body=raw, headers=headers))

    async def handle(self, request: web.Request) -> web.Response:
        raw = await request.read()
        body = msgspec.json.decode(raw) if raw else None
        self.received.append(Received(request.method, request.rel_url, request.headers, body))
        return self._answers.popleft()


@cache
def kind_named(name: str) -> Kind:
    return load_kind(shipped_specs() / name)


@pytest.fixture
async def upstream() -> AsyncIterator[UpstreamStub]:
    stub = UpstreamStub()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", stub.handle)
    async with TestServer(application) as server:
        stub.origin = server.make_url("/").origin()
        yield stub


@pytest.fixture
async def connect(upstream: UpstreamStub) -> AsyncIterator[Connect]:
    """Connectors whose every request goes to the stand-in."""
    async with Transport(EgressPolicy.of([upstream.origin])) as transport:

        def connected(kind: str, credentials: Mapping[str, str], **environment: str) -> Connector:
            spec = kind_named(kind).spec
            method, fields = checked_credentials(spec, credentials)
            authorizer = StaticAuthorizer(headers_for(spec.authentication[method], fields))
            variables = checked_environment(spec, environment)
            upstreams = Upstreams(transport, {kind: upstream.origin})
            return upstreams.connector(kind_named(kind), variables, authorizer, RateScope(f"{kind}:c-1", kind))

        yield connected


@pytest.fixture
def offline() -> Connect:
    """Connectors that show what they would send."""

    def unsent(kind: str, **environment: str) -> Connector:
        variables = checked_environment(kind_named(kind).spec, environment)
        scope = RateScope(f"{kind}:c-1", kind)
        return Upstreams(Transport()).connector(kind_named(kind), variables, StaticAuthorizer({}), scope)

    return unsent
