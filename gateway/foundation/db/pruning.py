"""Deletes expired rows in batches until none is left; several processes may do so at once."""

from gateway.foundation.db.pool import Database

#: rows of one statement, which must finish before its timeout
BATCH = 500


async def prune(database: Database, statement: str) -> int:
    """Repeat a statement that ends with `LIMIT $1 FOR UPDATE SKIP LOCKED` until it finds less than a batch.

    Returns the number of rows. Concurrent processes take different rows.
    """
    total = 0
    while True:
        async with database.system() as connection:
            rows = int(str(await connection.execute(statement, BATCH)).rpartition(" ")[2])
        total += rows
        if rows < BATCH:
            return total
