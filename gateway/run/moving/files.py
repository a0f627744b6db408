"""Stored files of an organization's jobs: into its sealed file, and from it into the store of another gateway."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from gateway.errors import Conflict, InternalError, InvalidParams, ResultExpired
from gateway.foundation.db.pool import Connection, Database
from gateway.jobs.model import EXPORT_TASK
from gateway.jobs.sealing import JobKey, JobSealing
from gateway.jobs.stored_files.model import StoredFile
from gateway.jobs.stored_files.store import Run, StoredFiles, unneeded_runs
from gateway.run.moving.document import Contents, FileEnd, Line, LostFile, MovedFile, line_of, part_line
from gateway.upstream.download import ACTION as DOWNLOAD
from gateway.upstream.http_ranges.ranges import Slice

#: jobs of one statement
_BATCH = 100
#: bytes that a file counts at least, because a small one takes room too
_LEAST = 64 << 10
#: bytes of stored files that an import accepts, unless the operator says otherwise
MAX_BYTES = 100 << 30

_WITH_FILES = f"""
    SELECT id FROM jobs
    WHERE organization_id = $1 AND status = 'succeeded' AND result IS NOT NULL
      AND (action = '{DOWNLOAD}' OR task = '{EXPORT_TASK}') AND (expires_at IS NULL OR expires_at > now())
    ORDER BY created_at, id
"""
_RESULTS = """
    SELECT id, fence, key_id, wrapped_key, result FROM jobs
    WHERE organization_id = $1 AND id = ANY ($2::uuid[]) AND result IS NOT NULL ORDER BY created_at, id
"""


@dataclass(frozen=True, kw_only=True)
class DepartingFiles:
    """Reads the stored files of jobs."""

    database: Database
    sealing: JobSealing
    files: StoredFiles

    async def jobs(self, connection: Connection, organization_id: UUID) -> list[UUID]:
        """The jobs that have ended with a stored file."""
        return [row["id"] for row in await connection.fetch(_WITH_FILES, organization_id)]

    async def lines(self, organization_id: UUID, jobs: Sequence[UUID], contents: Contents) -> AsyncIterator[bytes]:
        """The lines of the files of these jobs; counts them. Raises Unavailable if the store does not answer."""
        for start in range(0, len(jobs), _BATCH):
            async with self.database.tenant(organization_id) as connection:
                rows = await connection.fetch(_RESULTS, organization_id, jobs[start : start + _BATCH])
            for row in rows:
                described = self._described(organization_id, row)
                if described is None:
                    contents.lost_files.append(LostFile(job_id=row["id"], reason="missing"))
                    continue
                stored, moved = described
                end: FileEnd = "whole"
                yield line_of(Line(file=moved))
                async for part in self._parts(organization_id, stored, moved):
                    if isinstance(part, bytes):
                        yield part_line(part)
                    else:
                        end = part.reason
                yield line_of(Line(file_end=end))
                contents.add(moved, end)

    async def _parts(
        self, organization_id: UUID, stored: StoredFile, moved: MovedFile
    ) -> AsyncIterator[bytes | LostFile]:
        """The bytes; after them, or in their place, why they are not those that were stored."""
        digest = hashlib.sha256()
        try:
            async with self.files.open(organization_id, moved.job_id, stored) as blob:
                if moved.size:
                    async for part in blob.read(Slice(0, moved.size - 1)):
                        digest.update(part)
                        yield part
        except ResultExpired:
            yield LostFile(job_id=moved.job_id, reason="missing")
            return
        if digest.hexdigest() != moved.sha256:
            yield LostFile(job_id=moved.job_id, reason="changed")

    def _described(self, organization_id: UUID, row: Any) -> tuple[StoredFile, MovedFile] | None:
        """The file as its job's result describes it; None for a result that describes none."""
        key = JobKey(organization_id, row["id"], row["key_id"], row["wrapped_key"])
        try:
            head = msgspec.json.decode(self.sealing.open(key, "result", row["result"]))
            stored = msgspec.convert(head["result"], StoredFile)
            members = {"job_id": row["id"], "fence": row["fence"], "size": stored.size, "sha256": stored.sha256}
            return stored, msgspec.convert(members, MovedFile)
        except (InternalError, msgspec.MsgspecError, LookupError, TypeError):
            return None


@dataclass(frozen=True, kw_only=True)
class FileLimits:
    """Which stored files of an export are imported."""

    is_wanted: bool = True
    #: bytes of all of them
    max_bytes: int = MAX_BYTES


