"""A hook: the URL of the gateway to which an application sends its notices."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec


class Hook(msgspec.Struct, frozen=True):
    """The hook of one connector, with the secrets that sign its notices."""

    id: UUID
    organization_id: UUID
    connector_id: UUID
    kind: str
    #: until when a handshake may add a secret
    handshake_until: datetime
    created_at: datetime
    #: None if it was not read
    last_notice_at: datetime | None
    secrets: Sequence[str]

    def __repr__(self) -> str:
        return f"Hook({self.id})"
