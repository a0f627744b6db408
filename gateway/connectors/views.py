"""Connectors as callers see them."""

from gateway.connectors.model import ConnectorRecord
from gateway.contract.connectors import Connector, SourceTemplateView
from gateway.kinds.catalog import Catalog
from gateway.kinds.spec import ConnectorSpec
from gateway.kinds.sunsets import described_sunset


def connector_view(record: ConnectorRecord, catalog: Catalog) -> Connector:
    """The connector as callers see it; credentials are never returned, not even masked."""
    spec = catalog.kind(record.kind).spec
    return Connector(
        id=str(record.id),
        name=record.name,
        kind=record.kind,
        connector_type=spec.display_name,
        application=spec.application,
        workspace_name=record.workspace_name,
        status=record.status,
        status_reason=_status_reason(record, spec),
        auth_method=record.auth_method,
        definition_id=spec.definition_id,
        environment=record.environment,
        created_at=record.created_at,
        updated_at=record.updated_at,
        summarized_source_template=SourceTemplateView(spec.definition_id, spec.display_name),
    )


def _status_reason(record: ConnectorRecord, spec: ConnectorSpec) -> str | None:
    """The reason for the connector's status, and the parts of it that the application will switch off."""
    reasons = (record.status_reason, described_sunset(spec, record.auth_method))
    return "; ".join(reason for reason in reasons if reason) or None
