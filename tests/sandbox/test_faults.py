"""Fault injection, and the sandbox's journal of received requests."""

import time

import aiohttp
import pytest
from pydantic import ValidationError

from gateway.sandbox.faults import Fault, Faults
from tests.sandbox.conftest import reset

AUTH = {"Authorization": "Bearer token"}
TICKETS = "/api/v2/tickets.json"
FILE = "/attachments/token/4/"


@pytest.mark.parametrize(
    ("fault", "is_hit"),
    [
        ({"status": 500}, True),
        ({"status": 500, "kind": "support-desk"}, True),
        ({"status": 500, "kind": "team-chat"}, False),
        ({"status": 500, "path_prefix": "/api/v2/"}, True),
        ({"status": 500, "path_prefix": "/api/v3/"}, False),
        ({"status": 500, "entity": "tickets"}, True),
        ({"status": 500, "entity": "users"}, False),
        ({"status": 500, "method": "get"}, True),
        ({"status": 500, "method": "POST"}, False),
    ],
)
def test_a_fault_applies_to_the_calls_that_it_names(fault, is_hit):
    faults = Faults()
    faults.add(Fault.model_validate(fault))

    taken = faults.take("support-desk", TICKETS, ("tickets",), "GET")

    assert (taken is not None) is is_hit


def test_a_fault_without_an_effect_is_refused():
    with pytest.raises(ValidationError, match="a fault needs one of"):
        Fault.model_validate({"kind": "support-desk"})


async def test_a_fault_ends_after_its_times(http, fault):
    await fault(path_prefix=TICKETS, status=503, times=2)

    statuses = []
    for _ in range(3):
        async with http.get(TICKETS, headers=AUTH) as answer:
            statuses.append(answer.status)

    assert statuses == [503, 503, 200]


async def test_a_fault_with_a_body_answers_with_that_body(http, fault):
    await fault(kind="support-desk", status=200, body="<html>hello", headers={"X-Odd": "yes"})

    async with http.get(TICKETS, headers=AUTH) as answer:
        said = await answer.text()

    assert (answer.status, answer.headers["X-Odd"], said) == (200, "yes", "<html>hello")


@pytest.mark.parametrize("path", [TICKETS, FILE])
async def test_headers_of_a_fault_are_added_to_the_usual_response(http, fault, path):
    await fault(path_prefix=path, headers={"X-Odd": "yes", "ETag": '"other"'})

    async with http.get(path, headers=AUTH) as answer:
        told = answer.headers["X-Odd"], answer.headers["ETag"]

    assert (answer.status, *told) == (200, "yes", '"other"')


async def test_latency_delays_the_usual_response(http, fault):
    await fault(kind="support-desk", latency_ms=150)

    began = time.monotonic()
    async with http.get(TICKETS, headers=AUTH) as answer:
        took = time.monotonic() - began

    assert answer.status == 200
    assert took >= 0.15


async def test_a_reset_closes_the_connection_without_a_response(http, fault):
    await fault(kind="support-desk", reset=True)

    with pytest.raises(aiohttp.ServerDisconnectedError):
        await http.post(TICKETS, headers=AUTH)


@pytest.mark.parametrize("path", [TICKETS, FILE])
async def test_a_truncated_response_is_shorter_than_its_content_length(http, fault, path):
    await fault(path_prefix=path, truncate_after_bytes=1000)

    async with http.get(path, headers=AUTH) as answer:
        announced = int(answer.headers["Content-Length"])
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()

    assert announced > 1000


async def test_a_stalled_response_stops_before_its_end(http, fault):
    await fault(path_prefix=FILE, stall_after_bytes=1000)

    timeout = aiohttp.ClientTimeout(sock_read=0.2)
    async with http.get(FILE, timeout=timeout) as answer:
        first = await answer.content.readexactly(1000)
        with pytest.raises(aiohttp.SocketTimeoutError):
            await answer.content.read(1)

    assert len(first) == 1000


async def test_a_range_can_be_ignored(http, fault):
    await fault(path_prefix=FILE, ignore_range=True)

    async with http.get(FILE, headers={"Range": "bytes=0-9"}) as answer:
        length = answer.headers["Content-Length"]

    assert (answer.status, length) == (200, str(4 << 20))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"kind": "nothing", "status": 500}, "there is no kind 'nothing'"),
        ({"kind": "support-desk"}, "a fault needs one of"),
        ({"status": 99}, "status"),
        ({"statu": 500}, "statu"),
    ],
)
async def test_an_invalid_fault_is_refused_with_a_reason(http, body, said):
    async with http.post("/_sandbox/faults", json=body) as answer:
        told = (await answer.json())["error"]

    assert answer.status == 400
    assert said in told


async def test_requests_are_recorded_with_their_headers_and_bodies(http):
    async with http.post("/api/v2/tickets.json?x=1", json={"ticket": {"subject": "Hi"}}, headers=AUTH) as answer:
        created = answer.status

    async with http.get("/_sandbox/requests", params={"kind": "support-desk"}) as answer:
        received = (await answer.json())["requests"]

    assert created == 201
    assert [(call["method"], call["path"], call["query"], call["status"]) for call in received] == [
        ("POST", "/api/v2/tickets.json", {"x": "1"}, 201)
    ]
    assert received[0]["headers"]["Authorization"] == "Bearer token"
    assert received[0]["body"] == '{"ticket": {"subject": "Hi"}}'


async def test_counters_count_by_kind_and_status(http):
    for path in (TICKETS, "/api/v2/tickets/99999.json", "/nowhere"):
        await (await http.get(path, headers=AUTH)).release()

    async with http.get("/_sandbox/counters") as answer:
        counters = await answer.json()

    assert counters["by_kind"] == {"support-desk": 2, "none": 1}
    assert counters["by_status"] == {"200": 1, "404": 2}
    assert counters["open_downloads"] == 0


async def test_a_reset_of_the_state_discards_changes_and_faults(http, fault):
    await fault(kind="team-chat", status=500)
    async with http.post(TICKETS, json={"ticket": {"subject": "Hi"}}, headers=AUTH) as answer:
        created = (await answer.json())["ticket"]["id"]

    await reset(http)

    async with http.get(f"/api/v2/tickets/{created}.json", headers=AUTH) as answer:
        known = answer.status
    async with http.get("/api/users.list", headers=AUTH) as answer:
        chat = answer.status
    assert (known, chat) == (404, 200)
