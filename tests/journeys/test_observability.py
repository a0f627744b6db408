"""Metrics, traces through jobs and logs of a running gateway, without secrets."""

import asyncio
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.harness.caller import ASYNC
from tests.harness.databases import created_database, url_of
from tests.harness.deployment import Deployment, deployed
from tests.harness.processes import free_port

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
TOKEN, PASSWORD = "c4n4ry-api-token-0123456789", "c4n4ry-password-0123456789"
CREDENTIALS = {"email": "agent@example.com", "api_token": TOKEN, "subdomain": "acme"}


@pytest.fixture(scope="module")
async def deployment(
    tmp_path_factory: pytest.TempPathFactory, postgres_url: str, redis_url: str, migrated_database: str
):
    folder: Path = tmp_path_factory.mktemp("observed")
    async with (
        created_database(postgres_url, migrated_database) as name,
        deployed(
            folder,
            url_of(postgres_url, name),
            redis_url,
            GATEWAY_LOG_LEVEL="debug",
            GATEWAY_CLIENT_RATE="50",
            GATEWAY_ORGANIZATION_JOBS="5",
        ) as deployment,
    ):
        yield deployment


@pytest.fixture
async def api(deployment: Deployment):
    async with deployment.api() as api:
        yield api


async def told(api, path: str = "/metrics") -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The samples of a scrape by name and labels, made after the one that is remembered for a second."""
    async with api.session.get(path) as remembered:
        text = earlier = await remembered.text()
    while text == earlier:  # each scrape has its own processor time
        async with api.session.get(path) as answer:
            text = await answer.text()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def sample(name: str, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, tuple(sorted(labels.items()))


async def test_a_call_is_counted_by_route_operation_and_application(api):
    desk = await api.connector(credentials=CREDENTIALS)
    before = await told(api)

    await desk.execute("tickets", "list", {"per_page": 1})
    await desk.send("tickets", "get", {"ticket_id": 999_999_999})
    await desk.send("no_such_entity", "list")
    after = await told(api)

    def grown(name: str, **labels: str) -> float:
        return after.get(sample(name, **labels), 0) - before.get(sample(name, **labels), 0)

    tickets = {"kind": "support-desk", "entity": "tickets"}
    execute = "/api/v1/integrations/connectors/{connector_id}/execute"
    assert grown("gateway_executes_total", **tickets, action="list", outcome="succeeded") == 1
    assert grown("gateway_executes_total", **tickets, action="get", outcome="upstream_not_found") == 1
    assert grown("gateway_http_requests_total", method="POST", route=execute, status="200") == 1
    assert grown("gateway_http_requests_total", method="POST", route=execute, status="422") == 1
    assert grown("gateway_upstream_answers_total", kind="support-desk", outcome="404") == 1
    assert grown("gateway_http_request_seconds_count", route=execute) == 3
    assert not any("no_such_entity" in str(key) for key in after)


async def test_a_worker_tells_its_own_figures_on_a_port_of_its_own(deployment: Deployment, api):
    port = free_port()
    worker = await deployment.worker(GATEWAY_METRICS_BIND=f"127.0.0.1:{port}")

    figures = await told(api, f"http://127.0.0.1:{port}/metrics")
    code = await deployment.stop(worker)

    assert figures[sample("gateway_workers")] >= 2
    assert sample("gateway_leases_lost_total") in figures
    assert code == 0


async def test_a_trace_goes_through_a_job_to_the_application(deployment: Deployment, api):
    desk = await api.connector(credentials=CREDENTIALS)
    headers = {"traceparent": TRACEPARENT, "tracestate": "vendor=1", "X-Request-Id": "traced-request"}

    job = await desk.submit("tickets", "get", {"ticket_id": 1}, headers)
    await api.get(f"/api/v1/jobs/{job['id']}/result?wait=30")

    traced = [
        request["path"]
        for request in await deployment.upstream_requests()
        if {name.lower(): value for name, value in request["headers"].items()}.get("traceparent") == TRACEPARENT
    ]
    assert traced == ["/api/v2/tickets/1.json"]
    [event] = [each for each in deployment.events() if each.get("trace_id") == TRACE and each["event"] == "request"]
    assert (event["request_id"], event["status"]) == ("traced-request", 202)


async def test_the_access_log_says_who_asked_for_what_of_which_connector_and_never_with_which_params(
    deployment: Deployment, api
):
    desk = await api.connector(credentials=CREDENTIALS)

    await desk.send("tickets", "list", {"external_id": "canary-4711"}, {"X-Request-Id": "logged-list"})
    await desk.send("tickets", "list", {"sort_order": "up"}, {"X-Request-Id": "logged-refusal"})
    await api.call("GET", "/api/v1/nothing-here", headers={"X-Request-Id": "logged-nothing"})

    events = {each["request_id"]: each for each in deployment.events() if each["event"] == "request"}
    listed, refused = events["logged-list"], events["logged-refusal"]
    connector_id = desk.path.rpartition("/")[2]
    assert (listed["kind"], listed["operation"], listed["connector_id"]) == (
        "support-desk",
        "tickets.list",
        connector_id,
    )
    assert listed["client_id"] == refused["client_id"]
    assert (refused["status"], refused["error"], refused["operation"]) == (422, "invalid_params", "tickets.list")
    assert events["logged-nothing"]["error"] == "not_found"
    assert "error" not in listed
    assert "canary-4711" not in str(listed)


async def test_an_untraced_call_sends_no_trace_of_an_earlier_one(deployment: Deployment, api):
    desk = await api.connector(credentials=CREDENTIALS)

    await desk.send("tickets", "get", {"ticket_id": 2}, {"traceparent": TRACEPARENT})
    await desk.send("tickets", "get", {"ticket_id": 3})

    traces = {
        request["path"]: "traceparent" in {name.lower() for name in request["headers"]}
        for request in await deployment.upstream_requests()
    }
    assert traces["/api/v2/tickets/2.json"]
    assert not traces["/api/v2/tickets/3.json"]


async def test_a_client_over_its_rate_gets_429_and_the_headers_that_say_so(api):
    first = await api.get("/api/v1/jobs")

    answers = await asyncio.gather(*(api.get("/api/v1/jobs") for _ in range(120)))

    refused = [answer for answer in answers if answer.status == 429]
    assert first.headers["RateLimit-Policy"] == '"client";q=50;w=1'
    assert first.headers["RateLimit"].startswith('"client";r=')
    assert refused
    assert refused[0].json()["code"] == "rate_limited"
    assert int(refused[0].headers["Retry-After"]) >= 1
    assert refused[0].headers["RateLimit"].startswith('"client";r=0')


async def test_an_organization_cannot_queue_more_jobs_than_it_may(deployment: Deployment, api):
    desk = await api.connector(credentials=CREDENTIALS)
    [worker] = deployment.workers
    await deployment.stop(worker)

    key = {**ASYNC, "Idempotency-Key": "first"}
    first = await desk.send("tickets", "get", {"ticket_id": 1}, key)
    statuses = [(await desk.send("tickets", "get", {"ticket_id": 1}, ASYNC)).status for _ in range(6)]
    replayed = await desk.send("tickets", "get", {"ticket_id": 1}, key)
    await deployment.worker()

    assert statuses == [202] * 4 + [429] * 2
    assert (replayed.status, replayed.headers["Idempotency-Replayed"]) == (202, "true")
    assert replayed.json()["job"]["id"] == first.json()["job"]["id"]


async def test_no_secret_is_in_any_log_however_much_is_logged(deployment: Deployment, api):
    desk = await api.connector(credentials=CREDENTIALS)
    await desk.execute("tickets", "list", {"per_page": 1})
    await desk.send("tickets", "create", {"ticket": {"subject": PASSWORD, "comment": {"body": PASSWORD}}})
    await api.get("/api/v1/jobs?access_token=c4n4ry-query")
    await api.post("/api/v1/account/applications/token", {"client_id": "x", "client_secret": PASSWORD})

    log = deployment.log()

    token = api.headers["Authorization"].removeprefix("Bearer ")
    assert '"event":"request"' in log
    assert [secret for secret in (TOKEN, PASSWORD, token, "c4n4ry") if secret in log] == []


async def test_every_event_of_a_request_names_it(deployment: Deployment, api):
    await api.get("/api/v1/jobs", headers={"X-Request-Id": "mine-to-name"})

    named = [event for event in deployment.events() if event.get("request_id") == "mine-to-name"]

    assert [(event["event"], event["route"]) for event in named] == [("request", "/api/v1/jobs")]