@asynccontextmanager
async def arriving_files(
    files: StoredFiles, connection: Connection, organization_id: UUID, limits: FileLimits
) -> AsyncIterator["ArrivingFiles"]:
    """The files of an import within the connection's transaction; none is left if the block raises an error.

    Raises Conflict if another process imports the organization. If PostgreSQL is lost, or the process is killed, a
    worker prunes them: another import may have stored them again.
    """
    await files.hold_arrival(connection, organization_id)
    arriving = ArrivingFiles(files, organization_id, limits)
    try:
        yield arriving
    except BaseException:
        if not connection.is_closed():
            await arriving.discard()
        raise


class ArrivingFiles:
    """Stores the files of an import, each under the name of its job and run in the organization's folder."""

    def __init__(self, files: StoredFiles, organization_id: UUID, limits: FileLimits) -> None:
        self._files = files
        self._organization_id = organization_id
        self._limits = limits
        self._stored: set[Run] = set()
        self._bytes = 0
        self.contents = Contents()

    async def other_lines(self, lines: AsyncIterator[Line | bytes]) -> AsyncIterator[Line]:
        """The lines that are not of files, which are stored on the way.

        Raises InvalidParams for a file that is not as its line states, and Conflict for one that has no room.
        """
        async for line in lines:
            if isinstance(line, bytes) or line.file_end is not None:
                raise InvalidParams("the file has bytes of no stored file")
            if line.file is None:
                yield line
            else:
                await self._take(line.file, lines)

    async def discard_unneeded(self, connection: Connection) -> None:
        """Delete the files of jobs that were not imported, such as those that expired during the export."""
        unneeded = await unneeded_runs(connection, self._stored)
        await self._files.discard(self._organization_id, unneeded)
        self._stored -= unneeded

    async def discard(self) -> None:
        """Delete all that were stored."""
        await self._files.discard(self._organization_id, self._stored)

    async def _take(self, file: MovedFile, lines: AsyncIterator[Line | bytes]) -> None:
        parts = _parts(file, lines)
        try:
            if self._limits.is_wanted:
                await self._store(file, parts)
            else:
                async for _ in parts:
                    pass
        except _Lost as lost:
            self._stored.discard((file.job_id, file.fence))
            self.contents.add(file, lost.reason)
        else:
            self.contents.add(file, "whole")

    async def _store(self, file: MovedFile, parts: AsyncIterator[bytes]) -> None:
        run = (file.job_id, file.fence)
        if run in self._stored:
            raise InvalidParams(f"the file has the stored file of the job {file.job_id} twice")
        await self._require_room(file)
        self._stored.add(run)
        await self._files.put(self._organization_id, run, parts)

    async def _require_room(self, file: MovedFile) -> None:
        """Raise Conflict if the file is larger than a file may be here, or than the room that is left."""
        self._bytes += max(file.size, _LEAST)
        free = await self._files.free()
        reason = None
        if file.size > self._files.cap:
            reason = f"this gateway stores {self._files.cap} bytes at most (GATEWAY_MAX_FILE_BYTES)"
        elif self._bytes > self._limits.max_bytes:
            reason = f"all of them may have {self._limits.max_bytes} bytes together; allow more with --files-limit"
        elif free is not None and file.size > free:
            reason = f"the disk has room for {free} bytes"
        if reason is not None:
            raise Conflict(
                f"the file brings {file.size} bytes as the stored file of the job {file.job_id}, and {reason}; to "
                "import the organization without stored files, add --without-files"
            )


class _Lost(Exception):
    """The gateway that exported a file did not have its bytes."""

    def __init__(self, reason: FileEnd) -> None:
        self.reason = reason


async def _parts(file: MovedFile, lines: AsyncIterator[Line | bytes]) -> AsyncIterator[bytes]:
    """The bytes of the file; raises InvalidParams unless they are as its line states."""
    digest, left = hashlib.sha256(), file.size
    async for line in lines:
        if isinstance(line, Line):
            if line.file_end in ("missing", "changed"):
                raise _Lost(line.file_end)
            if line.file_end is None or left or digest.hexdigest() != file.sha256:
                break
            return
        left -= len(line)
        if left < 0:
            break
        digest.update(line)
        yield line
    raise InvalidParams(f"the stored file of the job {file.job_id} does not have the bytes that the file states")
