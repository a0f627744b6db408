"""Lists that a replica answers: they have the caller's own writes, and say of when they are."""

from collections.abc import AsyncIterator
from datetime import datetime

import pytest

from gateway.foundation.aio.clock import CLOCK
from tests.harness.caller import Api
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.waiting import eventually


@pytest.fixture(scope="module")
async def front(tmp_path_factory: pytest.TempPathFactory, database_url: str, redis_url: str) -> AsyncIterator[FrontEnd]:
    """A front end that reads from its primary as from a replica, which has always replayed everything."""
    folder = tmp_path_factory.mktemp("front-end")
    async with front_end(folder, database_url, redis_url, database_read_url=database_url) as opened:
        replica = opened.services.database.replica
        await eventually(lambda: replica is not None and replica.lag is not None)
        yield opened


async def test_a_caller_finds_what_it_has_just_created(api: Api):
    for number in range(3):
        desk = await api.connector()
        job = await desk.submit("tickets", "list", {"per_page": 1})
        jobs = (await api.get("/api/v1/jobs")).document()
        connectors = (await api.get("/api/v1/integrations/connectors")).document()

        assert jobs["data"][0]["id"] == job["id"]
        assert (len(jobs["data"]), len(connectors["data"])) == (number + 1, number + 1)


@pytest.mark.parametrize("path", ["jobs", "integrations/connectors", "events", "audit"])
async def test_a_page_says_of_when_it_is(api: Api, path: str):
    await api.connector()

    page = (await api.get(f"/api/v1/{path}")).document()

    age = CLOCK.now() - datetime.fromisoformat(page["as_of"])
    assert abs(age.total_seconds()) < 30


async def test_an_organization_sees_only_its_own_rows(front: FrontEnd, api: Api):
    await api.connector()

    async with front.api() as other:
        page = (await other.get("/api/v1/integrations/connectors")).document()

    assert page["data"] == []
    assert "as_of" in page
