"""Sign-ins in progress at the provider; each can be completed once."""

from gateway.contract.oauth import SIGN_IN_SECONDS
from gateway.foundation.db.pool import Database

_INSERT = """
    INSERT INTO provider_sign_ins (state_hash, sealed, expires_at)
    VALUES ($1, $2, now() + make_interval(secs => $3))
"""
_TAKE = """
    DELETE FROM provider_sign_ins WHERE state_hash = $1
    RETURNING CASE WHEN expires_at > now() THEN sealed END
"""
_PRUNE = "DELETE FROM provider_sign_ins WHERE expires_at < now()"


class SignInStore:
    """Sealed sign-ins by the hash of their state."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, state_hash: bytes, sealed: str) -> None:
        async with self._database.system() as connection:
            await connection.execute(_INSERT, state_hash, sealed, SIGN_IN_SECONDS)

    async def take(self, state_hash: bytes) -> str | None:
        """Remove and return the sign-in; None if it is unknown, used or expired."""
        async with self._database.system() as connection:
            sealed: str | None = await connection.fetchval(_TAKE, state_hash)
        return sealed


async def prune_provider_sign_ins(database: Database) -> None:
    """Delete sign-ins that were not completed in time."""
    async with database.system() as connection:
        await connection.execute(_PRUNE)
