"""More callers than a front end can serve: some are refused at once, the others are served, and probes always are.

How fast the others are served is measured by tests/benchmarks/bench_overload.py; here any work counts as too much.
"""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.harness.databases import created_database, url_of
from tests.harness.deployment import deployed

pytestmark = pytest.mark.alone

CALLERS, CALLS = 150, 8


@pytest.fixture(scope="module")
async def deployment(
    tmp_path_factory: pytest.TempPathFactory, postgres_url: str, redis_url: str, migrated_database: str
):
    folder: Path = tmp_path_factory.mktemp("overloaded")
    async with (
        created_database(postgres_url, migrated_database) as name,
        deployed(folder, url_of(postgres_url, name), redis_url, GATEWAY_MAX_LOAD="0.001") as deployment,
    ):
        yield deployment


@pytest.fixture
async def api(deployment):
    async with deployment.api() as api:
        yield api


async def test_a_crowd_is_served_in_part_and_the_rest_gets_retry_after_and_is_counted(api):
    desk = await api.connector()

    async def caller() -> list:
        return [await desk.send("tickets", "list", {"per_page": 1}) for _ in range(CALLS)]

    probe = asyncio.create_task(api.get("/healthz"))
    refused, answers = [], []
    async with asyncio.timeout(60):
        while not refused:  # the load of a start does not count: a front end may be too young for the first crowd
            answers = [answer for each in await asyncio.gather(*(caller() for _ in range(CALLERS))) for answer in each]
            refused = [answer for answer in answers if answer.status == 503]
    async with api.session.get("/metrics") as answer:
        counts = await answer.text()

    assert set(Counter(answer.status for answer in answers)) == {200, 503}
    assert {answer.json()["code"] for answer in refused} == {"unavailable"}
    assert {int(answer.headers["Retry-After"]) for answer in refused} <= set(range(1, 11))
    assert all(answer.headers["X-Request-Id"] == answer.json()["request_id"] for answer in refused)
    assert (await probe).status == 200
    assert 'gateway_refused_total{limit="overload"}' in counts


async def test_a_few_callers_are_all_served_however_busy_the_process_is(api):
    desk = await api.connector()

    answers = [
        await asyncio.gather(*(desk.send("tickets", "list", {"per_page": 1}) for _ in range(20))) for _ in range(5)
    ]

    assert {answer.status for each in answers for answer in each} == {200}
