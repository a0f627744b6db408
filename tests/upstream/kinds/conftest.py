"""What the tests of every kind share: a stand-in for the application, and connectors that call it."""

import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
import pytest
from aioresponses import CallbackResult
from multidict import CIMultiDict
from yarl import URL

from gateway.kinds.catalog import Kind
from gateway.kinds.loading import load_kind, shipped_specs
from gateway.upstream.auth import StaticAuthorizer, checked_credentials, headers_for
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.requests import checked_environment
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.harness.applications import Applications, Response

Connect = Callable[..., UpstreamConnector]
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class Received:
    """A request as it came over the wire."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: Any


class UpstreamStub(Applications):
    """An application that notes what it is asked and answers from a queue."""

    origin = URL("https://application.example")

    def __init__(self) -> None:
        super().__init__()
        self.received: list[Received] = []
        self._answers: deque[CallbackResult] = deque()

    def start(self) -> None:
        super().start()
        for method in METHODS:
            self.add(re.compile(".*"), method, callback=lambda _, **__: self._answers.popleft(), repeat=True)

    def answers(self, body: Any = None, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Queue one answer; `bytes` are sent as they are, anything else as JSON."""
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self._answers.append(CallbackResult(status=status, body=raw, headers=headers, response_class=Response))

    async def _request_mock(self, session: Any, method: str, url: Any, *arguments: Any, **options: Any) -> Any:
        raw, asked = options.get("data"), URL(url)
        assert asked.origin() == self.origin, f"{asked} is another application's"
        body = msgspec.json.decode(raw) if raw else None
        self.received.append(Received(method, asked.relative(), CIMultiDict(options["headers"]), body))
        return await super()._request_mock(session, method, url, *arguments, **options)


@cache
def kind_named(name: str) -> Kind:
    return load_kind(shipped_specs() / name)


@pytest.fixture
def upstream() -> Iterator[UpstreamStub]:
    with UpstreamStub() as stub:
        yield stub


@pytest.fixture
async def connect(upstream: UpstreamStub) -> AsyncIterator[Connect]:
    """Connectors whose every request goes to the stand-in."""
    async with Transport(EgressPolicy.of([upstream.origin])) as transport:

        def connected(kind: str, credentials: Mapping[str, str], **environment: str) -> UpstreamConnector:
            spec = kind_named(kind).spec
            method, fields = checked_credentials(spec, credentials)
            authorizer = StaticAuthorizer(headers_for(spec.authentication[method], fields))
            variables = checked_environment(spec, environment)
            upstreams = Upstreams(transport, {kind: upstream.origin})
            return upstreams.connector(kind_named(kind), variables, authorizer, RateScope(id=f"{kind}:c-1", kind=kind))

        yield connected


@pytest.fixture
def offline() -> Connect:
    """Connectors that show what they would send."""

    def unsent(kind: str, **environment: str) -> UpstreamConnector:
        variables = checked_environment(kind_named(kind).spec, environment)
        scope = RateScope(id=f"{kind}:c-1", kind=kind)
        return Upstreams(Transport()).connector(kind_named(kind), variables, StaticAuthorizer({}), scope)

    return unsent
