"""The stored files of an organization move with it: with the same bytes, in bounded memory, and whole or not at all."""

import asyncio
import hashlib
import os
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import PIPE
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from gateway.errors import Conflict, GatewayError
from gateway.foundation.vault.sealed_file import Lock, SealedWriter, recipient_key, recipients_of, sealed_lines
from gateway.jobs.stored_files.blobs import Blobs, FolderBlobs, read_all
from gateway.jobs.stored_files.store import StoredFiles
from gateway.run.moving.document import Contents, part_line, part_of
from gateway.run.moving.files import FileLimits
from gateway.upstream.http_ranges.ranges import Slice
from tests.harness.buckets import bucket_blobs, bucket_served
from tests.harness.caller import Answer, Api
from tests.harness.command_line import invoked
from tests.harness.in_process import FrontEnd
from tests.harness.processes import GATEWAY
from tests.harness.waiting import eventually
from tests.web.test_organization_deletion import busy  # noqa: F401  a fixture
from tests.web.test_organization_move import (  # noqa: F401  fixtures
    Moving,
    arrival_of,
    departure_of,
    elsewhere,
    environment_of,
    lines_of,
    moving,
)
from tests.web.test_policies import run_jobs

LARGE = 64 << 20


@dataclass(frozen=True)
class Sample:
    """A job with a stored file, and the file's bytes."""

    job: str
    content: bytes

    def name(self, organization_id: UUID) -> str:
        return f"{organization_id}/{self.job}.1"


async def downloaded(moving: Moving, attachment: int) -> Sample:  # noqa: F811
    job = await moving.busy.desk.submit("attachments", "download", {"attachment_id": attachment})
    await run_jobs(moving.busy.front)
    return Sample(job["id"], (await moving.busy.admin.get(f"/api/v1/jobs/{job['id']}/result")).body)


@pytest.fixture
async def sample(moving: Moving) -> Sample:  # noqa: F811
    return await downloaded(moving, 2)


def folder_of(front: FrontEnd) -> Path:
    return front.services.settings.data_dir / "blobs"


def stored_in(front: FrontEnd, organization_id: UUID) -> list[str]:
    return sorted(path.name for path in folder_of(front).glob(f"{organization_id}/*"))


async def test_the_result_of_an_old_job_is_the_same_file_after_the_move(moving: Moving, sample: Sample):  # noqa: F811
    async with moving.here() as api:
        jobs = [job["id"] for job in (await api.get("/api/v1/jobs")).document()["data"] if job["action"] == "list"]
        export = next(each for each in jobs if f"{each}.1" in stored_in(moving.busy.front, moving.busy.id))
        before = await results(api, sample.job, export)

    await moving.move()

    async with moving.there() as api:
        after = await results(api, sample.job, export)
    assert [each.status for each in after] == [200, 206, 200]
    assert [each.body for each in after] == [each.body for each in before]
    assert [each.headers["ETag"] for each in after] == [each.headers["ETag"] for each in before]
    assert after[1].body == sample.content[10:30]
    assert stored_in(moving.target, moving.busy.id) == stored_in(moving.busy.front, moving.busy.id)


async def results(api: Api, download: str, export: str) -> list[Answer]:
    path = f"/api/v1/jobs/{download}/result"
    part = await api.get(path, headers={"Range": "bytes=10-29"})
    return [await api.get(path), part, await api.get(f"/api/v1/jobs/{export}/result")]


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    with bucket_served() as config:
        yield config


