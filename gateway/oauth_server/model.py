"""Who asks for access, for what, and what was granted."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from gateway.identity.model import Scope

#: what an agent may be granted; the audit log and clients are not for agents
SCOPES = (Scope.READ.value, Scope.WRITE.value)


class OAuthError(Exception):
    """A refusal in the shape of RFC 6749 §4.1.2.1 and §5.2."""

    def __init__(self, code: str, description: str) -> None:
        self.code = code
        self.description = description
        super().__init__(description)


@dataclass(frozen=True, slots=True)
class Host:
    """An agent's host: the client of RFC 6749, which keeps no secret."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A host's authorization request, validated."""

    host_id: str
    host_name: str
    redirect_uri: str
    scopes: tuple[str, ...]
    challenge: str
    resource: str
    state: str | None = None


@dataclass(frozen=True, slots=True)
class NewGrant:
    """The scopes and workspaces that a person granted, at most those of their own client."""

    scopes: tuple[str, ...]
    #: names of the only workspaces, None for all of them
    workspaces: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant as it is kept."""

    id: UUID
    organization_id: UUID
    client_id: UUID
    host_id: str
    scopes: Sequence[str]
    resource: str


@dataclass(frozen=True, slots=True)
class CodeRow:
    """A code as it was issued, with the grant behind it."""

    grant: Grant
    redirect_uri: str
    challenge: str
    #: whether this is its first use, within its time
    is_good: bool


@dataclass(frozen=True, slots=True)
class TokenPair:
    """A token response; it is issued once."""

    access_token: str
    refresh_token: str
    expires_in: int
    scopes: Sequence[str]
