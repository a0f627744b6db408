"""Trusted issuers in PostgreSQL, and the assertions that were used."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from gateway.contract.issuers import MAX_ISSUERS, IssuerView, NewIssuer, TrustedIssuer
from gateway.errors import Conflict, InvalidParams, NotFound
from gateway.foundation.db.pool import Connection, Database

_COLUMNS = "id, organization_id, issuer, audience, client_ids, groups_claim, subject_claim, create_people"
_TRUSTED = f"SELECT {_COLUMNS} FROM trusted_issuers WHERE organization_id = ANY ($1::uuid[]) AND issuer = $2"
_LIST = f"SELECT {_COLUMNS}, created_at FROM trusted_issuers WHERE organization_id = $1 ORDER BY issuer"
_LOCK_ORGANIZATION = "SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE"
_COUNT = "SELECT count(*) FROM trusted_issuers WHERE organization_id = $1"
_UNKNOWN_CLIENTS = """
    SELECT given.id FROM unnest($2::uuid[]) AS given (id)
    WHERE NOT EXISTS (
        SELECT FROM client_organizations WHERE organization_id = $1 AND client_id = given.id
          AND NOT EXISTS (SELECT FROM people WHERE people.client_id = given.id))
"""
_INSERT = f"""
    INSERT INTO trusted_issuers (id, organization_id, issuer, audience, client_ids, groups_claim, subject_claim,
                                 create_people, created_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING {_COLUMNS}, created_at
"""
# Sessions that came from it are deleted too; their trigger notifies every process.
_DELETE = "DELETE FROM trusted_issuers WHERE organization_id = $1 AND id = $2 RETURNING id"
# Blocks the deletion of the issuer until the session is committed.
_LOCK = "SELECT id FROM trusted_issuers WHERE organization_id = $1 AND id = $2 FOR KEY SHARE"
_USE = """
    INSERT INTO used_assertions (issuer, jti_hash, expires_at)
    VALUES ($1, $2, to_timestamp($3::float8)) ON CONFLICT DO NOTHING RETURNING issuer
"""
_IS_USED = "SELECT EXISTS (SELECT FROM used_assertions WHERE issuer = $1 AND jti_hash = $2)"
_PRUNE = "DELETE FROM used_assertions WHERE expires_at < now()"


class IssuerStore:
    """The trusted issuers of organizations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def trusted(self, organization_ids: Collection[UUID], issuer: str) -> Sequence[TrustedIssuer]:
        """The issuer of this name in each of the organizations that trusts it."""
        async with self._database.system() as connection:
            rows = await connection.fetch(_TRUSTED, list(organization_ids), issuer)
        return [TrustedIssuer(**row) for row in rows]

    async def all(self, organization_id: UUID) -> Sequence[IssuerView]:
        """The issuers, by their URLs."""
        async with self._database.tenant(organization_id) as connection:
            return [_view(row) for row in await connection.fetch(_LIST, organization_id)]

    async def add(self, organization_id: UUID, new: NewIssuer, client_id: UUID) -> IssuerView:
        """Trust an issuer; raises Conflict, and InvalidParams for clients that the organization does not have."""
        clients = None if new.client_ids is None else list(dict.fromkeys(new.client_ids))
        try:
            async with self._database.tenant(organization_id) as connection, connection.transaction():
                await connection.execute(_LOCK_ORGANIZATION, organization_id)
                if await connection.fetchval(_COUNT, organization_id) >= MAX_ISSUERS:
                    raise Conflict(f"the organization trusts {MAX_ISSUERS} issuers; delete some")
                unknown = await connection.fetch(_UNKNOWN_CLIENTS, organization_id, clients or [])
                if unknown:
                    raise InvalidParams(f"client_ids: the organization has no client {unknown[0]['id']}")
                claims = (new.groups_claim, new.subject_claim)
                members = (new.issuer, new.audience, clients, *claims, new.create_people, client_id)
                return _view(await connection.fetchrow(_INSERT, uuid4(), organization_id, *members))
        except asyncpg.UniqueViolationError as error:
            raise Conflict("the organization trusts this issuer already; delete it first to change it") from error

    async def delete(self, organization_id: UUID, issuer_id: UUID) -> None:
        """End the trust in an issuer, and the sessions that came from it, in every process; raises NotFound."""
        async with self._database.tenant(organization_id) as connection:
            if await connection.fetchval(_DELETE, organization_id, issuer_id) is None:
                raise NotFound("there is no such issuer")

    async def lock(self, connection: Connection, issuer: TrustedIssuer) -> bool:
        """Whether the issuer is still trusted, until the caller's transaction ends."""
        return await connection.fetchval(_LOCK, issuer.organization_id, issuer.id) is not None

    async def is_used(self, issuer: str, jti_hash: bytes) -> bool:
        """Whether an assertion was used."""
        async with self._database.system() as connection:
            return bool(await connection.fetchval(_IS_USED, issuer, jti_hash))

    async def use(self, connection: Connection, issuer: str, jti_hash: bytes, expires_at: float) -> bool:
        """Use an assertion in the caller's transaction; false if it was used before."""
        return await connection.fetchval(_USE, issuer, jti_hash, expires_at) is not None


async def prune_used_assertions(database: Database) -> None:
    """Forget assertions that have expired."""
    async with database.system() as connection:
        await connection.execute(_PRUNE)


def _view(row: Any) -> IssuerView:
    clients = row["client_ids"]
    return IssuerView(
        id=str(row["id"]),
        issuer=row["issuer"],
        audience=row["audience"],
        client_ids=None if clients is None else [str(each) for each in clients],
        groups_claim=row["groups_claim"],
        subject_claim=row["subject_claim"],
        create_people=row["create_people"],
        created_at=row["created_at"],
    )
