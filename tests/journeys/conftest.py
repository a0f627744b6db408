"""Fixtures of journeys: a caller, a connector, a caller of another organization."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
from playwright.async_api import Browser

from tests.harness.browser import launched
from tests.harness.caller import Api, ConnectorApi
from tests.harness.clients import new_client_in
from tests.harness.sandbox import received_requests
from tests.harness.up import Running


@pytest.fixture
async def api(running: Running) -> AsyncIterator[Api]:
    """A caller with all scopes: the first client."""
    async with Api.of(running.base_url, running.client_id, running.client_secret) as opened:
        yield opened


@pytest.fixture
async def support_desk(api: Api) -> ConnectorApi:
    """A support-desk connector on the sandbox."""
    return await api.connector()


@pytest.fixture
async def stranger(running: Running) -> AsyncIterator[Api]:
    """A client of another organization."""
    client = await new_client_in(running.database_url)
    async with Api.of(running.base_url, client.id, client.secret) as opened:
        yield opened


@pytest.fixture(scope="module")
async def chromium() -> AsyncIterator[Browser]:
    """A browser in which each test opens its own context."""
    async with launched() as browser:
        yield browser


@pytest.fixture
async def work_management_app(api: Api) -> AsyncIterator[None]:
    """The organization's OAuth app for work management; the sandbox accepts any."""
    path, configuration = "/api/v1/oauth/credentials", {"client_id": "own-app", "client_secret": "own-secret"}
    await api.call("PUT", path, json={"connector_type": "work-management", "configuration": configuration})
    yield
    await api.call("DELETE", f"{path}/connector_type/work-management")


@pytest.fixture
def upstream_requests(running: Running) -> Callable[[], Any]:
    """`await upstream_requests()`: the requests that the sandbox has received."""
    return partial(received_requests, running.sandbox_url)
