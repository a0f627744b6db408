"""All tables with sealed values, for key rotation and for the health check of the keys."""

import json

from gateway.connectors.consent import apps, store
from gateway.connectors.key_rotation.rotation import SealedTable
from gateway.connectors.model import binding
from gateway.context_store.notices import store as inbound_webhooks
from gateway.events import store as webhooks
from gateway.jobs import sealing
from gateway.operations.schedules import model as schedules
from gateway.operations.uploads import store as uploads

SEALED_TABLES = (
    SealedTable(
        "connector_secrets",
        "connector_id",
        lambda organization_id, connector_id, context: binding(organization_id, connector_id, **json.loads(context)),
        "(SELECT jsonb_build_object('kind', kind, 'environment', environment)::text FROM connectors"
        " WHERE connectors.id = connector_id)",
    ),
    SealedTable("oauth_apps", "kind", apps.binding),
    SealedTable("oauth_flows", "id", store.binding),
    SealedTable("schedules", "id", schedules.binding),
    SealedTable("webhooks", "id", webhooks.binding),
    SealedTable("inbound_hooks", "id", inbound_webhooks.binding),
    SealedTable("uploads", "id", uploads.binding),
    SealedTable("jobs", "id", sealing.binding),
)
