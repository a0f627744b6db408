from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestServer

from gateway.client import Gateway, RetryPolicy
from tests.client.stub import Stub

#: as many retries as the default, with shorter pauses
QUICK = RetryPolicy(first_pause=0.001)


@pytest.fixture
def stub() -> Stub:
    return Stub()


@pytest.fixture
async def server(stub: Stub) -> AsyncIterator[TestServer]:
    async with stub.serving() as server:
        yield server


@pytest.fixture
async def gateway(server: TestServer) -> AsyncIterator[Gateway]:
    async with Gateway(str(server.make_url("")), "id", "s3cret", retry_policy=QUICK) as gateway:
        yield gateway
