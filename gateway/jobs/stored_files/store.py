"""The files of jobs, each stored under the name of its job until the job's result expires."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from uuid import UUID

from gateway.errors import UpstreamTooLarge
from gateway.foundation.db.pool import Database
from gateway.jobs.stored_files.blobs import Blob, Blobs
from gateway.jobs.stored_files.model import StoredFile
from gateway.upstream.http_ranges.integrity import File

# A blob is needed while the run that writes it holds the job, and after that as long as the job's result is stored.
_NEEDED = """
    SELECT id, fence FROM jobs
    WHERE id = ANY ($1) AND (expires_at IS NULL OR expires_at > now())
      AND (status = 'running' OR (status = 'succeeded' AND result IS NOT NULL))
"""
_STORED_HEADERS = ("Content-Type", "Content-Disposition", "Content-Encoding", "Last-Modified")


class Progress(Protocol):
    """Receives the progress of a file."""

    async def progress(self, done: int, total: int | None, message: str) -> None:
        """Record the progress; raises JobCanceled if the job was canceled."""


class StoredFiles:
    """Stores, opens and deletes the files of jobs."""

    def __init__(self, blobs: Blobs, database: Database, cap: int) -> None:
        self._blobs = blobs
        self._database = database
        self._cap = cap

    async def save(self, organization_id: UUID, job_id: UUID, fence: int, file: File, progress: Progress) -> StoredFile:
        """Store the file for a job's run; raises UpstreamTooLarge and the errors of reading the file."""
        self.require_size(file.size or 0)
        name = f"{organization_id}/{job_id}.{fence}"
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
        headers = {header: file.headers[header] for header in _STORED_HEADERS if header in file.headers}
        return StoredFile(name, size, digest.hexdigest(), headers)

    def require_size(self, size: int) -> None:
        """Raise UpstreamTooLarge if a file of that many bytes is too large to store."""
        if size > self._cap:
            raise UpstreamTooLarge(f"the file is larger than the {self._cap} bytes that are stored; stream it instead")

    def open(self, file: StoredFile) -> AbstractAsyncContextManager[Blob]:
        """The stored bytes; raises ResultExpired if they were deleted."""
        return self._blobs.open(file.blob, file.size)

    async def remove(self, organization_id: UUID, jobs: Sequence[tuple[UUID, int]]) -> None:
        """Delete the files that the runs of these jobs, each with its last fence, have stored."""
        names = [f"{organization_id}/{job_id}.{run}" for job_id, fence in jobs for run in range(1, fence + 1)]
        await self._blobs.delete(names)

    async def prune(self) -> None:
        """Delete files that no job needs: expired results, and incomplete files of killed workers."""
        async for names in self._blobs.names():
            runs = {name: run for name in names if (run := _run_of(name)) is not None}
            async with self._database.system() as connection:
                rows = await connection.fetch(_NEEDED, [job_id for job_id, _ in runs.values()])
            runs_to_keep = {(row["id"], row["fence"]) for row in rows}
            await self._blobs.delete([name for name, run in runs.items() if run not in runs_to_keep])


def _run_of(name: str) -> tuple[UUID, int] | None:
    """The job and the fence in a blob's name; None for a name that the gateway did not write."""
    job_id, _, fence = name.rpartition("/")[2].partition(".")
    try:
        return UUID(job_id), int(fence)
    except ValueError:
        return None
