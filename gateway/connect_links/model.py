"""A connect link's session."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from gateway.contract.connectors import SessionStatus


@dataclass(frozen=True, slots=True)
class ConnectSession:
    """The applications that a person may connect by a link, and the state of the link."""

    id: UUID
    organization_id: UUID
    client_id: UUID
    workspace_name: str
    kinds: tuple[str, ...]
    redirect_url: str | None
    #: the connector that is authorized again, in place
    reauthorizes: UUID | None
    #: the consent under way
    flow_id: UUID | None
    expires_at: datetime
    status: SessionStatus
    connector_id: UUID | None
