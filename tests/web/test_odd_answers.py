"""Odd answers of applications: any JSON that RFC 8259 allows, errors with odd words, a 5xx to a write."""

import asyncio
import csv
import io
import json
from uuid import uuid4

import aiohttp
import pytest

from tests.agents.mcp.conftest import Raw
from tests.harness.sandbox import fault
from workers.main import Worker

#: Python reads no integer of more than 4,300 digits
DIGITS = "9" * 4000
RECORD = rf'{{"id":7,"subject":"cut \ud83d","value":1e400,"long":{DIGITS},"nul":"\u0000","half \udc00":[{{"a":1.10}}]}}'
MARK = "\ufeff"
LIST = f'{MARK}{{"tickets":[{RECORD}],"next_page":null,"previous_page":null,"count":1}}'
#: read by Python, which keeps halves and reads numbers beyond a double as infinite
READ = json.loads(RECORD, parse_int=lambda text: int(text) if len(text) < 10 else text)
#: the same encoded again, where a half cannot stay
SELECTED = {**READ, "subject": "cut \ufffd", "half \ufffd": READ["half \udc00"]}
del SELECTED["half \udc00"]
CREATE = {"ticket": {"subject": "x", "comment": {"body": "y"}}}


@pytest.fixture(scope="module")
async def worker(front):
    stopping = asyncio.Event()
    working = asyncio.create_task(Worker(front.services).until(stopping))
    yield
    stopping.set()
    await working


@pytest.fixture
async def odd_list(front, support_desk):
    """The application lists one ticket with everything that strict parsers refuse."""
    async with fault(front.sandbox_url, kind="support-desk", method="GET", path_prefix="/api/v2/tickets", body=LIST):
        yield


@pytest.fixture
async def odd_record(front, support_desk):
    """The application answers every request with one such ticket."""
    body = f'{{"ticket":{RECORD}}}'
    async with fault(front.sandbox_url, kind="support-desk", path_prefix="/api/v2/tickets", body=body):
        yield


def parsed(body):
    return json.loads(body, parse_int=lambda text: int(text) if len(text) < 19 else text)


async def test_a_list_passes_byte_for_byte(odd_list, support_desk):
    answer = await support_desk.send("tickets", "list")

    assert answer.status == 200
    assert f'"result":[{RECORD}]'.encode() in answer.body


@pytest.mark.parametrize(
    "selection",
    [{"exclude_fields": ["url"]}, {"skip_truncation": False}],
)
async def test_selected_fields_keep_their_numbers(odd_list, support_desk, selection):
    answer = await support_desk.send("tickets", "list", **selection)

    assert answer.status == 200
    assert parsed(answer.body)["result"] == [SELECTED]


async def test_a_create_with_an_idempotency_key_succeeds_and_is_replayed(odd_record, support_desk):
    key = {"Idempotency-Key": str(uuid4())}

    answers = [await support_desk.send("tickets", "create", CREATE, headers=key) for _ in range(2)]

    assert [answer.status for answer in answers] == [200, 200]
    assert [parsed(answer.body)["result"] for answer in answers] == [READ, READ]
    assert answers[1].headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize("action", ["create", "get"])
async def test_a_job_ends_once_with_the_record(worker, odd_record, support_desk, api, action):
    params = CREATE if action == "create" else {"ticket_id": 7}

    job = await api.ended_job(await support_desk.submit("tickets", action, params))
    result = await api.get(f"/api/v1/jobs/{job['id']}/result")
    lines = await api.get(f"/api/v1/jobs/{job['id']}/result", headers={"Accept": "application/x-ndjson"})

    assert (job["status"], job["attempt"]) == ("succeeded", 1)
    assert parsed(result.body)["result"] == READ
    assert parsed(lines.body) == READ


async def test_a_job_of_a_list_ends_once_with_the_records(worker, odd_list, support_desk, api):
    job = await api.ended_job(await support_desk.submit("tickets", "list"))
    result = await api.get(f"/api/v1/jobs/{job['id']}/result")

    assert (job["status"], job["attempt"]) == ("succeeded", 1)
    assert parsed(result.body)["result"] == [READ]


@pytest.mark.parametrize("file", ["ndjson", "csv"])
async def test_an_export_has_the_record(worker, odd_list, support_desk, api, file):
    answer = await support_desk.send("tickets", "list", output={"file": file})
    job = await api.ended_job(answer.document(202)["job"])
    content = (await api.get(f"/api/v1/jobs/{job['id']}/result")).body

    assert (job["status"], job["attempt"]) == ("succeeded", 1)
    if file == "ndjson":
        assert content == f"{RECORD}\n".encode()
    else:
        (row,) = csv.DictReader(io.StringIO(content.decode()))
        assert (row["id"], row["subject"], row["value"]) == ("7", "cut \ufffd", "")


