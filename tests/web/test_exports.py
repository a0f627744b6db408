"""Exports through the API: the file has exactly the application's records."""

import asyncio
import csv
import io
import json

import pytest

from workers.main import Worker

LIST = {"entity": "tickets", "action": "list", "params": {"per_page": 10}}
PARTS = "SELECT count(*) AS parts FROM job_results WHERE job_id = $1"


@pytest.fixture(scope="module")
async def worker(front):
    stopping = asyncio.Event()
    working = asyncio.create_task(Worker(front.services).until(stopping))
    yield
    stopping.set()
    await working


@pytest.fixture
def exported(worker, api, support_desk):
    """The job of an export that has ended, and its file."""

    async def export(file, **members):
        answer = await api.post(f"{support_desk.path}/execute", {**LIST, **members, "output": {"file": file}})
        job = await api.ended_job(answer.document(202)["job"])
        return job, await api.get(f"/api/v1/jobs/{job['id']}/result")

    return export


@pytest.fixture
async def tickets(support_desk):
    """All tickets, page by page."""
    records, params = [], {"per_page": 100}
    while params is not None:
        page = await support_desk.execute("tickets", "list", params)
        records += page["result"]
        params = page["next"]
    return records


async def test_an_ndjson_file_holds_every_record_of_every_page(exported, tickets):
    job, file = await exported("ndjson")

    assert job["status"] == "succeeded", job
    assert (job["entity"], job["action"], job["progress"]) == ("tickets", "list", len(tickets))
    assert len(tickets) > 20
    assert file.headers["Content-Type"] == "application/x-ndjson"
    assert [json.loads(line) for line in file.body.splitlines()] == tickets


async def test_a_csv_file_has_the_selected_fields_as_its_columns(exported, tickets):
    _, file = await exported("csv", select_fields=["subject", "id", "via.channel"])

    header, *rows = csv.reader(io.StringIO(file.body.decode(), newline=""))
    assert header == ["subject", "id", "via.channel"]
    assert [row[1] for row in rows] == [str(ticket["id"]) for ticket in tickets]


async def test_a_csv_file_for_excel_begins_with_a_byte_order_mark(exported, tickets):
    _, plain = await exported("csv", select_fields=["id"])
    _, file = await exported("csv-bom", select_fields=["id"])

    assert file.body == b"\xef\xbb\xbf" + plain.body
    assert file.headers["Content-Disposition"].endswith('.csv"')


async def test_a_csv_file_without_a_selection_has_every_field(exported, tickets):
    _, file = await exported("csv")

    [header, *rows] = csv.reader(io.StringIO(file.body.decode(), newline=""))
    assert set(header) == {name for ticket in tickets for name in ticket}
    assert len(rows) == len(tickets)


async def test_an_export_of_a_list_that_the_application_does_not_serve_whole_is_an_error(worker, api, support_desk):
    body = {**LIST, "params": {"per_page": 1}, "output": {"file": "ndjson"}}

    answer = await api.post(f"{support_desk.path}/execute", body)
    job = await api.ended_job(answer.document(202)["job"])

    assert (job["status"], job["progress"]) == ("failed", 100)
    assert "serves 100 pages at most" in job["error"]["detail"]
    assert "the export has read 100 records" in job["error"]["detail"]


async def test_the_file_is_read_in_ranges(exported, api):
    job, whole = await exported("ndjson")

    part = await api.get(f"/api/v1/jobs/{job['id']}/result", headers={"Range": "bytes=10-19"})

    assert part.status == 206
    assert part.body == whole.body[10:20]
    assert whole.headers["Content-Disposition"] == 'attachment; filename="tickets.ndjson"'


async def test_the_same_idempotency_key_is_the_same_job(exported, api, support_desk):
    sent = {"json": {**LIST, "output": {"file": "csv"}}, "headers": {"Idempotency-Key": "once"}}
    path = f"{support_desk.path}/execute"

    first, second = await api.call("POST", path, **sent), await api.call("POST", path, **sent)
    other = await api.call("POST", path, **{**sent, "json": {**LIST, "output": {"file": "ndjson"}}})

    assert first.document(202)["job"]["id"] == second.document(202)["job"]["id"]
    assert second.headers["Idempotency-Replayed"] == "true"
    assert other.status == 422


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"action": "get", "params": {"ticket_id": 1}}, "invalid_params"),
        ({"params": {"sort_order": "up"}}, "invalid_params"),
        ({"select_fields": ["subjekt"]}, "invalid_params"),
        ({"output": {"file": "xlsx"}}, "invalid_params"),
        ({"output": {"file": "csv", "sheet": 1}}, "invalid_params"),
        ({"action": "lst"}, "unknown_action"),
        ({"action": "context_store_search", "params": {"query": {"filter": {"eq": {"x": 1}}}}}, "invalid_query"),
    ],
)
async def test_an_invalid_export_is_refused_without_a_job(api, support_desk, members, code):
    body = {**LIST, "output": {"file": "csv"}, **members}

    problem = (await api.post(f"{support_desk.path}/execute", body)).document(422)

    assert problem["code"] == code


async def test_an_unknown_member_of_the_output_is_refused_with_the_known_ones(support_desk):
    answer = await support_desk.send("tickets", "list", {}, output={"file": "csv", "x": 1})

    assert (answer.status, answer.json()["detail"]) == (422, "output.x is not a member of the request; known: file")


async def test_a_search_of_the_copy_is_exported_page_by_page(worker, api, support_desk, tickets):
    job = (await api.post(f"{support_desk.path}/context-store/sync", {"entities": ["tickets"]})).document(202)["job"]
    await api.ended_job(job)
    search = {
        "entity": "tickets",
        "action": "context_store_search",
        "params": {"query": {}, "limit": 7},
        "output": {"file": "ndjson"},
    }

    job = await api.ended_job((await api.post(f"{support_desk.path}/execute", search)).document(202)["job"])

    file = await api.get(f"/api/v1/jobs/{job['id']}/result")
    assert {json.loads(line)["id"] for line in file.body.splitlines()} == {ticket["id"] for ticket in tickets}


async def test_pages_are_deleted_once_the_file_is_stored(exported, front, api):
    job, file = await exported("ndjson")

    while await front.services.operations.exports.delete_pages():
        pass

    async with front.services.database.system() as connection:
        assert await connection.fetchval(PARTS, job["id"]) == 0
    assert (await api.get(f"/api/v1/jobs/{job['id']}/result")).body == file.body


async def test_an_export_that_accepts_only_cached_answers_is_refused_and_asks_nothing(support_desk):
    answer = await support_desk.send(
        "tickets", "list", {}, {"Cache-Control": "only-if-cached"}, output={"file": "ndjson"}
    )

    assert (answer.status, answer.json()["code"]) == (504, "not_cached")
