"""Hostile and invalid input: always a 4xx with a reason, never a 5xx, and nothing is sent to the application."""

import asyncio
import io
import json

import pytest

LIST = {"entity": "tickets", "action": "list"}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "malformed_request"),
        (b"   ", 400, "malformed_request"),
        (b"{", 400, "malformed_request"),
        (b"[]", 400, "malformed_request"),
        (b'"text"', 400, "malformed_request"),
        (b'{"entity": "tickets", "action": "list", "params": {"page": NaN}}', 400, "malformed_request"),
        (b'{"entity": "tickets", "action": "list", "params": {"page": Infinity}}', 400, "malformed_request"),
        (b'{"entity": "\\ud800", "action": "list"}', 400, "malformed_request"),
        (b'{"entity": "\xff", "action": "list"}', 400, "malformed_request"),
        (b"[" * 100_000, 400, "malformed_request"),
        (b'{"a":' * 50_000, 400, "malformed_request"),
        (b"{}", 422, "invalid_params"),
        (b'{"entity": 1, "action": "list"}', 422, "invalid_params"),
        (b'{"entity": "tickets", "action": "list", "params": []}', 422, "invalid_params"),
        (b'{"entity": "tickets", "action": "list", "colour": "red"}', 422, "invalid_params"),
        (b'{"entity": "tickets", "action": "list", "params": {"page": 1e400}}', None, None),
        (b'{"entity": "tickets", "action": "list", "params": {"external_id": "a\\u0000b"}}', 422, "invalid_params"),
        (b'{"entity": "tickets", "action": "list", "params": {"page": true}}', 422, "invalid_params"),
        (b'{"entity": "tickets\\u0000", "action": "list"}', 422, "unknown_entity"),
        (b'{"entity": "../tickets", "action": "list"}', 422, "unknown_entity"),
        (b'{"entity": "tickets", "action": "list", "x": "' + b"y" * (1 << 20) + b'"}', 413, "body_too_large"),
    ],
)
async def test_a_body_that_cannot_be_used(support_desk, upstream_requests, body, status, code):
    before = len(await upstream_requests())

    answer = await support_desk.api.call("POST", f"{support_desk.path}/execute", data=io.BytesIO(body))

    assert 400 <= answer.status < 500
    assert status is None or (answer.status, answer.json()["code"]) == (status, code)
    assert answer.json()["request_id"]
    assert len(await upstream_requests()) == before


@pytest.mark.parametrize("value", ["..", ".", "", "1/../2", "%2e%2e", "1\r\nX-Evil: 1", "1?x=1", "1#x", "1\x00", " 1"])
async def test_an_id_that_would_leave_its_place_in_the_path(support_desk, upstream_requests, value):
    before = len(await upstream_requests())

    answer = await support_desk.send("tickets", "get", {"ticket_id": value})

    assert (answer.status, answer.json()["code"]) == (422, "invalid_params")
    assert len(await upstream_requests()) == before


@pytest.mark.parametrize(
    "subdomain",
    [
        "",
        "a.b",
        "a/b",
        "a@b",
        "a:80",
        "A",
        "-a",
        "a-",
        "a b",
        "a\n",
        "a%2e",
        "x" * 64,
        "127.0.0.1",
        "é",
        5,
        None,
        ["a"],
    ],
)
async def test_a_subdomain_that_is_not_one_dns_label(api, subdomain):
    body = {
        "workspace_name": "w",
        "connector_type": "support-desk",
        "name": "x",
        "credentials": {"email": "a@b.c", "api_token": "t"},
        "environment": {"subdomain": subdomain},
    }

    answer = await api.post("/api/v1/integrations/connectors", body)

    assert (answer.status, answer.json()["code"]) == (422, "invalid_credentials")
    assert "subdomain" in {fault["field"] for fault in answer.json()["errors"]}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nothing", 404),
        ("PUT", "/api/v1/jobs", 405),
        ("GET", "/api/v1/jobs/not-a-uuid", 404),
        ("GET", "/api/v1/jobs?limit=0", 422),
        ("GET", "/api/v1/jobs?colour=red", 422),
        ("GET", "/api/v1/jobs?limit=1&limit=2", 400),
        ("GET", "/api/v1/jobs?cursor=x", 422),
        ("GET", "/api/v1/jobs?cursor=" + "W1tb" * 1000, 422),  # [[[[…
        ("GET", "/api/v1/jobs?status=asleep", 422),
        ("GET", "/api/v1/jobs?created_after=yesterday", 422),
        ("GET", "/api/v1/integrations/connectors?connector_type=nope", 422),
        ("GET", "/api/v1/integrations/connectors/00000000-0000-0000-0000-000000000000", 404),
        ("GET", "/api/v1/integrations/connector-types/nope", 422),
        ("GET", "/api/v1/skills/docs?id=support-desk&section=nope", 404),
        ("GET", "/api/v1/jobs?access_token=x", 400),
    ],
)
async def test_a_url_that_names_nothing(api, method, path, status):
    answer = await api.call(method, path)

    assert answer.status == status
    assert answer.json()["status"] == status
    assert answer.json()["message"] == answer.json()["detail"]


@pytest.mark.parametrize("header", [{}, {"Authorization": "Basic x"}, {"Authorization": "Bearer nope"}])
async def test_no_good_token_is_one_and_the_same_refusal(api, header):
    async with api.session.get("/api/v1/jobs", headers=header) as response:
        document = json.loads(await response.read())

    assert (response.status, document["code"]) == (401, "unauthorized")
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("key", ["", "k" * 256, "two words", "schlüssel"])
async def test_an_idempotency_key_that_is_none(support_desk, key):
    answer = await support_desk.send("tickets", "list", headers={"Idempotency-Key": key})

    assert answer.status == 400


@pytest.mark.parametrize("wait", ["301", "-1", "soon", "1.5"])
async def test_a_wait_that_is_no_number_of_seconds(support_desk, wait):
    answer = await support_desk.send("tickets", "list", headers={"Prefer": f"wait={wait}"})

    assert answer.status == 400


async def test_an_unsafe_request_id_is_replaced_and_a_safe_one_kept(api):
    unsafe = await api.get("/healthz", headers={"X-Request-Id": "a b<script>"})
    safe = await api.get("/healthz", headers={"X-Request-Id": "trace-1"})

    assert unsafe.headers["X-Request-Id"] != "a b<script>"
    assert safe.headers["X-Request-Id"] == "trace-1"


async def test_a_hostile_name_does_not_stop_the_audit_log(support_desk):
    await support_desk.send("tickets\x00", "list")
    await support_desk.send("tickets", "list", intent="after the hostile one")

    seen = set()
    async with asyncio.timeout(10):
        while "after the hostile one" not in seen:
            answer = await support_desk.api.get(f"/api/v1/audit?connector_id={support_desk.record['id']}")
            seen = {entry["intent"] for entry in answer.json()["data"]}

    assert answer.status == 200
