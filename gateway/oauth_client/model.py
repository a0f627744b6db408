"""An OAuth flow: a consent that was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

#: seconds that a user has for the consent
LIFETIME = 600


@dataclass(frozen=True, slots=True)
class Flow:
    """A consent, and all that its answer is bound to."""

    id: UUID
    organization_id: UUID
    client_id: UUID
    workspace_id: UUID
    kind: str
    name: str | None
    redirect_url: str
    environment: Mapping[str, str]
    app_client_id: str
    #: PKCE; None where the application knows none
    verifier: str | None = field(repr=False)
    #: where the application asks the user
    authorization_url: str = field(repr=False)
    #: the caller's own, which comes back with the browser
    state: str | None = field(repr=False)
    #: the connector that is authorized again, in place
    reauthorizes: UUID | None
