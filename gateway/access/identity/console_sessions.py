"""Console sessions: a cookie, stored as its hash, that expires when it is not used."""

import hmac
from hashlib import sha256
from uuid import UUID

from gateway.access.identity.model import Caller
from gateway.access.identity.store import IdentityStore
from gateway.access.identity.tokens import hashed, new_secret
from gateway.foundation.db.pool import Database

#: seconds without a request after which a session expires
IDLE = 1800
#: maximum seconds of a session
LIFETIME = 43_200
#: keys of sent forms that a session remembers
_FORMS = 100

# Blocks a suspension of the person until the session is committed, so that the suspension finds it.
_INSERT = """
    INSERT INTO console_sessions (token_hash, organization_id, client_id)
    SELECT $1, $2, id FROM clients WHERE id = $3 AND disabled_at IS NULL FOR SHARE
"""
_USE = f"""
    UPDATE console_sessions SET seen_at = now()
    WHERE token_hash = $1 AND seen_at > now() - interval '{IDLE} seconds'
      AND created_at > now() - interval '{LIFETIME} seconds'
    RETURNING organization_id, client_id
"""
# The second of two concurrent forms waits for the row.
_SEND = f"""
    UPDATE console_sessions SET sent_forms = (ARRAY[$2::uuid] || sent_forms)[1:{_FORMS}]
    WHERE token_hash = $1 AND $2 <> ALL (sent_forms)
    RETURNING true
"""
_DELETE = "DELETE FROM console_sessions WHERE token_hash = $1"
_PRUNE = f"""
    DELETE FROM console_sessions
    WHERE seen_at < now() - interval '{IDLE} seconds' OR created_at < now() - interval '{LIFETIME} seconds'
"""


class ConsoleSessions:
    """The console sessions of people; each person acts as a client."""

    def __init__(self, database: Database, identity: IdentityStore, key: bytes) -> None:
        self._database = database
        self._identity = identity
        self._key = key

    async def begin(self, caller: Caller) -> str:
        """The cookie of a new session; one without a session if the person was suspended meanwhile."""
        token = new_secret()  # a new one each time, so that a cookie set before the sign-in is useless
        async with self._database.tenant(caller.organization_id) as connection:
            await connection.execute(_INSERT, hashed(token), caller.organization_id, caller.client_id)
        return token

    async def caller(self, token: str) -> Caller | None:
        """The caller of the session; None if the cookie is unknown or expired, or the person may no longer sign in."""
        async with self._database.system() as connection:
            row = await connection.fetchrow(_USE, hashed(token))
        return await self._identity.caller(row["client_id"], row["organization_id"]) if row else None

    async def end(self, token: str) -> None:
        async with self._database.system() as connection:
            await connection.execute(_DELETE, hashed(token))

    async def is_sent_first(self, token: str, form: UUID) -> bool:
        """Record that the session has sent this form; False if it has done so before."""
        async with self._database.system() as connection:
            return bool(await connection.fetchval(_SEND, hashed(token), form))

    def csrf_token(self, token: str) -> str:
        """The CSRF token of this session's forms."""
        return hmac.new(self._key, token.encode(), sha256).hexdigest()

    def is_csrf_token(self, token: str, csrf_token: str) -> bool:
        return hmac.compare_digest(self.csrf_token(token).encode(), csrf_token.encode())


async def prune_console_sessions(database: Database) -> None:
    """Delete expired sessions."""
    async with database.system() as connection:
        await connection.execute(_PRUNE)