@pytest.mark.parametrize(("source", "target"), [("folder", "bucket"), ("bucket", "folder"), ("bucket", "bucket")])
async def test_files_move_between_folders_and_buckets(
    moving: Moving,  # noqa: F811
    sample: Sample,
    bucket: dict[str, str],
    tmp_path: Path,
    source: str,
    target: str,
):
    def blobs_of(kind: str, name: str) -> Blobs:
        return FolderBlobs(tmp_path / name) if kind == "folder" else bucket_blobs(bucket, f"{tmp_path.name}-{name}")

    here, there = blobs_of(source, "here"), blobs_of(target, "there")
    name = sample.name(moving.busy.id)
    await here.put(name, _pieces(sample.content))
    departure, arrival = departure_of(moving.busy.front), arrival_of(moving.target)
    files = StoredFiles(here, moving.busy.front.services.database, 1 << 30)
    departure = replace(departure, files=replace(departure.files, files=files))
    arrival = replace(arrival, files=StoredFiles(there, moving.target.services.database, 1 << 30))

    await arrival.read(await lines_of(departure, moving.busy.id))

    async with there.open(name, len(sample.content)) as blob:
        whole = [Slice(0, len(sample.content) - 1)]
        assert b"".join([piece async for piece in read_all(blob, whole)]) == sample.content


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def test_missing_and_changed_files_are_named_and_stop_nothing(moving: Moving, sample: Sample):  # noqa: F811
    changed, missing = await downloaded(moving, 3), await downloaded(moving, 4)
    folder = folder_of(moving.busy.front)
    (folder / changed.name(moving.busy.id)).write_bytes(changed.content[:-1] + b"\0")
    (folder / missing.name(moving.busy.id)).unlink()
    contents = Contents()

    lines = await lines_of(departure_of(moving.busy.front), moving.busy.id, contents)
    _, arrived = await arrival_of(moving.target).read(lines)

    lost = {str(each.job_id): each.reason for each in contents.lost_files}
    assert lost == {changed.job: "changed", missing.job: "missing"}
    assert arrived == contents
    async with moving.there() as api:
        found = {
            each.job: (await api.get(f"/api/v1/jobs/{each.job}/result")).status for each in (sample, changed, missing)
        }
    assert found == {sample.job: 200, changed.job: 410, missing.job: 410}


async def test_files_of_ended_jobs_are_copied_before_writes_are_refused(moving: Moving, sample: Sample):  # noqa: F811
    lines, later, copied = [], [], []

    async def freeze() -> None:
        copied.extend(_jobs_of(lines))
        later.append(await downloaded(moving, 5))

    async for line in departure_of(moving.busy.front).lines(moving.busy.id, Contents(), freeze=freeze):
        lines.append(line.removesuffix(b"\n"))
    await arrival_of(moving.target).read(lines)

    assert sample.job in copied
    assert _jobs_of(lines)[len(copied) :] == [later[0].job]
    async with moving.there() as api:
        assert (await api.get(f"/api/v1/jobs/{later[0].job}/result")).body == later[0].content


def _jobs_of(lines: list[bytes]) -> list[str]:
    """The jobs whose files are in the lines."""
    documents = [msgspec.json.decode(line) for line in lines if part_of(line) is None]
    return [each["file"]["job_id"] for each in documents if "file" in each]


async def test_of_two_imports_at_a_time_one_is_done_and_keeps_its_files(moving: Moving, sample: Sample):  # noqa: F811
    lines = await lines_of(departure_of(moving.busy.front), moving.busy.id)
    services = moving.target.services

    async with services.database.system() as connection, connection.transaction():
        await services.jobs.files.hold_arrival(connection, moving.busy.id)
        imports = [asyncio.create_task(arrival_of(moving.target).read(lines)) for _ in range(2)]

        async def both_wait() -> bool:
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            return bool(await connection.fetchval(waiting) == 2)

        await eventually(both_wait)
    ended = await asyncio.gather(*imports, return_exceptions=True)

    [refused] = [each for each in ended if isinstance(each, BaseException)]
    assert isinstance(refused, Conflict)
    async with moving.there() as api:
        assert (await api.get(f"/api/v1/jobs/{sample.job}/result")).body == sample.content


