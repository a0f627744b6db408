"""Stored downloads: what is kept of a file, and for how long a job vouches for it."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import msgspec
import pytest

from gateway.errors import Conflict, JobCanceled, ResultExpired, UpstreamTooLarge
from gateway.foundation.db.pool import Database
from gateway.jobs.stored_files.blobs import FolderBlobs, read_all
from gateway.jobs.stored_files.model import StoredFile
from gateway.jobs.stored_files.store import StoredFiles
from gateway.upstream.http_ranges.integrity import File
from gateway.upstream.http_ranges.ranges import Slice

BYTES = b"0123456789"
LABELS = {"Content-Type": "text/plain", "Content-Disposition": "attachment", "Last-Modified": "x", "ETag": '"theirs"'}


class Told:
    """Notes what it is told of progress; cancels once so many bytes are there."""

    def __init__(self, cancel_at: int | None = None) -> None:
        self.told: list[tuple[int, int | None]] = []
        self._cancel_at = cancel_at

    async def progress(self, done: int, total: int | None, message: str) -> None:
        self.told.append((done, total))
        if self._cancel_at is not None and done >= self._cancel_at:
            raise JobCanceled


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def files(database: Database, folder: Path) -> StoredFiles:
    return StoredFiles(FolderBlobs(folder), database, cap=10)


@pytest.fixture
async def organization(database: Database) -> UUID:
    organization_id = uuid4()
    async with database.system() as connection:
        await connection.execute(
            "INSERT INTO organizations (id, name) VALUES ($1, $2)", organization_id, organization_id.hex
        )
    return organization_id


def file(body: bytes = BYTES, size: int | None = None) -> File:
    async def pieces() -> AsyncIterator[bytes]:
        yield body[:5]
        yield body[5:]

    return File(200, LABELS, size, pieces())


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*/*"))


async def test_a_file_is_kept_with_its_checksum_and_labels(files: StoredFiles):
    told = Told()
    organization_id, job_id = uuid4(), uuid4()

    stored = await files.save(organization_id, job_id, 1, file(size=10), told)

    assert (stored.size, stored.sha256) == (10, hashlib.sha256(BYTES).hexdigest())
    assert stored.headers["ETag"] == f'"{stored.sha256}"'
    assert stored.headers["Content-Type"] == "text/plain"
    assert told.told == [(5, 10), (10, 10)]
    assert StoredFile(**msgspec.json.decode(msgspec.json.encode(stored))) == stored
    async with files.open(organization_id, job_id, stored) as blob:
        assert b"".join([piece async for piece in read_all(blob, [Slice(2, 4)])]) == b"234"


@pytest.mark.parametrize("size", [None, 11])
async def test_a_file_beyond_the_cap_is_not_kept(files: StoredFiles, folder: Path, size: int | None):
    with pytest.raises(UpstreamTooLarge, match="stream it instead"):
        await files.save(uuid4(), uuid4(), 1, file(BYTES + b"x", size), Told())

    assert kept(folder) == []


async def test_a_file_that_is_no_longer_needed_is_not_kept(files: StoredFiles, folder: Path):
    with pytest.raises(JobCanceled):
        await files.save(uuid4(), uuid4(), 1, file(), Told(cancel_at=5))

    assert kept(folder) == []


@pytest.mark.parametrize(
    ("job", "is_kept"),
    [
        ("'running', 1, NULL, NULL", True),
        ("'running', 2, NULL, NULL", False),
        ("'queued', 1, NULL, NULL", False),
        ("'succeeded', 1, '{}', now() + interval '1 hour'", True),
        ("'succeeded', 1, '{}', now() - interval '1 second'", False),
        ("'succeeded', 1, NULL, now() + interval '1 hour'", False),
        ("'failed', 1, NULL, now() + interval '1 hour'", False),
    ],
)
async def test_a_file_is_kept_for_as_long_as_its_job_vouches_for_it(
    files: StoredFiles, database: Database, organization: UUID, job: str, is_kept: bool
):
    job_id = uuid4()
    stored = await files.save(organization, job_id, 1, file(), Told())
    async with database.system() as connection:
        await connection.execute(
            "INSERT INTO jobs (id, organization_id, status, fence, result, expires_at) "
            "SELECT $1, $2, status, fence, result, expires_at::timestamptz "
            f"FROM (VALUES ({job})) AS job (status, fence, result, expires_at)",
            job_id,
            organization,
        )

    await files.prune()

    assert await is_there(files, stored) is is_kept


async def test_a_file_without_a_job_goes(files: StoredFiles):
    stored = await files.save(uuid4(), uuid4(), 1, file(), Told())

    await files.prune()

    assert not await is_there(files, stored)


async def is_there(files: StoredFiles, stored: StoredFile) -> bool:
    try:
        owner, _, _ = stored.blob.rpartition(".")
        organization_id, job_id = map(UUID, owner.split("/"))
        async with files.open(organization_id, job_id, stored):
            return True
    except ResultExpired:
        return False


async def test_what_a_killed_worker_left_half_written_goes_too(files: StoredFiles, folder: Path):
    left = folder / str(uuid4()) / f"{uuid4()}.1.part"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")

    await files.prune()

    assert kept(folder) == []


async def test_what_is_none_of_ours_stays(files: StoredFiles, folder: Path):
    other = folder / "lost+found" / "note"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"mine")

    await files.prune()

    assert kept(folder) == ["note"]


async def test_a_file_of_an_organization_that_arrives_stays_until_its_jobs_are_there(
    files: StoredFiles, database: Database
):
    organization_id = uuid4()
    async with database.system() as connection, connection.transaction():
        await files.hold_arrival(connection, organization_id)
        stored = await files.save(organization_id, uuid4(), 1, file(), Told())
        await files.prune()
        held = await is_there(files, stored)
        with pytest.raises(Conflict, match="another process imports"):
            async with database.system() as other, other.transaction():
                await files.hold_arrival(other, organization_id)

    await files.prune()

    assert (held, await is_there(files, stored)) == (True, False)


async def test_the_removal_of_a_job_with_any_number_of_runs_is_quick(files: StoredFiles):
    organization_id, job_id, fence = uuid4(), uuid4(), 2**62
    stored = await files.save(organization_id, job_id, fence, file(), Told())

    await files.remove(organization_id, [(job_id, fence)])

    assert not await is_there(files, stored)
