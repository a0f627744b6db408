"""The operations of batches in PostgreSQL: stored in parts while they are received, and read when they are run."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from gateway.foundation.db.pool import Database
from gateway.jobs.leases import LARGE_TIMEOUT
from gateway.jobs.model import JobSummary
from gateway.jobs.sealing import JobKey, JobSealing
from gateway.operations.batches.grouping import Numbered
from gateway.operations.batches.model import StoredOperation

# The request may end without a job; then these rows are deleted or pruned.
_STORE = "INSERT INTO batch_inputs (organization_id, job_id, first_index, lines) VALUES ($1, $2, $3, $4)"
_DISCARD = "DELETE FROM batch_inputs WHERE organization_id = $1 AND job_id = $2"
# The part with an operation, then the next parts, one at a time, so that no connection is held while they run.
_FROM = """
    SELECT first_index, lines FROM batch_inputs
    WHERE organization_id = $1 AND job_id = $2 AND first_index >= COALESCE((
        SELECT max(first_index) FROM batch_inputs WHERE organization_id = $1 AND job_id = $2 AND first_index <= $3), 0)
    ORDER BY first_index LIMIT 1
"""
_DECODER = msgspec.json.Decoder(StoredOperation)


class BatchInputs:
    """The stored operations, sealed with the data key of their job."""

    def __init__(self, database: Database, sealing: JobSealing) -> None:
        self._database = database
        self._sealing = sealing

    async def store(self, key: JobKey, first: int, lines: str) -> None:
        """Store operations as JSON lines; `first` is the index of the first."""
        sealed = self._sealing.seal(key, _field(first), lines)
        async with self._database.tenant(key.organization_id) as connection:
            await connection.execute(_STORE, key.organization_id, key.id, first, sealed, timeout=LARGE_TIMEOUT)

    async def discard(self, key: JobKey) -> None:
        """Delete the operations of a batch that no job runs."""
        async with self._database.tenant(key.organization_id) as connection:
            await connection.execute(_DISCARD, key.organization_id, key.id)

    async def operation(self, job: JobSummary, index: int) -> StoredOperation:
        """The operation at an index."""
        async with aclosing(self.operations(job, index + 1, index)) as operations:
            return (await anext(operations))[1]

    async def operations(self, job: JobSummary, end: int, first: int = 0) -> AsyncGenerator[Numbered, None]:
        """The operations from `first` to before `end`, with their indexes; only one part is in memory."""
        async with aclosing(self.parts(job, end, first)) as parts:
            async for part in parts:
                for numbered in part:
                    yield numbered

    async def parts(self, job: JobSummary, end: int, first: int = 0) -> AsyncGenerator[list[Numbered], None]:
        """The operations from `first` to before `end`, in their stored parts."""
        index = first
        while index < end:
            async with self._database.tenant(job.organization_id) as connection:
                row = await connection.fetchrow(_FROM, job.organization_id, job.id, index, timeout=LARGE_TIMEOUT)
            text = self._sealing.open(job, _field(row["first_index"]), row["lines"])
            lines = enumerate(text.rstrip("\n").split("\n"), row["first_index"])
            part = [(number, _DECODER.decode(line)) for number, line in lines if index <= number < end]
            index = part[-1][0] + 1
            yield part


def _field(first: int) -> str:
    """The field name of one part, so that sealed parts cannot be swapped."""
    return f"input {first}"