async def test_an_import_without_files_stores_none(moving: Moving, sample: Sample):  # noqa: F811
    lines = await lines_of(departure_of(moving.busy.front), moving.busy.id)

    _, contents = await arrival_of(moving.target).read(lines, limits=FileLimits(is_wanted=False))

    assert contents.files == 0
    assert stored_in(moving.target, moving.busy.id) == []
    async with moving.there() as api:
        assert (await api.get(f"/api/v1/jobs/{sample.job}/result")).status == 410


async def test_the_command_imports_files_within_a_limit_or_none(moving: Moving, sample: Sample, tmp_path: Path):  # noqa: F811
    (tmp_path / "acme.sealed").write_bytes(await moving.exported())
    importing = ("import-organization", "acme.sealed", "-o", "json")
    environment = environment_of(moving.target)

    refused = await invoked(*importing, "--files-limit", "65536", environment=environment, directory=tmp_path)
    imported = await invoked(*importing, "--without-files", environment=environment, directory=tmp_path)

    assert refused.code == 1
    assert "--without-files" in refused.err
    assert imported.code == 0, imported.err
    assert imported.json()["files"] == {"stored": 0, "bytes": 0, "lost": []}
    assert stored_in(moving.target, moving.busy.id) == []


class Forged:
    """The lines of a file, of which a test changes those of a stored file."""

    def __init__(self, lines: list[bytes], job: str) -> None:
        self.lines = list(lines)
        self.at = next(place for place, line in enumerate(lines) if job.encode() in line)

    def change(self, **members: Any) -> None:
        document = msgspec.json.decode(self.lines[self.at])
        document["file"].update(members)
        self.lines[self.at] = msgspec.json.encode(document)

    def part(self, content: bytes) -> None:
        self.lines[self.at + 1] = part_line(content)[:-1]

    def repeat(self) -> None:
        end = next(place for place in range(self.at, len(self.lines)) if b'"file_end"' in self.lines[place])
        self.lines[self.at : self.at] = self.lines[self.at : end + 1]

    def add(self, place: int, line: bytes) -> None:
        self.lines.insert(place, line)

    def state(self, **members: Any) -> None:
        document = msgspec.json.decode(self.lines[-1])
        document["end"].update(members)
        self.lines[-1] = msgspec.json.encode(document)

    def of(self, organization_id: str) -> None:
        """Change the first manifest, which says where files are stored."""
        document = msgspec.json.decode(self.lines[0])
        document["begin"]["organization_id"] = organization_id
        self.lines[0] = msgspec.json.encode(document)


#: what is forged, and what the error says
FORGED: Mapping[str, tuple[Callable[[Forged], None], str]] = {
    "more bytes than are stated": (lambda file: file.change(size=3), "does not have the bytes"),
    "fewer bytes than are stated": (lambda file: file.change(size=1 << 20), "does not have the bytes"),
    "other bytes than are stated": (lambda file: file.change(sha256="0" * 64), "does not have the bytes"),
    "bytes of another file": (lambda file: file.part(b"others"), "does not have the bytes"),
    "a file twice": (lambda file: file.repeat(), "twice"),
    "a path as a job": (lambda file: file.change(job_id="../../secret"), "no part of an export"),
    "a path as a run": (lambda file: file.change(fence="1/../../secret"), "no part of an export"),
    "a run before the first": (lambda file: file.change(fence=-1), "no part of an export"),
    "a size below nothing": (lambda file: file.change(size=-1), "no part of an export"),
    "a digest that is none": (lambda file: file.change(sha256="?"), "no part of an export"),
    "a file larger than any may be": (lambda file: file.change(size=1 << 50), "GATEWAY_MAX_FILE_BYTES"),
    "bytes of no file": (lambda file: file.add(1, b"\0bytes"), "bytes of no stored file"),
    "an end of no file": (lambda file: file.add(1, b'{"file_end":"whole"}'), "bytes of no stored file"),
    "another number of files": (lambda file: file.state(files=0), "does not have all stored files"),
    "files of another organization": (lambda file: file.of(str(uuid4())), "manifests of two organizations"),
}


