"""Bodies that arrive in many chunks, as through a proxy, are read to their end."""

import pytest

from gateway import errors
from tests.client.stub import BLOB, JOB_ID, TICKETS, problem


@pytest.fixture(autouse=True)
def _in_chunks(stub):
    stub.chunk_size = 7  # more than one chunk for every body, and within characters


async def test_an_unknown_outcome_keeps_its_code_and_its_job(gateway, stub):
    stub.job_error = problem(409, "outcome_unknown", "the response of the application was lost")

    with pytest.raises(errors.OutcomeUnknown, match="the response of the application was lost") as raised:
        await (await gateway.jobs.get(JOB_ID)).result()

    assert raised.value.extra["job_id"] == JOB_ID
    assert raised.value.extra["request_id"] == "r-1"


async def test_a_refusal_keeps_its_faults(gateway):
    with pytest.raises(errors.InvalidParams, match="did you mean tickets"):
        await gateway.execute("support-desk", "tikets", "list")


async def test_a_result_is_complete(gateway):
    answer = await gateway.execute("support-desk", "tickets", "list", {"per_page": 5})

    assert answer.result == TICKETS


async def test_records_of_a_job_are_complete(gateway, stub):
    stub.job_records = [{"id": number, "text": "é" * 20} for number in range(20)]

    records = [record async for record in (await gateway.jobs.get(JOB_ID)).records()]

    assert records == stub.job_records


async def test_events_of_a_job_are_complete(gateway, stub):
    stub.events = [("progress", {"message": "naïve"}), ("done", {"status": "succeeded"})]

    events = [event async for event in (await gateway.jobs.get(JOB_ID)).events()]

    assert [(event.name, event.data) for event in events] == stub.events


async def test_a_file_is_complete(gateway, stub, tmp_path):
    stub.blob = BLOB[:2000]

    saved = await gateway.download("support-desk", "attachments", {"attachment_id": 1}, tmp_path / "file")

    assert saved.path.read_bytes() == stub.blob
