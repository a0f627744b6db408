"""Stores of files, a folder and a bucket alike: all or nothing, read in parts, forgotten when told."""

import os
import shutil
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gateway.errors import ResultExpired, Unavailable, UpstreamTruncated
from gateway.jobs.stored_files.blobs import Blobs, FolderBlobs, read_all
from gateway.upstream.http_ranges.ranges import Slice
from tests.harness.buckets import bucket_blobs, bucket_served

NAME = "owner/item.1"
HTTP = {"allow_http": True}


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    with bucket_served() as config:
        yield config


@pytest.fixture(params=["folder", "bucket"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "folder":
        return FolderBlobs(tmp_path / "blobs")
    return bucket_blobs(request.getfixturevalue("bucket"), tmp_path.name)


async def pieces(*given: bytes, error: Exception | None = None) -> AsyncIterator[bytes]:
    for piece in given:
        yield piece
    if error is not None:
        raise error


async def content(blobs: Blobs, size: int, *parts: bytes | Slice) -> bytes:
    async with blobs.open(NAME, size) as blob:
        return b"".join([piece async for piece in read_all(blob, parts)])


async def names(blobs: Blobs) -> list[str]:
    return [name async for page in blobs.names() for name in page]


async def test_what_was_put_is_read_in_any_parts(blobs: Blobs):
    await blobs.put(NAME, pieces(b"01234", b"", b"56789"))

    assert await content(blobs, 10, Slice(0, 9)) == b"0123456789"
    assert await content(blobs, 10, b"<", Slice(3, 3), b"|", Slice(8, 9), b">") == b"<3|89>"
    assert await names(blobs) == [NAME]


async def test_more_than_fits_into_one_write_comes_back_whole(blobs: Blobs):
    parts = [bytes([number]) * (1 << 20) for number in range(20)]

    await blobs.put(NAME, pieces(*parts))

    assert await content(blobs, 20 << 20, Slice(0, (20 << 20) - 1)) == b"".join(parts)


async def test_a_file_of_no_bytes_is_a_file(blobs: Blobs):
    await blobs.put(NAME, pieces())

    assert await content(blobs, 0) == b""


@pytest.mark.parametrize("before", [b"", b"x" * (18 << 20)])
async def test_nothing_is_kept_of_what_breaks_off(blobs: Blobs, before: bytes):
    with pytest.raises(UpstreamTruncated):
        await blobs.put(NAME, pieces(before, error=UpstreamTruncated()))

    assert await names(blobs) == []
    with pytest.raises(ResultExpired):
        await content(blobs, len(before))


async def test_a_second_put_takes_the_place_of_the_first(blobs: Blobs):
    await blobs.put(NAME, pieces(b"old and long"))

    await blobs.put(NAME, pieces(b"new"))

    assert await content(blobs, 3, Slice(0, 2)) == b"new"


async def test_what_is_not_there_in_that_size_has_expired(blobs: Blobs):
    await blobs.put(NAME, pieces(b"0123"))

    with pytest.raises(ResultExpired, match="download it again"):
        await content(blobs, 5)


async def test_what_is_deleted_is_gone_and_what_is_not_there_is_no_trouble(blobs: Blobs):
    await blobs.put(NAME, pieces(b"0123"))

    await blobs.delete([NAME, "owner/nothing.1"])

    assert await names(blobs) == []


async def test_files_are_nobody_elses(tmp_path: Path):
    await FolderBlobs(tmp_path / "blobs").put(NAME, pieces(b"0123"))

    assert (tmp_path / "blobs" / NAME).stat().st_mode & 0o077 == 0


async def test_a_store_that_cannot_be_reached_is_unavailable():
    bucket = pytest.importorskip("gateway.jobs.stored_files.bucket", reason="the extra s3 is not installed")
    config = {"aws_endpoint": "http://127.0.0.1:1", "aws_region": "r", "aws_skip_signature": "true"}
    away = bucket.BucketBlobs("s3://bucket", config=config, client_options=HTTP, retry_config={"max_retries": 0})

    with pytest.raises(Unavailable):
        await away.put(NAME, pieces(b"0123"))


async def test_a_full_disk_is_unavailable_and_leaves_nothing(tmp_path: Path):
    blobs = FolderBlobs(tmp_path / "blobs")
    partial = tmp_path / "blobs" / f"{NAME}.part"
    partial.parent.mkdir(parents=True)
    partial.symlink_to("/dev/full")

    with pytest.raises(Unavailable, match="ENOSPC") as full:
        await blobs.put(NAME, pieces(b"01234"))

    assert full.value.retry_after
    assert await names(blobs) == []


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
async def test_the_folder_is_private_under_any_umask(tmp_path, umask):
    folder = tmp_path / "data" / "blobs"
    before = os.umask(umask)
    try:
        await FolderBlobs(folder).put("owner/item", pieces(b"bytes"))
    finally:
        os.umask(before)

    made = (tmp_path / "data", folder, folder / "owner")
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700] * 3
    assert stat.S_IMODE((folder / "owner" / "item").stat().st_mode) & 0o077 == 0


async def test_a_folder_says_how_much_may_be_added_before_it_exists(tmp_path: Path):
    free = await FolderBlobs(tmp_path / "data" / "blobs").free()

    assert 0 <= free < shutil.disk_usage(tmp_path).free