async def test_a_forged_file_stores_nothing(moving: Moving, sample: Sample):  # noqa: F811
    lines = await lines_of(departure_of(moving.busy.front), moving.busy.id)
    before = sorted(folder_of(moving.target).glob("*/*"))
    wrong = []

    for name, (change, said) in FORGED.items():
        forged = Forged(lines, sample.job)
        change(forged)
        try:
            await arrival_of(moving.target).read(forged.lines)
            wrong.append(f"{name}: it is imported")
        except GatewayError as error:
            wrong += [] if said in error.detail else [f"{name}: {error.detail}"]
        wrong += [f"{name}: {path} is left" for path in folder_of(moving.target).glob("*/*") if path not in before]

    assert not wrong, "\n".join(wrong)
    assert not await moving.left_there()


@pytest.mark.parametrize(
    ("limits", "size", "said"),
    [
        (FileLimits(max_bytes=1000), 0, "--files-limit"),
        (FileLimits(max_bytes=1 << 60), 1 << 55, "the disk has room for"),
    ],
)
async def test_files_that_would_fill_the_disk_are_refused(
    moving: Moving,  # noqa: F811
    sample: Sample,
    limits: FileLimits,
    size: int,
    said: str,
):
    forged = Forged(await lines_of(departure_of(moving.busy.front), moving.busy.id), sample.job)
    if size:
        forged.change(size=size)
    arrival = arrival_of(moving.target)
    files = StoredFiles(FolderBlobs(folder_of(moving.target)), moving.target.services.database, 1 << 60)

    with pytest.raises(GatewayError, match=said) as refused:
        await replace(arrival, files=files).read(forged.lines, limits=limits)

    assert "--without-files" in refused.value.detail
    assert stored_in(moving.target, moving.busy.id) == []


async def test_a_file_for_the_job_of_another_organization_is_in_nobodys_place(moving: Moving, sample: Sample):  # noqa: F811
    async with moving.target.api() as api:
        desk = await api.connector()
        job = await desk.submit("attachments", "download", {"attachment_id": 3})
        await run_jobs(moving.target)
        before = (await api.get(f"/api/v1/jobs/{job['id']}/result")).body
        forged = Forged(await lines_of(departure_of(moving.busy.front), moving.busy.id), sample.job)
        forged.change(job_id=job["id"])

        await arrival_of(moving.target).read(forged.lines)

        assert (await api.get(f"/api/v1/jobs/{job['id']}/result")).body == before
    await moving.target.services.jobs.files.prune()
    async with moving.there() as api:
        assert (await api.get(f"/api/v1/jobs/{job['id']}/result")).status == 404


async def with_large_file(moving: Moving) -> tuple[str, str]:  # noqa: F811
    """A job with a stored file that does not compress, and the file's digest."""
    job_id, block, digest = uuid4(), os.urandom(1 << 20), hashlib.sha256()

    async def blocks() -> AsyncIterator[bytes]:
        for number in range(LARGE >> 20):
            digest.update(block[number:] + block[:number])
            yield block[number:] + block[:number]

    services = moving.busy.front.services
    await services.jobs.files.put(moving.busy.id, (job_id, 1), blocks())
    stored = {"blob": f"{moving.busy.id}/{job_id}.1", "size": LARGE, "sha256": digest.hexdigest(), "labels": {}}
    head = {"result": stored, "collected": None, "meta": None}
    async with services.database.system() as connection:
        await connection.execute(
            "INSERT INTO jobs (id, organization_id, status, fence, result, expires_at, finished_at, action)"
            " VALUES ($1, $2, 'succeeded', 1, $3, now() + interval '1 hour', now(), 'download')",
            *(job_id, moving.busy.id, msgspec.json.encode(head).decode()),
        )
    return str(job_id), digest.hexdigest()


