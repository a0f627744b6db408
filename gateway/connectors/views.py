"""Connectors as callers see them."""

from dataclasses import replace

from gateway.connectors.model import ConnectorRecord
from gateway.contract.connectors import Connector, ConnectorStatus, SourceTemplateView
from gateway.kinds.catalog import Catalog
from gateway.kinds.spec import ConnectorSpec, definition_id_of, display_name_of
from gateway.kinds.sunsets import described_sunset


def as_served(record: ConnectorRecord, catalog: Catalog) -> ConnectorRecord:
    """The record as callers see it: `unserved` with the reason if its kind is not served, unless it is disabled."""
    reason = catalog.unserved_reason(record.kind)
    if reason is None:
        return record
    status = record.status if record.status is ConnectorStatus.DISABLED else ConnectorStatus.UNSERVED
    return replace(record, status=status, status_reason=reason)


def connector_view(record: ConnectorRecord, catalog: Catalog) -> Connector:
    """The connector as callers see it; credentials are never returned, not even masked."""
    kind = catalog.kinds.get(record.kind)
    shown, spec = as_served(record, catalog), None if kind is None else kind.spec
    connector_type = display_name_of(record.kind)
    definition_id = definition_id_of(record.kind) if spec is None else spec.definition_id
    return Connector(
        id=str(record.id),
        name=record.name,
        kind=record.kind,
        connector_type=connector_type,
        application=catalog.application_of(record.kind),
        workspace_name=record.workspace_name,
        status=shown.status,
        status_reason=shown.status_reason if spec is None else _status_reason(record, spec),
        auth_method=record.auth_method,
        definition_id=definition_id,
        owner=None if record.owner_id is None else str(record.owner_id),
        environment=record.environment,
        created_at=record.created_at,
        updated_at=record.updated_at,
        summarized_source_template=SourceTemplateView(definition_id, connector_type),
    )


def _status_reason(record: ConnectorRecord, spec: ConnectorSpec) -> str | None:
    """The reason for the connector's status, and the parts of it that the application will switch off."""
    reasons = (record.status_reason, described_sunset(spec, record.auth_method))
    return "; ".join(reason for reason in reasons if reason) or None
