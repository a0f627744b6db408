"""What the request log is told of requests to applications: each attempt once, and nothing secret."""

import contextlib
from collections.abc import Iterator
from uuid import uuid4

import pytest

from gateway.errors import UpstreamError
from gateway.foundation.telemetry import tracing
from gateway.kinds.catalog import Kind
from gateway.upstream.auth import StaticAuthorizer
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.sent_requests import SentRequest
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.harness.applications import Applications
from tests.kinds.small_kind import small_operation

URL = "https://api.example.com/v1/things"


@pytest.fixture
def web() -> Iterator[Applications]:
    with Applications() as web:
        yield web


async def observed(scope: RateScope, **params: str) -> list[SentRequest]:
    """What is reported of a call of `things.act`."""
    reports: list[SentRequest] = []
    kind = Kind(small_operation({"params": {"q": {}}}).spec)
    async with Transport(observe=reports.append) as transport:
        connector = Upstreams(transport).connector(kind, {}, StaticAuthorizer({"Authorization": "secret"}), scope)
        tracing.begin_request("r-1", "GET", {})
        tracing.add_log_fields(job_id="j-1")
        with contextlib.suppress(UpstreamError):
            await connector.execute("things", "act", params)
    return reports


def small_scope() -> RateScope:
    return RateScope.of_connector(small_operation().spec, uuid4())


async def test_a_request_is_reported_without_its_query_and_credentials(web: Applications):
    web.get(f"{URL}?q=private", payload={"id": 1}, headers={"X-Request-Id": "theirs"})
    scope = small_scope()

    (report,) = await observed(scope, q="private")

    assert (report.connector_id, report.operation) == (scope.connector_id, "things.act")
    assert (report.method, report.path, report.status, report.attempt) == ("GET", "/v1/things", 200, 1)
    assert (report.request_id, report.job_id, report.upstream_request_id) == ("r-1", "j-1", "theirs")
    assert report.bytes_in == len(b'{"id": 1}')
    assert "private" not in repr(report)
    assert "secret" not in repr(report)


@pytest.mark.usefixtures("skipped_pauses")
async def test_each_attempt_is_reported_with_its_number(web: Applications):
    web.get(URL, status=503)
    web.get(URL, payload={"id": 1})

    reports = await observed(small_scope())

    assert [(report.attempt, report.status) for report in reports] == [(1, 503), (2, 200)]


@pytest.mark.usefixtures("skipped_pauses")
async def test_a_request_without_a_response_is_reported_with_the_error(web: Applications):
    web.get(URL, exception=ConnectionResetError(), repeat=True)

    reports = await observed(small_scope())

    assert {(report.status, report.error) for report in reports} == {(None, "upstream_error")}
    assert [report.attempt for report in reports] == [1, 2, 3]


async def test_requests_of_no_connector_are_not_reported(web: Applications):
    web.get(URL, payload={"id": 1})

    assert await observed(RateScope(id="small:c-1", kind="small")) == []
