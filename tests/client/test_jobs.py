import pytest

from gateway import errors
from tests.client.stub import JOB_ID, problem

RUNNING = {"status": "running", "progress": 100, "total": 250}
SUCCEEDED = {"status": "succeeded", "done": True, "progress": 250, "total": 250}


async def test_waiting_for_a_job_reports_every_change(gateway, stub):
    stub.job_states += [{"status": "queued"}, RUNNING, SUCCEEDED]
    seen = []

    job = await (await gateway.jobs.get(JOB_ID)).wait(on_change=lambda view: seen.append(view.progress))

    assert job.is_done
    assert seen == [0, 100, 250]


async def test_a_long_poll_without_a_change_is_repeated(gateway, stub):
    stub.job_states += [RUNNING, SUCCEEDED]
    stub.quiet_polls = 2

    job = await (await gateway.jobs.get(JOB_ID)).wait()

    assert job.status == "succeeded"


async def test_the_error_for_a_result_that_is_a_file_names_download(gateway, stub):
    stub.job_states.append({**SUCCEEDED, "action": "download"})

    with pytest.raises(errors.InvalidParams, match="read it with `download`"):
        await (await gateway.jobs.get(JOB_ID)).result()


async def test_a_broken_stream_of_events_is_resumed(gateway, stub):
    stub.events = [("status", {"status": "running"}), ("progress", {"progress": 100}), ("done", {"status": "failed"})]
    stub.cut_events_after = 2

    events = [event async for event in (await gateway.jobs.get(JOB_ID)).events()]

    assert [event.name for event in events] == ["status", "progress", "done"]
    assert [event.id for event in events] == ["1", "2", "3"]


async def test_a_stream_that_repeatedly_ends_early_is_an_error(gateway, stub):
    stub.events = [("status", {"status": "running"})]

    with pytest.raises(errors.Unavailable, match="stream of events ended before the job"):
        [event async for event in (await gateway.jobs.get(JOB_ID)).events()]


async def test_records_are_read_line_by_line(gateway, stub):
    stub.job_records = [{"id": number, "text": "x" * 1000} for number in range(500)]

    records = [record async for record in (await gateway.jobs.get(JOB_ID)).records()]

    assert records == stub.job_records


async def test_a_failed_job_raises_its_own_error_with_its_id(gateway, stub):
    stub.job_error = problem(422, "upstream_rejected", "the application said no", upstream={"status": 400})

    with pytest.raises(errors.UpstreamRejected) as raised:
        await (await gateway.jobs.get(JOB_ID)).result()

    assert raised.value.extra["job_id"] == JOB_ID
    assert raised.value.upstream.status == 400


async def test_a_job_is_canceled_and_retried(gateway, stub):
    job = await gateway.jobs.get(JOB_ID)

    canceled = await job.cancel()
    again = await job.retry(confirm=True)

    assert canceled.view.cancel_requested
    assert again.id == JOB_ID
    assert stub.bodies[-1] == {"confirm": True}


async def test_jobs_are_listed(gateway):
    jobs = [job async for job in gateway.jobs.list(status="succeeded", limit=10)]

    assert [job.id for job in jobs] == [JOB_ID]