@pytest.mark.parametrize("steps", [False, True])
async def test_a_batch_has_the_records(worker, odd_record, support_desk, api, steps):
    first = {"id": "first", "entity": "tickets", "action": "get", "params": {"ticket_id": 7}}
    named = {"$from": "first.id"} if steps else 7
    subject = {"$from": "first.subject"} if steps else "x"
    second = {
        "entity": "tickets",
        "action": "update",
        "params": {"ticket_id": named, "ticket": {"subject": subject}},
    }

    answer = await api.post(f"{support_desk.path}/batch", {"operations": [first, second], "steps": steps})
    job = await api.ended_job(answer.document(202)["job"])
    result = parsed((await api.get(f"/api/v1/jobs/{job['id']}/result")).body)["result"]

    assert (job["status"], job["attempt"]) == ("succeeded", 1)
    assert [each["result"] for each in result["results"]] == [READ, READ]


async def test_an_agent_reads_and_writes_it(front, odd_record, support_desk, api):
    async with aiohttp.ClientSession(headers=api.headers) as session:
        mcp = Raw(session, f"{front.base_url}/mcp")
        calls = [
            ("read", {"operation": "support-desk.tickets.get", "params": {"ticket_id": 7}}),
            ("read", {"operation": "support-desk.tickets.get", "params": {"ticket_id": 7}, "fields": ["subject"]}),
            ("write", {"operation": "support-desk.tickets.create", "params": CREATE}),
        ]
        answers = [await mcp("tools/call", {"name": name, "arguments": arguments}) for name, arguments in calls]

    results = [answer.result for answer in answers]
    assert not any(result.get("isError") for result in results), results
    subjects = [result["structuredContent"]["result"]["subject"] for result in results]
    assert subjects == ["cut \ud83d", "cut \ufffd", "cut \ufffd"]


@pytest.mark.parametrize(
    "words",
    [r"nul \u0000 and half \ud83d", "[" * 600 + "]" * 600],
)
async def test_an_error_with_such_words_ends_a_job_once(worker, front, support_desk, api, words):
    text = words if words.startswith("[") else f'"{words}"'
    body = f'{{"error":{text},"description":{text},"details":{{"a":{text}}}}}'
    async with fault(front.sandbox_url, kind="support-desk", path_prefix="/api/v2/tickets", status=422, body=body):
        job = await api.ended_job(await support_desk.submit("tickets", "create", CREATE))
        inline = await support_desk.send("tickets", "create", CREATE)

    assert (job["status"], job["attempt"], job["error"]["code"]) == ("failed", 1, "upstream_rejected")
    assert inline.status == 422


@pytest.mark.parametrize("depth", [80, 400, 900, 5000])
async def test_a_deep_answer_is_an_answer_or_an_error_of_the_application(front, support_desk, depth):
    nested = "[" * depth + "]" * depth
    body = f'{{"tickets":[{{"id":7,"deep":{nested}}}],"next_page":null,"previous_page":null,"count":1}}'
    async with fault(front.sandbox_url, kind="support-desk", path_prefix="/api/v2/tickets", body=body):
        answers = [
            await support_desk.send("tickets", "list", **members)
            for members in ({}, {"skip_truncation": False}, {"exclude_fields": ["url"]})
        ]

    for answer in answers:
        assert answer.status in (200, 502)
        if answer.status == 502:
            assert json.loads(answer.body)["code"] == "upstream_invalid_response"
    assert depth > 400 or [answer.status for answer in answers] == [200, 200, 200]


@pytest.mark.parametrize(("status", "is_unknown"), [(500, True), (501, True), (502, True), (503, False)])
async def test_a_create_answered_with_a_5xx_may_have_been_done(worker, front, support_desk, api, status, is_unknown):
    async with fault(
        front.sandbox_url, kind="support-desk", method="POST", path_prefix="/api/v2/tickets", status=status
    ):
        key = {"Idempotency-Key": str(uuid4())}
        inline = await support_desk.send("tickets", "create", CREATE, headers=key)
        job = await api.ended_job(await support_desk.submit("tickets", "create", CREATE))

    problem = json.loads(inline.body)
    assert (problem.get("outcome"), job["status"]) == (("unknown", "unknown") if is_unknown else (None, "failed"))
    for told in (problem, job["error"]) if is_unknown else ():
        assert (told["known"]["response_status"], told["safe_to_retry"]) == (status, False)
