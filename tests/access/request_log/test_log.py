"""The request log on a real PostgreSQL: requests of connectors, by organization, for a bounded time and number."""

from uuid import UUID, uuid4

import pytest
from msgspec.structs import replace

from gateway.access.request_log.log import RequestLog
from gateway.contract.gateway_state import RequestSelection
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Database
from gateway.upstream.sent_requests import SentRequest
from tests.connectors.conftest import Create, create, organization_id, store, stranger_id  # noqa: F401 - fixtures


def sent(connector_id: UUID, **members: object) -> SentRequest:
    request = SentRequest(
        connector_id=connector_id,
        at=CLOCK.unix_time(),
        method="GET",
        path="/api/v2/tickets.json",
        attempt=1,
        duration_ms=41,
        bytes_out=0,
        bytes_in=2048,
        status=200,
    )
    return replace(request, **members)


async def written(database: Database, *requests: SentRequest) -> RequestLog:
    log = RequestLog(database)
    async with log.writing():
        for request in requests:
            log.note(request)
    return log


async def test_a_request_is_kept_as_it_was_noted(database: Database, organization_id: UUID, create: Create):  # noqa: F811
    connector_id, job_id = await create(), uuid4()
    noted = sent(connector_id, job_id=str(job_id), request_id="r-1", operation="tickets.list", attempt=2)

    log = await written(database, noted)

    (found,) = (await log.find(organization_id, RequestSelection())).data
    assert (found.connector_id, found.job_id, found.request_id) == (str(connector_id), str(job_id), "r-1")
    assert (found.method, found.path, found.status, found.attempt) == ("GET", "/api/v2/tickets.json", 200, 2)
    assert (found.duration_ms, found.bytes_in, found.bytes_out) == (41, 2048, 0)


@pytest.mark.parametrize(
    ("requests", "paths"),
    [
        (RequestSelection(), ["/lost", "/500", "/404", "/200"]),
        (RequestSelection(status="failed"), ["/lost", "/500", "/404"]),
        (RequestSelection(status="4xx"), ["/404"]),
        (RequestSelection(status="200"), ["/200"]),
        (RequestSelection(request_id="r-404"), ["/404"]),
        (RequestSelection(connector_id=UUID(int=1)), []),
    ],
)
async def test_requests_are_filtered(
    database: Database,
    organization_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
    requests: RequestSelection,
    paths: list[str],
):
    connector_id = await create()
    by_status = [sent(connector_id, path=f"/{code}", status=code, request_id=f"r-{code}") for code in (200, 404, 500)]
    lost = sent(connector_id, path="/lost", status=None, error="upstream_timeout")

    log = await written(database, *by_status, lost)

    assert [each.path for each in (await log.find(organization_id, requests)).data] == paths


async def test_another_organization_sees_nothing_of_it(
    database: Database,
    stranger_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
):
    connector_id = await create()

    log = await written(database, sent(connector_id))

    assert (await log.find(stranger_id, RequestSelection(connector_id=connector_id))).data == []


async def test_a_request_of_no_connector_is_dropped_and_takes_none_of_its_batch_along(
    database: Database,
    organization_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
):
    log = await written(database, sent(uuid4()), sent(await create()))

    assert len((await log.find(organization_id, RequestSelection())).data) == 1


async def test_requests_of_a_removed_connector_go_with_it(
    database: Database,
    organization_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
):
    removed, kept = await create(), await create(name="kept")
    log = await written(database, sent(removed), sent(kept))

    await log.remove(organization_id, removed)

    assert [each.connector_id for each in (await log.find(organization_id, RequestSelection())).data] == [str(kept)]
