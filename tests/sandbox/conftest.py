"""A sandbox on a free port, raw HTTP to it, and connectors of the engine pointed at it."""

from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
from aiohttp.test_utils import TestServer
from yarl import URL

from gateway.connectors.auth import StaticAuthorizer
from gateway.connectors.catalog import Catalog, load_catalog
from gateway.connectors.connector import Connector
from gateway.connectors.egress import EgressPolicy
from gateway.connectors.transport import Transport
from gateway.sandbox.app import create_sandbox

Connect = Callable[..., Connector]


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture
async def origin(catalog: Catalog) -> AsyncIterator[URL]:
    """The address of a sandbox of its own, whose jobs end soon."""
    async with TestServer(create_sandbox(catalog, seed=7, job_seconds=0.2)) as server:
        yield server.make_url("/").origin()


@pytest.fixture
async def http(origin: URL) -> AsyncIterator[aiohttp.ClientSession]:
    """Raw HTTP to the sandbox."""
    async with aiohttp.ClientSession(base_url=origin, auto_decompress=False) as session:
        yield session


@pytest.fixture
async def connect(catalog: Catalog, origin: URL) -> AsyncIterator[Connect]:
    """The engine's connector of a kind, as the gateway would hold it."""
    async with Transport(EgressPolicy.of([origin])) as transport:

        def connected(kind: str, token: str = "token", **environment: str) -> Connector:
            authorizer = StaticAuthorizer({"Authorization": f"Bearer {token}"})
            return Connector(catalog.kind(kind), environment, authorizer, transport, origin)

        yield connected
