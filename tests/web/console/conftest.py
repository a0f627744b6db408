"""Fixtures: an organization, its administrator by the API and in a browser, and a stranger in another browser."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from tests.harness.caller import Api
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.in_process import FrontEnd


@pytest.fixture
async def organization_id(front: FrontEnd) -> UUID:
    return await front.organization()


@pytest.fixture
async def api(front: FrontEnd, organization_id: UUID) -> AsyncIterator[Api]:
    async with front.api(organization_id) as opened:
        yield opened


@pytest.fixture
async def browser(front: FrontEnd, organization_id: UUID) -> AsyncIterator[ConsoleBrowser]:
    """A browser in which a client with all scopes is signed in."""
    async with signed_in(front, *await front.client(organization_id)) as opened:
        yield opened


@pytest.fixture
async def stranger(front: FrontEnd) -> AsyncIterator[ConsoleBrowser]:
    """A browser in which an administrator of another organization is signed in."""
    async with signed_in(front, *await front.client()) as opened:
        yield opened
