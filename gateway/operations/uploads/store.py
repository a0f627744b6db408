"""Uploads in PostgreSQL: the params, the URL of the application's session and its answer are sealed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import msgspec

from gateway.errors import Conflict, NotFound, UploadExpired
from gateway.foundation.aio.turns import in_thread
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Binding, Sealed, Vault

_INSERT = """
    INSERT INTO uploads (id, organization_id, connector_id, entity, size, key_id, wrapped_key, sealed, expires_at,
                         session_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now() + make_interval(secs => $9), $10)
    RETURNING expires_at
"""
#: maximum uploads of a connector and of an organization that are begun and neither complete nor expired
MAX_OPEN, MAX_OPEN_OF_ORGANIZATION = 1000, 5000
_OPEN = "SELECT FROM uploads WHERE organization_id = $1 AND NOT is_complete AND expires_at > now()"
_COUNT = f"""
    SELECT (SELECT count(*) FROM ({_OPEN} AND connector_id = $2 LIMIT {MAX_OPEN}) AS open) AS of_connector,
           (SELECT count(*) FROM ({_OPEN} LIMIT {MAX_OPEN_OF_ORGANIZATION}) AS open) AS of_organization
"""
#: bytes of an answer that is sealed and opened in a thread
_LARGE = 256 << 10
_GET = """
    SELECT id, organization_id, connector_id, entity, size, fence, is_complete, key_id, wrapped_key, sealed, expires_at,
           expires_at <= now() AS is_expired
    FROM uploads WHERE organization_id = $1 AND connector_id = $2 AND id = $3 AND ($4::uuid IS NULL OR session_id = $4)
"""
_IS_OPEN = "organization_id = $1 AND id = $2 AND NOT is_complete"
# An earlier request of the upload sends no further piece, because its fence is outdated.
_TAKE = f"UPDATE uploads SET fence = fence + 1 WHERE {_IS_OPEN} RETURNING fence"
_IS_HELD = f"SELECT true FROM uploads WHERE {_IS_OPEN} AND fence = $3"
# Compare-and-set: of several requests that see the end, one counts it.
_COMPLETE = f"""
    UPDATE uploads SET is_complete = true, key_id = $3, wrapped_key = $4, sealed = $5 WHERE {_IS_OPEN} RETURNING id
"""
#: for `prune`: rows stay for a day after the upload has expired, so that the error can say so
PRUNE = """
    WITH ended AS (
        SELECT id FROM uploads WHERE expires_at < now() - interval '1 day'
        ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM uploads USING ended WHERE uploads.id = ended.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A stored upload."""

    id: UUID
    organization_id: UUID
    connector_id: UUID
    entity: str
    #: bytes of the whole file
    size: int
    expires_at: datetime
    #: the params of the operation, without the file
    params: Mapping[str, Any]
    #: the URL of the application's session; a secret
    session_url: str
    #: JSON of the application's response; None until the file is complete
    answer: bytes | None = None


def binding(organization_id: UUID, upload_id: UUID) -> Binding:
    """The associated data of an upload's sealed secrets."""
    return Binding(organization_id, upload_id, "upload")


class UploadStore:
    """Uploads by organization, connector and id."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def require_room(self, organization_id: UUID, connector_id: UUID) -> None:
        """Raise Conflict if the connector or its organization has the maximum number of open uploads."""
        async with self._database.tenant(organization_id) as connection:
            found = await connection.fetchrow(_COUNT, organization_id, connector_id)
        assert found is not None
        bounds = (
            ("connector", found["of_connector"], MAX_OPEN),
            ("organization", found["of_organization"], MAX_OPEN_OF_ORGANIZATION),
        )
        for owner, count, most in bounds:
            if count >= most:
                raise Conflict(f"the {owner} has {most} unfinished uploads; finish some, or wait until they expire")

    async def create(
        self,
        organization_id: UUID,
        connector_id: UUID,
        entity: str,
        size: int,
        params: Mapping[str, Any],
        session_url: str,
        seconds: int,
        session_id: UUID | None = None,
    ) -> Upload:
        """Store an upload with an open session at the application; it expires after `seconds`.

        `session_id`: the session for a person in which it is begun.
        """
        upload_id = uuid4()
        secrets = self._sealed(organization_id, upload_id, params, session_url=session_url)
        async with self._database.tenant(organization_id) as connection:
            expires_at: datetime = await connection.fetchval(
                _INSERT, upload_id, organization_id, connector_id, entity, size, *secrets, seconds, session_id
            )
        return Upload(
            id=upload_id,
            organization_id=organization_id,
            connector_id=connector_id,
            entity=entity,
            size=size,
            expires_at=expires_at,
            params=params,
            session_url=session_url,
        )

    async def get(
        self, organization_id: UUID, connector_id: UUID, upload_id: UUID, session_id: UUID | None = None
    ) -> Upload:
        """The upload, in a session for a person one of this session; raises NotFound, also for another organization's
        upload, and UploadExpired.
        """
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_GET, organization_id, connector_id, upload_id, session_id)
        if row is None:
            raise NotFound("there is no such upload; start it again with POST …/upload/{entity}")
        if row["is_expired"]:
            raise UploadExpired("the upload was not finished in time; start it again with POST …/upload/{entity}")
        sealed = Sealed(row["key_id"], row["wrapped_key"], row["sealed"])
        read = partial(self._vault.open, binding=binding(organization_id, upload_id))
        values = await in_thread(read, sealed) if len(sealed.sealed) > _LARGE else read(sealed)
        return Upload(
            id=row["id"],
            organization_id=organization_id,
            connector_id=connector_id,
            entity=row["entity"],
            size=row["size"],
            expires_at=row["expires_at"],
            params=msgspec.json.decode(values["params"]),
            session_url=values["session_url"],
            answer=values["answer"].encode() if "answer" in values else None,
        )

    async def take(self, upload: Upload) -> int:
        """The fence of a request that will send bytes, after which earlier requests may not. Raises Conflict."""
        async with self._database.tenant(upload.organization_id) as connection:
            fence: int | None = await connection.fetchval(_TAKE, upload.organization_id, upload.id)
        if fence is None:
            raise Conflict("the upload is complete; get it to read the answer")
        return fence

    async def ensure_held(self, upload: Upload, fence: int) -> None:
        """Raise Conflict if a later request has taken the upload."""
        async with self._database.tenant(upload.organization_id) as connection:
            is_held = await connection.fetchval(_IS_HELD, upload.organization_id, upload.id, fence)
        if not is_held:
            raise Conflict("another request continues the upload; this one sends no more")

    async def complete(self, upload: Upload, answer: bytes) -> bool:
        """Store the application's answer; false if another request has done so."""

        def sealed(answer: bytes) -> tuple[str, bytes, bytes]:
            values = {"session_url": upload.session_url, "answer": answer.decode()}
            return self._sealed(upload.organization_id, upload.id, upload.params, **values)

        secrets = await in_thread(sealed, answer) if len(answer) > _LARGE else sealed(answer)
        async with self._database.tenant(upload.organization_id) as connection:
            return await connection.fetchval(_COMPLETE, upload.organization_id, upload.id, *secrets) is not None

    def _sealed(
        self, organization_id: UUID, upload_id: UUID, params: Mapping[str, Any], **values: str
    ) -> tuple[str, bytes, bytes]:
        """The columns `key_id`, `wrapped_key` and `sealed` of an upload."""
        values["params"] = msgspec.json.encode(params).decode()
        sealed = self._vault.seal(values, binding(organization_id, upload_id))
        return sealed.key_id, sealed.wrapped_key, sealed.sealed
