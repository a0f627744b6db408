"""A server to misbehave on demand, and the transport that may call it."""

from collections.abc import AsyncIterator

import pytest

from gateway.upstream.egress import EgressPolicy
from gateway.upstream.transport import Transport
from tests.upstream.wire import Wire


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    async with Wire().listening() as wire:
        yield wire


@pytest.fixture
async def transport(wire: Wire) -> AsyncIterator[Transport]:
    async with Transport(EgressPolicy.of([wire.origin])) as transport:
        yield transport
