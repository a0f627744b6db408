"""The key service away under load: calls go on, a start waits, and the key list changes without an error."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.faults.arena import Arena, arena, ticket
from tests.faults.key_storm import key_storm, rotated, sealed_by, wrapped_key
from tests.harness.caller import ConnectorApi
from tests.harness.key_services import KeyServices
from tests.harness.processes import KEYS
from tests.harness.waiting import eventually


async def test_calls_go_on_while_the_key_service_is_away_and_a_process_that_starts_waits_for_it():
    async with KeyServices().serving() as services:
        keys = f"{await wrapped_key(services)},{KEYS}"
        async with (
            arena(workers=1, GATEWAY_ENCRYPTION_KEYS=keys, **services.environ) as gateway,
            gateway.desk() as desk,
        ):
            services.is_away = True
            asked = len(services.requests)
            answers = Counter([(await desk.send("tickets", "list", {})).status for _ in range(20)])
            job = await desk.api.ended_job(await desk.submit("tickets", "create", ticket("away")))
            connector = await desk.api.connector(validate=False)

            starting = asyncio.create_task(gateway.front_end_apart())
            await eventually(lambda: len(services.requests) > asked)
            await eventually(lambda: "the process cannot start yet" in gateway.log())
            services.is_away = False
            started = await starting
            async with gateway.api(started) as api:
                late = await connector.through(api).send("tickets", "list", {})

    assert (answers, job["status"], late.status) == ({200: 20}, "succeeded", 200)
    assert services.faults == []


async def test_no_call_fails_while_the_key_service_is_away_and_the_key_is_replaced_afterwards():
    report = await key_storm(connectors=3, away=12)

    assert report.is_clean, report.table()


async def test_a_process_that_waits_for_the_key_service_ends_when_it_is_told_to():
    async with KeyServices().serving() as services:
        keys = await wrapped_key(services)
        async with arena(workers=0, front_ends=0, GATEWAY_ENCRYPTION_KEYS=keys, **services.environ) as gateway:
            services.is_away = True
            codes = []
            for start, programs in ((gateway.front_end_apart, gateway.front_ends), (gateway.worker, gateway.workers)):
                asked, starting = len(services.requests), asyncio.create_task(start())
                await eventually(lambda asked=asked: len(services.requests) > asked)
                program = programs[0]
                codes.append(await gateway.stop(program))
                await asyncio.gather(starting, return_exceptions=True)

    assert codes == [0, 0]


async def test_the_key_list_changes_to_a_key_service_and_back_under_load_without_an_error():
    async with KeyServices().serving() as services:
        wrapped = await wrapped_key(services)
        async with arena(workers=0, **services.environ) as gateway, gateway.desk() as desk:
            async with load(desk, gateway) as statuses:
                await replaced(gateway, statuses, f"{KEYS},{wrapped}")
                await replaced(gateway, statuses, f"{wrapped},{KEYS}")
                await rotated(gateway, f"{wrapped},{KEYS}")
                at_the_service = await sealed_by(gateway)
                await replaced(gateway, statuses, wrapped)
                await replaced(gateway, statuses, f"{wrapped},{KEYS}")
                await replaced(gateway, statuses, f"{KEYS},{wrapped}")
                await rotated(gateway, f"{KEYS},{wrapped}")
                await replaced(gateway, statuses, KEYS)
            after = await sealed_by(gateway)

    assert set(statuses) == {200}
    assert (at_the_service, after) == ({wrapped.partition(":")[0]}, {"k1"})
    assert services.faults == []


@asynccontextmanager
async def load(desk: ConnectorApi, gateway: Arena) -> AsyncIterator[Counter[int]]:
    """Calls of the connector at the first front end, one after the other, within the block; their statuses."""
    statuses, over = Counter[int](), asyncio.Event()

    async def call() -> None:
        while not over.is_set():
            front_end = gateway.front_ends[0]
            async with gateway.api(front_end) as api:
                while gateway.front_ends[0] is front_end and not over.is_set():
                    statuses[(await desk.through(api).send("tickets", "list", {})).status] += 1

    async with asyncio.TaskGroup() as calling:
        calling.create_task(call())
        await eventually(lambda: statuses)
        yield statuses
        over.set()


async def replaced(gateway: Arena, statuses: Counter[int], keys: str) -> None:
    """Start a front end with the key list, send the calls there, and end the one before it."""
    await gateway.front_end_apart(GATEWAY_ENCRYPTION_KEYS=keys)
    before = gateway.front_ends.pop(0)
    called = statuses.total()
    # The calls that were sent before the change have ended.
    await eventually(lambda: statuses.total() > called + 2)
    await before.stop()
