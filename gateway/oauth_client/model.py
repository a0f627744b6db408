"""An OAuth flow: one consent, from its request to its result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Flow:
    """A consent, with the values that the authorization response must match."""

    id: UUID
    organization_id: UUID
    client_id: UUID
    workspace_id: UUID
    kind: str
    name: str | None
    redirect_url: str
    environment: Mapping[str, str]
    app_client_id: str
    #: the PKCE code verifier; None if the application does not support PKCE
    verifier: str | None = field(repr=False)
    #: the application's consent page
    authorization_url: str = field(repr=False)
    #: the caller's `state`, which the final redirect carries
    state: str | None = field(repr=False)
    #: the connector that is authorized again, in place
    reauthorizes: UUID | None
