"""A sandbox on a free port, HTTP clients for it, and connectors of the engine that use it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp.test_utils import TestServer
from yarl import URL

from gateway.kinds.catalog import Catalog
from gateway.kinds.loading import load_kind
from gateway.sandbox.app import create_sandbox
from gateway.sandbox.kinds import APPLICATIONS
from gateway.upstream.auth import StaticAuthorizer, headers_for
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.harness.catalog import example_environment, shipped_catalog

Connect = Callable[..., UpstreamConnector]


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return shipped_catalog()


@pytest.fixture(scope="session")
async def shared(catalog: Catalog) -> AsyncIterator[URL]:
    """The URL of one sandbox for all tests, because its start takes longer than most tests; its jobs end soon."""
    async with TestServer(create_sandbox(catalog, seed=7, job_seconds=0.2)) as server:
        yield server.make_url("/").origin()


@pytest.fixture
async def origin(shared: URL) -> URL:
    """The URL of a sandbox in its initial state."""
    async with aiohttp.ClientSession(base_url=shared) as http:
        await reset(http)
    return shared


async def reset(http: aiohttp.ClientSession) -> None:
    """Return the sandbox to its initial state."""
    async with http.delete("/_sandbox/state") as answer:
        assert answer.status == 204


@pytest.fixture
async def http(origin: URL) -> AsyncIterator[aiohttp.ClientSession]:
    """An HTTP client for the sandbox that does not decompress."""
    async with aiohttp.ClientSession(base_url=origin, auto_decompress=False) as session:
        yield session


@pytest.fixture
async def slow_http(catalog: Catalog) -> AsyncIterator[aiohttp.ClientSession]:
    """An HTTP client for a sandbox whose jobs run long enough to be observed."""
    async with (
        TestServer(create_sandbox(catalog, job_seconds=1.5)) as server,
        aiohttp.ClientSession(base_url=server.make_url("/").origin()) as session,
    ):
        yield session


@pytest.fixture
async def fault(http: aiohttp.ClientSession) -> Callable[..., object]:
    """Add a fault to the sandbox: `await fault(status=503)`."""

    async def ask(**wanted: object) -> None:
        async with http.post("/_sandbox/faults", json=wanted) as answer:
            assert answer.status == 201, await answer.text()

    return ask


@pytest.fixture
async def connect(catalog: Catalog, origin: URL) -> AsyncIterator[Connect]:
    """`connect(kind, token)`: the engine's connector of a kind."""
    async with Transport(EgressPolicy.of([origin])) as transport:

        def connected(kind: str, token: str = "token") -> UpstreamConnector:
            spec = catalog.kind(kind).spec
            methods = sorted(spec.authentication.values(), key=lambda method: method.scheme != "bearer")
            authorizer = StaticAuthorizer(headers_for(methods[0], dict.fromkeys(methods[0].credentials, token)))
            # A kind without own behaviour may share paths with another one; the others use paths at the root.
            address = origin if kind in APPLICATIONS else origin / "_kinds" / kind
            upstreams, scope = Upstreams(transport, {kind: address}), RateScope(id=f"{kind}:c-1", kind=kind)
            return upstreams.connector(catalog.kind(kind), example_environment(spec), authorizer, scope)

        yield connected


GADGETS = """
description: Things.
fields: {id: integer, name: string, created_at: string}
actions:
  list:
    request: GET /gadgets
    effect: read
    description: All things.
    records: gadgets
    paging: next
    params: {after: {type: string}, size: {type: integer, maximum: 50}}
  get:
    request: GET /gadgets/{gadget_id}
    effect: read
    description: One thing.
    record: gadget
    params: {gadget_id: {type: integer}}
    required: [gadget_id]
  create:
    request: POST /gadgets
    effect: write
    description: A new thing.
    record: gadget
    params: {gadget: {type: object, properties: {name: {type: string}}}}
    required: [gadget]
"""
GADGET_MAKER = """
kind: gadget-maker
title: Gadgets
description: Things.
definition_id: 00000000-0000-4000-8000-000000000001
server: https://gadgets.example.com/api
hosts: [gadgets.example.com]
authentication:
  token:
    title: Token
    scheme: bearer
    token: token
    credentials: {token: {description: a token, required: true, secret: true}}
failure: {code: [error.code], message: [error.message]}
paging:
  next: {style: cursor, param: after, size: size, next: after, meta: {after: meta.after}}
rate_limit: {requests: 100, seconds: 60}
health_check: gadgets.list
"""


@pytest.fixture
async def gadgets(tmp_path: Path) -> AsyncIterator[UpstreamConnector]:
    """A connector of a kind without own behaviour in the sandbox."""
    (tmp_path / "connector.yaml").write_text(GADGET_MAKER)
    (tmp_path / "gadgets.yaml").write_text(GADGETS)
    catalog = Catalog([load_kind(tmp_path)])
    async with TestServer(create_sandbox(catalog)) as server:
        origin = server.make_url("/").origin()
        async with Transport(EgressPolicy.of([origin])) as transport:
            authorizer = StaticAuthorizer({"Authorization": "Bearer token"})
            upstreams, scope = (
                Upstreams(transport, {"gadget-maker": origin}),
                RateScope(id="gadgets", kind="gadget-maker"),
            )
            yield upstreams.connector(catalog.kind("gadget-maker"), {}, authorizer, scope)
