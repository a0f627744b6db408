"""Machines whose clocks are days off or jump: nothing ends early or late."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.arena import Arena, arena, seconds_until
from tests.harness.caller import Api, ConnectorApi
from tests.harness.processes import Program
from tests.harness.waiting import eventually

DAYS = 2 * 86_400
SHIFTED = Path(__file__).parent / "clock_shift"


class Machine:
    """A machine with a clock of its own."""

    def __init__(self, directory: Path, seconds: float) -> None:
        self._file = directory / f"shift-{seconds}"
        self.jump(seconds)

    def jump(self, seconds: float) -> None:
        """Its clock is off by so much from now on."""
        self._file.write_text(str(seconds))

    @property
    def settings(self) -> dict[str, str]:
        """The environment of its processes."""
        return {"PYTHONPATH": str(SHIFTED), "CLOCK_SHIFT": str(self._file)}


@asynccontextmanager
async def front_end_on(machine: Machine, gateway: Arena, **settings: str) -> AsyncIterator[Program]:
    front_end = await gateway.front_end_apart(**machine.settings, **settings)
    yield front_end
    await gateway.stop(front_end)


@pytest.fixture(scope="module")
async def gateway() -> AsyncIterator[Arena]:
    async with arena() as opened:
        yield opened


@pytest.mark.parametrize("shift", [DAYS, -DAYS])
async def test_a_token_lasts_its_seconds_on_a_machine_whose_clock_is_off(gateway: Arena, tmp_path: Path, shift: float):
    is_short = {"GATEWAY_TOKEN_SECONDS": "4"}
    machine = Machine(tmp_path, shift)
    async with front_end_on(machine, gateway, **is_short) as front_end, gateway.api(front_end) as api:
        fresh = await api.get("/api/v1/jobs")
        lasted = await seconds_until(lambda: _is_refused(api))

    assert fresh.status == 200
    assert 2 <= lasted <= 6


async def _is_refused(api: Api) -> bool:
    return (await api.get("/api/v1/jobs")).status == 401


async def test_a_front_end_whose_clock_jumps_continues_as_before(gateway: Arena, tmp_path: Path):
    machine = Machine(tmp_path, 0)
    async with front_end_on(machine, gateway) as front_end, gateway.desk(front_end) as desk:
        job = await desk.api.ended_job(await desk.submit("tickets", "list", {}))
        machine.jump(DAYS)
        ahead = await _statuses(desk, job, "ahead")
        machine.jump(-DAYS)
        behind = await _statuses(desk, job, "behind")
        async with gateway.api(front_end) as fresh:
            await eventually(lambda: _is_counted(fresh))

    assert ahead == behind == [200, 200]


async def _statuses(desk: ConnectorApi, job: dict[str, Any], key: str) -> list[int]:
    """Of the result of a job, and of a call under a key."""
    result = await desk.api.get(f"/api/v1/jobs/{job['id']}/result")
    called = await desk.send("tickets", "list", {}, {"Idempotency-Key": key})
    return [result.status, called.status]


async def _is_counted(api: Api) -> bool:
    """All three operations have a place within the last minutes."""
    usage = (await api.get("/api/v1/usage?step=600")).json()
    return sum(point["calls"] for point in usage["data"]) >= 3


async def test_a_worker_whose_clock_is_ahead_has_as_much_patience(gateway: Arena, tmp_path: Path):
    """A job waits for its application, a day at most."""
    [worker] = gateway.workers
    await gateway.stop(worker)
    shifted = await gateway.worker(**Machine(tmp_path, DAYS).settings)
    gateway.upstream.refusals = 1
    async with gateway.desk() as desk:
        job = await desk.api.ended_job(await desk.submit("tickets", "get", {"ticket_id": 1}))
    await gateway.stop(shifted)

    assert (job["status"], job["attempt"]) == ("succeeded", 2)
