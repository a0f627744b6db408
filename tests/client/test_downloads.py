import hashlib

import pytest

from gateway import errors
from tests.client.stub import BLOB

FILE = ("support-desk", "attachments", {"attachment_id": 7})


async def test_a_file_is_in_place_only_when_whole(gateway, tmp_path):
    seen = []

    found = await gateway.download(*FILE, tmp_path / "a.bin", on_progress=lambda at, of: seen.append((at, of)))

    assert found.path.read_bytes() == BLOB
    assert found.sha256 == hashlib.sha256(BLOB).hexdigest()
    assert found.content_type == "application/pdf"
    assert seen[0] == (0, len(BLOB))
    assert seen[-1] == (len(BLOB), len(BLOB))
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


async def test_a_broken_download_goes_on_where_it_stopped(gateway, stub, tmp_path):
    stub.cuts += [300_000, 300_000]

    found = await gateway.download(*FILE, tmp_path / "a.bin", on_progress=stub.progress)

    assert found.path.read_bytes() == BLOB
    assert stub.ranges == [None, "bytes=300000-", "bytes=600000-"]


async def test_another_process_goes_on_where_one_stopped(gateway, stub, tmp_path):
    stub.cuts += [1000, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    with pytest.raises(errors.Unavailable):
        await gateway.download(*FILE, tmp_path / "a.bin", on_progress=stub.progress)
    stub.cuts.clear()

    found = await gateway.download(*FILE, tmp_path / "a.bin")

    assert found.resumed_from == 1000
    assert found.path.read_bytes() == BLOB


async def test_a_file_that_changed_is_read_from_its_beginning(gateway, stub, tmp_path):
    stub.cuts += [1000, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    with pytest.raises(errors.Unavailable):
        await gateway.download(*FILE, tmp_path / "a.bin", on_progress=stub.progress)
    stub.cuts.clear()
    stub.blob, stub.etag = b"new content", '"v2"'

    found = await gateway.download(*FILE, tmp_path / "a.bin")

    assert found.path.read_bytes() == b"new content"
    assert found.resumed_from == 0


async def test_without_a_validator_nothing_is_put_together(gateway, stub, tmp_path):
    stub.etag = None
    stub.cuts += [300_000]

    found = await gateway.download(*FILE, tmp_path / "a.bin", on_progress=stub.progress)

    assert found.path.read_bytes() == BLOB
    assert stub.ranges == [None, None]


async def test_what_was_kept_of_another_file_is_not_used(gateway, stub, tmp_path):
    stub.cuts += [1000, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    with pytest.raises(errors.Unavailable):
        await gateway.download(
            "support-desk", "attachments", {"attachment_id": 8}, tmp_path / "a.bin", on_progress=stub.progress
        )
    stub.cuts.clear()

    await gateway.download(*FILE, tmp_path / "a.bin")

    assert stub.ranges[-1] is None


async def test_a_wrong_checksum_leaves_nothing(gateway, tmp_path):
    with pytest.raises(errors.UpstreamTruncated, match="SHA-256"):
        await gateway.download(*FILE, tmp_path / "a.bin", sha256="0" * 64)

    assert list(tmp_path.iterdir()) == []


async def test_into_a_folder_a_file_goes_under_its_own_name(gateway, tmp_path):
    found = await gateway.download(*FILE, tmp_path)

    assert found.path.parent == tmp_path
    assert found.path.name == "_report.pdf"


async def test_bytes_can_be_taken_as_they_come(gateway):
    pieces = [piece async for piece in gateway.chunks(*FILE)]

    assert b"".join(pieces) == BLOB
