"""Callers: clients, and the organizations that they act for."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from uuid import UUID, uuid4, uuid5

import msgspec

from gateway.access.identity.patterns import matches
from gateway.contract.budgets import BudgetLimits
from gateway.contract.kinds import Effect
from gateway.errors import InsufficientScope, NotFound, OrganizationForbidden, OrganizationRequired, Unavailable

#: characters of the longest format of a UUID, `urn:uuid:{…}`
_MAX_ID = 47


def id_of(text: str | None) -> UUID | None:
    """The UUID of a text, in any of its formats; None if it is not a UUID."""
    return _parsed(text) if text and len(text) <= _MAX_ID else None


@lru_cache(maxsize=1024)  # of short texts only, because strangers choose them
def _parsed(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@lru_cache(maxsize=1024)
def id_text(id_: UUID) -> str:
    """The text of an id, cached because `UUID` takes a microsecond to format it."""
    return str(id_)


class Scope(StrEnum):
    """A permission of a client."""

    #: run operations that change nothing, and read the organization's data
    READ = "read"
    #: run operations that change data, create and delete connectors
    WRITE = "write"
    #: see the audit log and manage the organization
    ADMIN = "admin"
    #: decide about calls for which a policy demands an approval
    APPROVE = "approve"
    #: open sessions for people
    DELEGATE = "delegate"


@dataclass(frozen=True, slots=True)
class Organization:
    """A tenant."""

    id: UUID
    name: str
    created_at: datetime
    disabled_at: datetime | None = None


class SessionBudget(msgspec.Struct, frozen=True, kw_only=True):
    """What the calls of a session, and of those opened in it, may use."""

    name: str
    limits: BudgetLimits


class PersonSession(msgspec.Struct, frozen=True, kw_only=True):
    """What a client may do for a person, beside scopes and workspaces."""

    id: UUID
    #: the client that acts
    client_id: UUID
    #: the only connectors; None for all that the person may use
    connectors: tuple[UUID, ...] | None = None
    #: patterns of the only operations, `kind.entity.action`; None for all
    allow: tuple[str, ...] | None = None
    #: patterns of operations that are never allowed
    deny: tuple[str, ...] = ()
    effects: tuple[Effect, ...] | None = None
    budgets: tuple[SessionBudget, ...] = ()
    #: the trusted issuer whose token was exchanged for it; None for one that the client opened
    issuer_id: UUID | None = None

    def reaches(self, connector_id: UUID) -> bool:
        """Whether the session may use a connector."""
        return self.connectors is None or connector_id in self.connectors

    def allows(self, operation: str, effect: Effect) -> bool:
        """Whether the session may run an operation, `kind.entity.action`."""
        return (
            (self.effects is None or effect in self.effects)
            and (self.allow is None or any(matches(each, operation) for each in self.allow))
            and not any(matches(each, operation) for each in self.deny)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program, or a person who signs in, that may call the gateway for one or more organizations."""

    id: UUID
    name: str
    organization_ids: frozenset[UUID]
    scopes: frozenset[str]
    redirect_urls: tuple[str, ...] = ()
    created_at: datetime | None = None
    disabled_at: datetime | None = None
    #: whether it is a person, who signs in through the operator's provider and has no secret
    is_person: bool = False
    #: names of the workspaces to which the client is limited; None for all
    workspaces: frozenset[str] | None = None
    #: those of its organizations that are being moved to another database
    moving: frozenset[UUID] = frozenset()
    #: the only URL for which its token is valid (RFC 8707); None for all
    resource: str | None = None
    #: names of the groups for whose members the client may open sessions
    delegate_for: tuple[str, ...] = ()
    #: the session in which another client acts for this person; None for a client that acts for itself
    session: PersonSession | None = None
    #: the grant to an agent's host from which its token came
    grant_id: UUID | None = None
    #: the hash of the token by which it was verified; None without one, as in the console
    token_hash: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def origin_id(self) -> UUID | None:
        """The session or the grant from which its token came, and with which what the client begins ends."""
        return self.grant_id if self.session is None else self.session.id

    def caller(self, organization: str | None) -> "Caller":
        """The client acting for the organization that the `X-Organization-Id` header names, or its only one.

        Raises OrganizationRequired and OrganizationForbidden.
        """
        if not self.organization_ids:
            raise OrganizationForbidden("every organization of the client is disabled")
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


