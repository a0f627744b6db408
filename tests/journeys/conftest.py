"""What journeys begin with: a caller, a connector, a caller of another organization."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from tests.running import Api, ConnectorApi, Running


@pytest.fixture
async def api(running: Running) -> AsyncIterator[Api]:
    """The first client, who may do everything."""
    async with Api.of(running.base_url, running.client_id, running.client_secret) as opened:
        yield opened


@pytest.fixture
async def support_desk(api: Api) -> ConnectorApi:
    """A support-desk connector on the sandbox."""
    return await api.connector()


@pytest.fixture
async def stranger(running: Running) -> AsyncIterator[Api]:
    """A client of another organization."""
    organization = await running.admin("organization", "create", f"o-{uuid4().hex[:8]}")
    client = await running.admin(
        *("client", "create", "stranger", "--organization", organization["organization_id"]),
        *("--scope", "read", "--scope", "write", "--scope", "admin"),
    )
    async with Api.of(running.base_url, client["client_id"], client["client_secret"]) as opened:
        yield opened


@pytest.fixture
def upstream_requests(running: Running) -> Callable[[], Any]:
    """What the sandbox has received: `await upstream_requests()`."""

    async def received() -> list[dict[str, Any]]:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{running.sandbox_url}/_sandbox/requests") as response,
        ):
            return (await response.json())["requests"]

    return received
