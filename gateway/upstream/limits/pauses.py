"""Pauses of rate scopes in PostgreSQL, for processes that start later or cannot reach Redis."""

from collections.abc import Sequence

from gateway.errors import Unavailable
from gateway.foundation.db.pool import Database
from gateway.upstream.refusals import LONGEST_WAIT

_SAVE = """
    INSERT INTO rate_pauses AS pause (scope_id, paused_until) VALUES ($1, now() + make_interval(secs => $2))
    ON CONFLICT (scope_id) DO UPDATE
    SET paused_until = LEAST(GREATEST(pause.paused_until, EXCLUDED.paused_until), now() + make_interval(secs => $3))
"""
# A longer pause was stored by an earlier release, which believed any `Retry-After`.
_LEFT = """
    SELECT scope_id, extract(epoch FROM paused_until - now())::float8 AS seconds FROM rate_pauses
    WHERE paused_until > now() AND paused_until <= now() + make_interval(secs => $2)
      AND ($1::text[] IS NULL OR scope_id = ANY($1))
"""


class Pauses:
    """The `Retry-After` pauses of rate scopes; empty while PostgreSQL is unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, scope_id: str, seconds: float) -> None:
        try:
            async with self._database.system() as connection:
                await connection.execute(_SAVE, scope_id, min(seconds, LONGEST_WAIT), LONGEST_WAIT)
        except Unavailable:
            return

    async def left(self, scope_ids: Sequence[str] | None = None) -> dict[str, float]:
        """Seconds left of each pause, of these scopes or of all."""
        try:
            async with self._database.system() as connection:
                rows = await connection.fetch(_LEFT, scope_ids, LONGEST_WAIT)
                return {row["scope_id"]: row["seconds"] for row in rows}
        except Unavailable:
            return {}
