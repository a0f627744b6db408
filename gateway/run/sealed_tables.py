"""All tables with sealed values, for key rotation and for the health check of the keys."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from gateway.connectors.consent import apps, registrations, store
from gateway.connectors.key_rotation.rotation import Rotation, SealedTable, census
from gateway.connectors.model import binding
from gateway.context_store.notices import store as inbound_webhooks
from gateway.events import store as webhooks
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import KeyList, Vault
from gateway.jobs import sealing
from gateway.operations.approvals import notice_store as approval_notices
from gateway.operations.schedules import model as schedules
from gateway.operations.uploads import store as uploads
from gateway.settings import Settings

SEALED_TABLES = (
    SealedTable(
        "connector_secrets",
        "connector_id",
        lambda organization_id, connector_id, context: binding(organization_id, connector_id, **json.loads(context)),
        "(SELECT jsonb_build_object('kind', kind, 'environment', environment)::text FROM connectors"
        " WHERE connectors.id = connector_id)",
    ),
    SealedTable("oauth_apps", "kind", apps.binding),
    SealedTable("oauth_registrations", "issuer", registrations.binding),
    SealedTable("oauth_flows", "id", store.binding),
    SealedTable("schedules", "id", schedules.binding),
    SealedTable("approval_notices", "id", approval_notices.binding),
    SealedTable("webhooks", "id", webhooks.binding),
    SealedTable("inbound_hooks", "id", inbound_webhooks.binding),
    SealedTable("uploads", "id", uploads.binding),
    SealedTable("jobs", "id", sealing.binding),
)


@asynccontextmanager
async def open_rotation(settings: Settings, keys: KeyList) -> AsyncIterator[Rotation]:
    """The rotation of all sealed values to the newest key."""
    async with _database(settings) as database:
        yield Rotation(database, Vault(keys), SEALED_TABLES)


async def count_by_key(settings: Settings) -> Counter[str]:
    """Key id → the number of sealed values that it wraps."""
    async with _database(settings) as database:
        return await census(database, SEALED_TABLES)


def _database(settings: Settings) -> AbstractAsyncContextManager[Database]:
    return Database.open(settings.database_url, size=2, command_timeout=30, has_pooler=settings.has_pooler)
