"""Changing connectors whose application is asked first."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from gateway.access.audit.log import Audit
from gateway.connectors.model import ConnectorRecord
from gateway.connectors.secret_values import open_secret_values
from gateway.connectors.service import ConnectorService
from gateway.contract.connectors import ConnectorStatus
from tests.connectors.consent.conftest import World, catalog, opening, server, world  # noqa: F401 - fixtures


@pytest.fixture
def forgotten() -> list[str]:
    """The connectors that the process no longer has cached."""
    return []


@pytest.fixture
async def changes(world: World, forgotten: list[str]) -> AsyncIterator[ConnectorService]:  # noqa: F811
    async def no_copies(record: ConnectorRecord, client_id: UUID) -> None:
        """Changing a connector begins none."""

    async with open_secret_values({}) as secrets:
        yield ConnectorService(
            audit=Audit(world.database),
            catalog=world.catalog,
            store=world.connectors,
            identity=world.identity,
            upstreams=world.upstreams,
            secrets=secrets,
            app_of=world.oauth.apps.of,
            begin_copies=no_copies,
            forget=forgotten.append,
        )


@pytest.mark.parametrize(
    ("before", "asked", "after"),
    [
        (ConnectorStatus.ACTIVE, None, ConnectorStatus.ACTIVE),
        (ConnectorStatus.NEEDS_REAUTH, None, ConnectorStatus.ACTIVE),
        (ConnectorStatus.DISABLED, None, ConnectorStatus.DISABLED),
        (ConnectorStatus.DISABLED, ConnectorStatus.ACTIVE, ConnectorStatus.ACTIVE),
        (ConnectorStatus.ACTIVE, ConnectorStatus.DISABLED, ConnectorStatus.DISABLED),
    ],
)
async def test_new_credentials_switch_on_only_what_its_owner_left_on(
    world: World,  # noqa: F811
    changes: ConnectorService,
    forgotten: list[str],
    before: ConnectorStatus,
    asked: ConnectorStatus | None,
    after: ConnectorStatus,
) -> None:
    record = await world.connector("work-management", world.server.pair())
    await world.connectors.update(record.organization_id, record.id, status=before)
    credentials = {**world.server.pair(), "client_id": "app-1", "client_secret": "app-secret-1"}

    changed = await changes.change(world.caller, record.id, {}, credentials=credentials, status=asked)

    assert (changed.status, forgotten) == (after, [str(record.id)])
    assert (await world.secrets(record.id))["access_token"] == credentials["access_token"]
