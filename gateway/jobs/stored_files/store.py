"""The files of jobs, each stored under the name of its job until the job's result expires."""

import hashlib
import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias
from uuid import UUID

import asyncpg

from gateway.errors import Conflict, UpstreamTooLarge
from gateway.foundation.db.pool import Connection, Database
from gateway.jobs.stored_files.blobs import Blob, Blobs, gone
from gateway.jobs.stored_files.model import STORED_HEADERS, StoredFile
from gateway.upstream.http_ranges.integrity import File

# A blob is needed while the run that writes it holds the job, and after that as long as the job's result is stored.
_NEEDED = """
    SELECT id, fence FROM jobs
    WHERE id = ANY ($1) AND (expires_at IS NULL OR expires_at > now())
      AND (status = 'running' OR (status = 'succeeded' AND result IS NOT NULL))
"""
_RUN = re.compile("[0-9]+")
#: the latest runs of a job whose files are removed with it; files of earlier ones are pruned
_REMOVED_RUNS = 100

# While an organization arrives, its files are stored before the rows of their jobs. Its lock is released after the rows
# are visible; the files of an import that was killed are pruned.
_LOCK_ARRIVING = "SELECT pg_advisory_xact_lock(hashtext('arriving organizations'), hashtext($1))"
_LOCK_PRESENT = """
    SELECT organization_id FROM unnest($1::text[]) AS organization_id
    WHERE pg_try_advisory_xact_lock_shared(hashtext('arriving organizations'), hashtext(organization_id))
"""


#: a job and the fence of one of its runs
Run: TypeAlias = tuple[UUID, int]


class Progress(Protocol):
    """Receives the progress of a file."""

    async def progress(self, done: int, total: int | None, message: str) -> None:
        """Record the progress; raises JobCanceled if the job was canceled."""


class StoredFiles:
    """Stores, opens and deletes the files of jobs."""

    def __init__(self, blobs: Blobs, database: Database, cap: int) -> None:
        self._blobs = blobs
        self._database = database
        #: maximum bytes of a file
        self.cap = cap

    async def save(self, organization_id: UUID, job_id: UUID, fence: int, file: File, progress: Progress) -> StoredFile:
        """Store the file for a job's run; raises UpstreamTooLarge and the errors of reading the file."""
        self.require_size(file.size or 0)
        name = _name(organization_id, (job_id, fence))
        digest, size = hashlib.sha256(), 0

        async def counted() -> AsyncIterator[bytes]:
            nonlocal size
            async for chunk in file:
                size += len(chunk)
                self.require_size(size)
                digest.update(chunk)
                await progress.progress(size, file.size, f"{size} bytes stored")
                yield chunk

        await self._blobs.put(name, counted())
        headers = {header: file.headers[header] for header in STORED_HEADERS if header in file.headers}
        return StoredFile(name, size, digest.hexdigest(), headers)

    def require_size(self, size: int) -> None:
        """Raise UpstreamTooLarge if a file of that many bytes is too large to store."""
        if size > self.cap:
            raise UpstreamTooLarge(f"the file is larger than the {self.cap} bytes that are stored; stream it instead")

    def open(self, organization_id: UUID, job_id: UUID, file: StoredFile) -> AbstractAsyncContextManager[Blob]:
        """The stored bytes of a job; raises ResultExpired if they were deleted, or are not those of the job.

        The description may come from the file of an organization that was moved here.
        """
        before, _, run = file.blob.rpartition(".")
        if before != f"{organization_id}/{job_id}" or not _RUN.fullmatch(run):
            raise gone()
        return self._blobs.open(file.blob, file.size)

    async def put(self, organization_id: UUID, run: Run, chunks: AsyncIterator[bytes]) -> None:
        """Store the file of a job that arrives with its organization, whose arrival the caller holds."""
        await self._blobs.put(_name(organization_id, run), chunks)

    async def free(self) -> int | None:
        """How many bytes may be added; None if there is no limit that can be read."""
        return await self._blobs.free()

    async def hold_arrival(self, connection: Connection, organization_id: UUID) -> None:
        """Keep files of the organization, whose jobs are not visible yet, until the connection's transaction ends.

        Raises Conflict if another process does so.
        """
        await connection.execute("SET LOCAL lock_timeout = '5s'")
        try:
            await connection.execute(_LOCK_ARRIVING, str(organization_id))
        except asyncpg.LockNotAvailableError as error:
            raise Conflict(f"another process imports the organization {organization_id}; wait for its end") from error
        await connection.execute("SET LOCAL lock_timeout = DEFAULT")

    async def remove(self, organization_id: UUID, jobs: Sequence[Run]) -> None:
        """Delete the files that the latest runs of these jobs, each with its last fence, have stored."""
        runs = [(job_id, run) for job_id, fence in jobs for run in range(max(1, fence - _REMOVED_RUNS + 1), fence + 1)]
        await self.discard(organization_id, runs)

    async def discard(self, organization_id: UUID, runs: Collection[Run]) -> None:
        """Delete the files of these runs."""
        await self._blobs.delete([_name(organization_id, run) for run in runs])

    async def prune(self) -> None:
        """Delete files that no job needs: expired results, and incomplete files of killed workers."""
        async for names in self._blobs.names():
            runs = {name: run for name in names if (run := _run_of(name)) is not None}
            async with self._database.system() as connection:
                unneeded = await unneeded_runs(connection, [*runs.values()])
                if unneeded:
                    await self._delete_unneeded(
                        connection, {name: runs[name] for name in runs if runs[name] in unneeded}
                    )

    async def _delete_unneeded(self, connection: Connection, runs: Mapping[str, Run]) -> None:
        """Delete those of organizations that do not arrive; they cannot begin to until the end."""
        owners = {name.partition("/")[0] for name in runs}
        async with connection.transaction():
            present = {row["organization_id"] for row in await connection.fetch(_LOCK_PRESENT, [*owners])}
            unneeded = await unneeded_runs(connection, runs.values())
            await self._blobs.delete(
                [name for name, run in runs.items() if run in unneeded and name.partition("/")[0] in present]
            )


async def unneeded_runs(connection: Connection, runs: Collection[Run]) -> set[Run]:
    """Those of the runs whose file no job needs."""
    rows = await connection.fetch(_NEEDED, [job_id for job_id, _ in runs])
    return set(runs) - {(row["id"], row["fence"]) for row in rows}


def _name(organization_id: UUID, run: Run) -> str:
    """The name of the file that a run of a job has stored."""
    job_id, fence = run
    return f"{organization_id}/{job_id}.{fence}"


def _run_of(name: str) -> Run | None:
    """The job and the fence in a blob's name; None for a name that the gateway did not write."""
    job_id, _, fence = name.rpartition("/")[2].partition(".")
    try:
        return UUID(job_id), int(fence)
    except ValueError:
        return None
