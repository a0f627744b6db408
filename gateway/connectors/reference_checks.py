"""Reads the secrets of all references for the health check; no result has a value, or the path of a secret."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from gateway.connectors.model import binding_of, references_in, sealed_in
from gateway.connectors.secret_values import SecretValues
from gateway.errors import InternalError
from gateway.foundation.db.pool import Database
from gateway.foundation.db.rows import readable
from gateway.foundation.vault.vault import Vault

#: connectors of one statement
_BATCH = 500
_FIRST = UUID(int=0)
_CREDENTIALS = f"""
    SELECT id, connectors.organization_id, kind, environment::text AS environment, key_id, wrapped_key, sealed
    FROM connectors JOIN connector_secrets ON connector_id = id
    WHERE deleted_at IS NULL AND id > $1 ORDER BY id LIMIT {_BATCH}
"""


@dataclass(frozen=True, slots=True)
class CheckedReference:
    """A credential whose value is a reference, and why it cannot be read; None if it can."""

    organization_id: UUID
    connector_id: UUID
    credential: str
    trouble: str | None


async def checked_references(database: Database, vault: Vault, values: SecretValues) -> AsyncIterator[CheckedReference]:
    """The references of all connectors, each read once for its organization; without credentials that do not open."""
    known: dict[tuple[UUID, str], str | None] = {}
    last = _FIRST
    while rows := await _rows(database, last):
        for row in rows:
            for name, url in _readable(vault, row).items():
                key = row["organization_id"], url
                if key not in known:
                    known[key] = await values.trouble(*key)
                yield CheckedReference(row["organization_id"], row["id"], name, known[key])
        last = rows[-1]["id"]


async def _rows(database: Database, last: UUID) -> list[Any]:
    async with database.system() as connection:
        return list(await connection.fetch(_CREDENTIALS, last))


def _readable(vault: Vault, row: Any) -> dict[str, str]:
    found = readable(row, partial(_references, vault), "credentials")
    return {} if isinstance(found, InternalError) else found


def _references(vault: Vault, row: Any) -> dict[str, str]:
    return references_in(vault.open(sealed_in(row), binding_of(row["organization_id"], row["id"], row)))
