"""Agents' hosts, their requests for access, and grants."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Host:
    """An agent's host: a public client of RFC 6749, which has no secret."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A stored grant."""

    id: UUID
    organization_id: UUID
    client_id: UUID
    host_id: str
    scopes: Sequence[str]
    resource: str


@dataclass(frozen=True, slots=True)
class CodeRow:
    """An authorization code with its grant."""

    grant: Grant
    redirect_uri: str
    challenge: str
    #: whether this is its first use before it expires
    is_good: bool
