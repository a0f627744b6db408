"""Two front ends on one port and two workers: an upgrade under load loses and doubles nothing."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from tests.harness.caller import ASYNC, ConnectorApi
from tests.harness.databases import created_database, url_of
from tests.harness.deployment import Deployment, deployed

pytestmark = pytest.mark.alone

CALLERS = 4


@pytest.fixture
async def deployment(tmp_path: Path, postgres_url: str, redis_url: str, migrated_database: str):
    async with (
        created_database(postgres_url, migrated_database) as name,
        deployed(tmp_path, url_of(postgres_url, name), redis_url, front_ends=2, workers=2) as deployment,
    ):
        yield deployment


@dataclass
class Load:
    """Callers who go on calling: reads, writes with a key and jobs in turn, each answer noted."""

    desk: ConnectorApi
    numbers: Iterator[int] = field(default_factory=itertools.count)
    answers: Counter[tuple[str, int | str]] = field(default_factory=Counter)
    refusals: list[bytes | str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    is_over: asyncio.Event = field(default_factory=asyncio.Event)

    async def caller(self) -> None:
        while not self.is_over.is_set():
            for turn in (self._read, self._write, self._job):
                await turn()

    async def _read(self) -> None:
        await self._noted("read", "tickets", "list", {"per_page": 2})

    async def _write(self) -> None:
        subject = f"upgrade {next(self.numbers)}"
        ticket = {"ticket": {"subject": subject, "comment": {"body": "b"}}}
        answer = await self._noted("write", "tickets", "create", ticket, {"Idempotency-Key": subject.replace(" ", "-")})
        if answer is not None:
            self.created.append(subject)

    async def _job(self) -> None:
        answer = await self._noted("job", "tickets", "get", {"ticket_id": 1}, ASYNC)
        if answer is not None:
            self.jobs.append(answer["job"]["id"])

    async def subjects(self) -> AsyncIterator[str]:
        """The subjects of the tickets that callers made, as the application has them."""
        for page in itertools.count(1):
            answer = await self.desk.execute("tickets", "list", {"per_page": 100, "page": page})
            for ticket in answer["result"]:
                if ticket["subject"].startswith("upgrade "):
                    yield ticket["subject"]
            if answer["connector_metadata"]["next_page"] is None:
                return

    async def _noted(self, what, entity, action, params, headers=None):
        try:
            answer = await self.desk.send(entity, action, params, headers)
        except (aiohttp.ClientError, TimeoutError) as error:
            self.answers[(what, type(error).__name__)] += 1
            self.refusals.append(repr(error))
            return None
        self.answers[(what, answer.status)] += 1
        if answer.status >= 300:
            self.refusals.append(answer.body)
            return None
        return answer.json()


async def replaced_one_by_one(deployment: Deployment, processes) -> list[int]:
    """The exit codes of the old processes; a new one is there before each of them goes."""
    codes = []
    for start, process in processes:
        await start()
        codes.append(await deployment.stop(process))
    return codes


@pytest.fixture
async def old_processes(deployment: Deployment):
    front_ends = [(deployment.front_end, process) for process in deployment.front_ends]
    workers = [(deployment.worker, process) for process in deployment.workers]
    return [front_ends[0], workers[0], front_ends[1], workers[1]]


async def test_an_upgrade_under_load_fails_nothing_and_doubles_nothing(deployment: Deployment, old_processes):
    async with deployment.api() as api:
        load = Load(await api.connector())
        callers = [asyncio.create_task(load.caller()) for _ in range(CALLERS)]

        codes = await replaced_one_by_one(deployment, old_processes)
        load.is_over.set()
        await asyncio.gather(*callers)
        there = Counter([subject async for subject in load.subjects()])
        ends = [(await api.get(f"/api/v1/jobs/{job_id}/result?wait=30")).status for job_id in load.jobs]

    assert codes == [0, 0, 0, 0]
    assert load.refusals == []
    assert set(load.answers) == {("read", 200), ("write", 200), ("job", 202)}
    assert min(load.answers.values()) > 20
    assert set(ends) == {200}
    assert there == Counter(load.created)
    assert set(there.values()) == {1}
