"""Clients, created in the database as by `gateway admin`."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from gateway.access.identity.model import Caller, Client
from gateway.access.identity.store import IdentityStore
from gateway.access.identity.tokens import hashed, new_secret
from gateway.foundation.db.pool import Database

EVERY_SCOPE = ("read", "write", "admin", "approve", "delegate")


@dataclass(frozen=True)
class NewClient:
    """The id and secret of a client."""

    id: str
    secret: str
    organization_id: UUID


async def new_organization(identity: IdentityStore) -> UUID:
    return (await identity.create_organization(f"o-{uuid4().hex}")).id


async def new_client(
    identity: IdentityStore, organization_id: UUID | None = None, scopes: Sequence[str] = EVERY_SCOPE
) -> NewClient:
    """A client of the organization, or of a new one."""
    organization_id = organization_id or await new_organization(identity)
    secret = new_secret()
    client_id = await identity.create_client("test", [organization_id], hashed(secret), scopes)
    return NewClient(str(client_id), secret, organization_id)


async def new_client_in(database_url: str) -> NewClient:
    """A client of a new organization, in this database."""
    async with Database.open(database_url, size=1) as database:
        return await new_client(IdentityStore(database))


def caller_of(organization_id: UUID, client_id: UUID | str | None = None) -> Caller:
    """A caller for use cases, whose client is in no table unless its id is given."""
    id_ = uuid4() if client_id is None else UUID(str(client_id))
    return Caller(
        Client(id=id_, name="test", organization_ids=frozenset({organization_id}), scopes=frozenset(EVERY_SCOPE)),
        organization_id,
    )
