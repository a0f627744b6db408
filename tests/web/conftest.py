"""Fixtures: a front end in the test process."""

import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
from redis.asyncio import Redis

from gateway.foundation.aio.loops import every, running
from tests.events.receiver import Receiver, receiving
from tests.harness.caller import Api, ConnectorApi
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.openid_provider import OpenIdProvider, Visitor, added


@pytest.fixture(scope="module")
async def front(tmp_path_factory: pytest.TempPathFactory, database_url: str, redis_url: str) -> AsyncIterator[FrontEnd]:
    folder: Path = tmp_path_factory.mktemp("front-end")
    async with front_end(folder, database_url, redis_url) as opened:
        yield opened


@pytest.fixture(scope="module")
async def receiver() -> AsyncIterator[Receiver]:
    """The receiver of the module's webhooks."""
    async with receiving() as opened:
        yield opened


@pytest.fixture
async def deliveries(front: FrontEnd) -> AsyncIterator[None]:
    """Delivers webhooks as a worker does, during the test."""
    deliverer = front.services.events.deliverer
    async with running(every(0, deliverer.deliver, name="deliveries")):
        yield
    await deliverer.close()


@pytest.fixture(autouse=True)
async def nobody_was_wrong_before(redis_url: str) -> None:
    """Reset the count of wrong secrets by address, because all tests share one address."""
    async with Redis.from_url(redis_url) as redis:
        if counted := await redis.keys("gateway:attempts:*"):
            await redis.delete(*counted)


@pytest.fixture
async def api(front: FrontEnd) -> AsyncIterator[Api]:
    """A caller with all scopes in an organization of its own."""
    async with front.api() as opened:
        yield opened


@pytest.fixture
async def support_desk(api: Api) -> ConnectorApi:
    return await api.connector()


@pytest.fixture
async def login(provider: OpenIdProvider, front: FrontEnd) -> str:
    """The login of a person who was added, as the module's provider returns it."""
    return await added(provider, front)


@pytest.fixture
async def visitor(front: FrontEnd) -> AsyncIterator[Visitor]:
    """A browser with its own cookies."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield Visitor(front, session)


@pytest.fixture
def without_collections() -> Iterator[None]:
    """A collection of garbage walks through the objects of all tests, and would be counted for what is measured."""
    gc.disable()
    yield
    gc.enable()
