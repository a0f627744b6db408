"""Who calls, and for whom."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from uuid import UUID

import msgspec

from gateway.errors import InsufficientScope, OrganizationForbidden, OrganizationRequired


@lru_cache(maxsize=1024)
def id_of(text: str | None) -> UUID | None:
    """The id that a text spells, however it does; None for what is none."""
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


class Scope(StrEnum):
    """What a client may do."""

    #: run operations that change nothing, and look at everything of the organization
    READ = "read"
    #: run operations that change data, create and delete connectors
    WRITE = "write"
    #: see the audit log and manage the organization
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Organization:
    """A tenant."""

    id: UUID
    name: str
    created_at: datetime
    disabled_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """A program, or a person who signs in, that may call the gateway for one or more organizations."""

    id: UUID
    name: str
    organization_ids: frozenset[UUID]
    scopes: frozenset[str]
    redirect_urls: tuple[str, ...] = ()
    created_at: datetime | None = None
    disabled_at: datetime | None = None
    #: whether it stands for a person who signs in by the operator's provider, and so has no secret
    is_person: bool = False
    #: names of the only workspaces that its token reaches; None is all
    workspaces: frozenset[str] | None = None
    #: the URL that its token is good for alone (RFC 8707); None is everything
    resource: str | None = None

    def caller(self, organization: str | None) -> "Caller":
        """The client acting for the organization that the `X-Organization-Id` header names, or its only one."""
        if organization is None:
            if len(self.organization_ids) != 1:
                raise OrganizationRequired(
                    "the client can access several organizations; name one in the X-Organization-Id header"
                )
            return Caller(self, next(iter(self.organization_ids)))
        named = next((each for each in self.organization_ids if str(each) == organization.strip().lower()), None)
        if named is None:
            raise OrganizationForbidden("the client cannot access that organization")
        return Caller(self, named)


class Caller(msgspec.Struct, frozen=True):
    """A client acting for one organization: an argument of every look-up, so that none can forget the tenant."""

    client: Client
    organization_id: UUID

    @property
    def client_id(self) -> UUID:
        return self.client.id

    def require(self, scope: Scope) -> None:
        """Raise InsufficientScope unless the client has it."""
        scopes = self.client.scopes
        if scope not in scopes:
            raise InsufficientScope(f"this needs the scope {scope}; the client has {', '.join(sorted(scopes))}")