def organizations_of(clients: Sequence[Client]) -> frozenset[UUID]:
    """The organizations that these clients of one person may act for."""
    return frozenset[UUID]().union(*(each.organization_ids for each in clients))


def caller_among(clients: Sequence[Client], organization: str | None) -> "Caller":
    """The first of these clients of one person that may act for the organization, or for their only one.

    Raises OrganizationRequired and OrganizationForbidden.
    """
    every = replace(clients[0], organization_ids=organizations_of(clients))
    chosen = every.caller(organization).organization_id
    return Caller(next(each for each in clients if chosen in each.organization_ids), chosen)


class Caller(msgspec.Struct, frozen=True):
    """A client acting for one organization; an argument of every look-up, so that each has a tenant."""

    client: Client
    organization_id: UUID

    @property
    def client_id(self) -> UUID:
        return self.client.id

    @property
    def person_id(self) -> UUID | None:
        """The person as whom the caller acts; None for a program that acts for itself."""
        return self.client.id if self.client.is_person else None

    @property
    def session(self) -> PersonSession | None:
        """The session in which a client acts for the person."""
        return self.client.session

    def new_id(self, idempotency_key: UUID | None) -> UUID:
        """The id of what the caller creates: with a key, the same one each time."""
        return uuid4() if idempotency_key is None else uuid5(self.client_id, str(idempotency_key))

    def reaches(self, connector_id: UUID) -> bool:
        """Whether the caller's session, if it has one, may use the connector."""
        return self.session is None or self.session.reaches(connector_id)

    def owns(self, owner_id: UUID | None) -> bool:
        """Whether the caller may use what belongs to this person; to nobody for None."""
        return owner_id is None or owner_id == self.person_id

    def limited_to(self, workspace_name: str) -> "Caller":
        """The caller, limited to one of its workspaces."""
        own = self.client.workspaces
        one = frozenset({workspace_name})
        return Caller(replace(self.client, workspaces=one if own is None else own & one), self.organization_id)

    def sees(self, workspace_name: str | None) -> bool:
        """Whether the client may see the resources of a workspace."""
        allowed = self.client.workspaces
        return allowed is None or workspace_name in allowed

    def covers(self, client: Client) -> bool:
        """Whether the caller may see every workspace that the other client may see."""
        allowed = self.client.workspaces
        return allowed is None or (client.workspaces is not None and client.workspaces <= allowed)

    def require_workspace(self, workspace_name: str | None, resource: str) -> None:
        """Raise NotFound, as for a resource that does not exist, unless the client may see its workspace."""
        if not self.sees(workspace_name):
            raise NotFound(f"there is no such {resource}")

    def require_own_workspace(self, workspace_name: str) -> None:
        """Raise InsufficientScope unless the client may create something in the workspace."""
        if not self.sees(workspace_name):
            allowed = ", ".join(sorted(self.client.workspaces or ()))
            raise InsufficientScope(f"the client is limited to the workspaces {allowed}; it has no {workspace_name!r}")

    def require_whole_organization(self) -> None:
        """Raise InsufficientScope unless the client may change what all workspaces share."""
        if self.client.workspaces is not None:
            allowed = ", ".join(sorted(self.client.workspaces))
            raise InsufficientScope(f"the client is limited to the workspaces {allowed}; this belongs to all of them")

    def require_settled(self) -> None:
        """Raise Unavailable while the organization is moved to another database: changes would be lost."""
        if self.organization_id in self.client.moving:
            raise Unavailable(
                "the organization is being moved to another gateway; only reads are served", retry_after=30
            )

    def require(self, scope: Scope) -> None:
        """Raise InsufficientScope unless the client has the scope."""
        scopes = self.client.scopes
        if scope not in scopes:
            raise InsufficientScope(f"this needs the scope {scope}; the client has {', '.join(sorted(scopes))}")
