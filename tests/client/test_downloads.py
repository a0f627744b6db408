import asyncio
import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from gateway import errors
from gateway.foundation.saving.save import file_name_of, safe_name
from tests.client.stub import BLOB

#: a Content-Disposition → the name of the file; the tests of the TypeScript package read them too
NAMES = json.loads((Path(__file__).parent / "typescript" / "file_names.json").read_text("utf-8"))
FILE = ("support-desk", "attachments", {"attachment_id": 7})


async def test_a_complete_file_is_at_its_path_and_no_partial_file_remains(gateway, tmp_path):
    seen = []

    found = await gateway.download(*FILE, tmp_path / "a.bin", on_progress=lambda at, of: seen.append((at, of)))

    assert found.path.read_bytes() == BLOB
    assert found.sha256 == hashlib.sha256(BLOB).hexdigest()
    assert found.content_type == "application/pdf"
    assert seen[0] == (0, len(BLOB))
    assert seen[-1] == (len(BLOB), len(BLOB))
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


async def test_a_broken_download_is_resumed(gateway, stub, tmp_path):
    stub.cuts += [300_000, 300_000]

    found = await gateway.download(*FILE, tmp_path / "a.bin", on_progress=stub.progress)

    assert found.path.read_bytes() == BLOB
    assert stub.ranges == [None, "bytes=300000-", "bytes=600000-"]


async def test_another_call_resumes_an_interrupted_download(gateway, stub, tmp_path):
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


async def test_a_download_without_a_validator_is_not_resumed(gateway, stub, tmp_path):
    stub.etag = None
    stub.cuts += [300_000]

    found = await gateway.download(*FILE, tmp_path / "a.bin", on_progress=stub.progress)

    assert found.path.read_bytes() == BLOB
    assert stub.ranges == [None, None]


async def test_the_partial_file_of_another_file_is_not_used(gateway, stub, tmp_path):
    stub.cuts += [1000, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    with pytest.raises(errors.Unavailable):
        await gateway.download(
            "support-desk", "attachments", {"attachment_id": 8}, tmp_path / "a.bin", on_progress=stub.progress
        )
    stub.cuts.clear()

    await gateway.download(*FILE, tmp_path / "a.bin")

    assert stub.ranges[-1] is None


async def test_a_wrong_checksum_leaves_no_file(gateway, tmp_path):
    with pytest.raises(errors.UpstreamTruncated, match="SHA-256"):
        await gateway.download(*FILE, tmp_path / "a.bin", sha256="0" * 64)

    assert list(tmp_path.iterdir()) == []


async def test_a_file_in_a_folder_gets_its_name_from_the_response(gateway, tmp_path):
    found = await gateway.download(*FILE, tmp_path)

    assert found.path.parent == tmp_path
    assert found.path.name == "report.pdf"


@pytest.mark.parametrize(("disposition", "name"), NAMES.items())
def test_a_file_has_a_name_without_folder_drive_and_stream(disposition, name):
    stated = file_name_of({"Content-Disposition": f"attachment; {disposition}"})

    assert safe_name(stated) == (name or "")


async def test_bytes_are_streamed_in_chunks(gateway):
    pieces = [piece async for piece in gateway.chunks(*FILE)]

    assert b"".join(pieces) == BLOB


async def test_a_fifo_gets_the_bytes_and_stays_a_fifo(gateway, tmp_path):
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)

    saved, read = await asyncio.gather(gateway.download(*FILE, fifo), asyncio.to_thread(fifo.read_bytes))

    assert read == BLOB
    assert saved.sha256 == hashlib.sha256(BLOB).hexdigest()
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert list(tmp_path.iterdir()) == [fifo]


async def test_a_device_is_written_to_and_not_replaced(gateway, tmp_path):
    link = tmp_path / "nothing"
    link.symlink_to("/dev/null")

    saved = await gateway.download(*FILE, link)

    assert saved.size == len(BLOB)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert list(tmp_path.iterdir()) == [link]


async def test_a_cut_download_to_a_device_is_an_error(gateway, stub, tmp_path):
    stub.cuts += [1000]

    with pytest.raises(errors.Unavailable):
        await gateway.download(*FILE, "/dev/null", on_progress=stub.progress)


async def test_a_wrong_digest_of_a_download_to_a_device_is_an_error(gateway):
    with pytest.raises(errors.UpstreamTruncated, match="and not 00"):
        await gateway.download(*FILE, "/dev/null", sha256="00")
