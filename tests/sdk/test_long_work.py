"""Jobs, which the SDK follows by redirects, and files in chunks."""

import base64
import hashlib

import aiohttp
import pytest

from tests.sdk.conftest import NOT_INSTALLED

exceptions = pytest.importorskip("airbyte_agent_sdk.http.exceptions", reason=NOT_INSTALLED)


@pytest.fixture
async def file(running):
    """A file of the sandbox: its id, which is also its size, and its SHA-256."""
    size = 150_000
    async with aiohttp.ClientSession(running.sandbox_url) as sandbox, sandbox.get(f"/_sandbox/files/{size}") as answer:
        return size, (await answer.json())["sha256"]


async def test_a_bulk_update_answers_with_its_result(typed):
    ids = ",".join(str(number) for number in range(1, 131))

    done = await typed("support-desk").ticket_bulk_updates.create(ids=ids, ticket={"status": "open"})

    assert (done["total"], done["succeeded"], done["failed"]) == (130, 130, 0)
    assert len(done["results"]) == 130
    assert (done["status"], done["progress"], done["message"]) == ("completed", 130, "130 of 130 tickets updated")
    assert done["url"].endswith(f"/api/v1/jobs/{done['id']}")


async def test_a_report_is_run_and_read(typed):
    crm = typed("crm-query")
    report = (await crm.reports.list()).data[0]

    read = await crm.reports.get(id=report.id)

    assert read is not None


async def test_a_file_is_read_in_chunks(typed, file):
    size, sha256 = file
    attachments = typed("support-desk").attachments
    content, wanted = b"", None

    while True:
        chunk = await attachments.download_base64(str(size), range_header=wanted)
        content += base64.b64decode(chunk["content"])
        if not chunk["has_more"]:
            break
        wanted = chunk["next_range_header"]

    assert hashlib.sha256(content).hexdigest() == sha256
    assert chunk["next_range_header"] is None


async def test_a_chunk_describes_its_range(typed, file):
    chunk = await typed("support-desk").attachments.download_base64(str(file[0]))

    assert chunk["encoding"] == "base64"
    assert chunk["range_requested"] == "bytes=0-49151"
    assert chunk["bytes_returned"] == 49152
    assert chunk["next_range_header"] == "bytes=49152-98303"


async def test_a_plain_download_is_json_too(typed, file):
    chunk = await typed("support-desk").attachments.download(str(file[0]))

    assert chunk["encoding"] == "base64"


async def test_an_open_range_is_refused_with_a_message(typed, file):
    with pytest.raises(exceptions.ConnectorValidationError, match="range"):
        await typed("support-desk").attachments.download_text(str(file[0]), range_header="bytes=0-")
