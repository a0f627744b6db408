"""Deletes expired rows in batches until none is left; several processes may do so at once."""

from gateway.db.pool import Database

#: rows of one statement, which has to end before its timeout
BATCH = 500


async def prune(database: Database, statement: str) -> int:
    """Run a statement that ends `LIMIT $1 FOR UPDATE SKIP LOCKED` until it finds less than a batch; rows in all.

    Several processes at once take different rows, so that together they are as fast as PostgreSQL.
    """
    total = 0
    while True:
        async with database.system() as connection:
            rows = int(str(await connection.execute(statement, BATCH)).rpartition(" ")[2])
        total += rows
        if rows < BATCH:
            return total
