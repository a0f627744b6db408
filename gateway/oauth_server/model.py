"""Agents' hosts, their requests for access, and grants."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Host:
    """An agent's host: the client of RFC 6749, which keeps no secret."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]


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