async def test_a_large_file_moves_in_little_memory(moving: Moving, tmp_path: Path):  # noqa: F811
    job, digest = await with_large_file(moving)
    departure, arrival, keys = departure_of(moving.busy.front), arrival_of(moving.target), moving.target.services.keys
    lock, path = Lock.for_recipient(recipient_key(keys.all)), tmp_path / "sealed"

    tracemalloc.start()
    with path.open("wb") as file:
        async for chunk in departure.chunks(moving.busy.id, lock, Contents()):
            file.write(chunk)
    with path.open("rb") as file:
        await arrival.read(sealed_lines(file, recipients_of(keys.all)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    stored = folder_of(moving.target) / f"{moving.busy.id}/{job}.1"
    with stored.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == digest
    assert path.stat().st_size > LARGE
    assert peak < 24 << 20


@pytest.mark.processes
async def test_after_a_kill_nothing_is_left_and_the_import_works(moving: Moving, tmp_path: Path):  # noqa: F811
    job, digest = await with_large_file(moving)
    file = await moving.exported()
    process = await asyncio.create_subprocess_exec(
        *(*GATEWAY, "import-organization", "-"), stdin=PIPE, env=environment_of(moving.target), cwd=tmp_path
    )
    assert process.stdin is not None
    process.stdin.write(file[: len(file) // 2])

    async def has_begun() -> bool:
        return f"{job}.1.part" in stored_in(moving.target, moving.busy.id)

    await eventually(has_begun)
    await moving.target.services.jobs.files.prune()
    while_it_runs = stored_in(moving.target, moving.busy.id)
    process.kill()
    await process.wait()
    await moving.target.services.jobs.files.prune()
    after_the_kill = stored_in(moving.target, moving.busy.id)
    was_visible = await moving.left_there()
    await moving.imported(file)

    assert f"{job}.1.part" in while_it_runs
    assert (after_the_kill, was_visible) == ([], False)
    stored = (folder_of(moving.target) / f"{moving.busy.id}/{job}.1").read_bytes()
    assert hashlib.sha256(stored).hexdigest() == digest


@pytest.mark.processes
async def test_an_organization_moves_through_a_pipe(moving: Moving, sample: Sample, tmp_path: Path):  # noqa: F811
    key = recipient_key(moving.target.services.keys.all)
    reading, writing = os.pipe()
    words = ("export-organization", str(moving.busy.id), "-", "--recipient", key, "--copy")
    exporting = await asyncio.create_subprocess_exec(
        *(*GATEWAY, *words), stdout=writing, stderr=PIPE, env=environment_of(moving.busy.front), cwd=tmp_path
    )
    importing = await asyncio.create_subprocess_exec(
        *(*GATEWAY, "import-organization", "-", "-o", "json"),
        stdin=reading,
        stdout=PIPE,
        env=environment_of(moving.target),
        cwd=tmp_path,
    )
    os.close(reading)
    os.close(writing)

    (_, err), (out, _) = await asyncio.gather(exporting.communicate(), importing.communicate())

    assert (exporting.returncode, importing.returncode) == (0, 0), err
    assert msgspec.json.decode(out) == msgspec.json.decode(err)
    async with moving.there() as api:
        assert (await api.get(f"/api/v1/jobs/{sample.job}/result")).body == sample.content


def test_every_byte_of_a_part_comes_back():
    part = bytes(range(256)) + b"\1\2\1\3\n\1\n"

    line = part_line(part)

    assert line.index(b"\n") == len(line) - 1
    assert part_of(line[:-1]) == part


def test_a_sealed_file_has_parts_of_any_bytes(tmp_path: Path):
    parts, path = [os.urandom(200 << 10) for _ in range(8)], tmp_path / "sealed"
    with path.open("wb") as file:
        writer = SealedWriter(file, Lock.by_passphrase("p"))
        for part in parts:
            writer.write(part_line(part))
        writer.close()

    with path.open("rb") as file:
        assert [part_of(line) for line in sealed_lines(file, [], "p")] == parts
