"""Machines whose clocks are days off, or jump: nothing ends early or late for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.faults.arena import Arena, Caller, Part, arena, until

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
async def front_end_on(machine: Machine, gateway: Arena, **settings: str) -> AsyncIterator[Part]:
    front = await gateway.front_end_apart(**machine.settings, **settings)
    yield front
    await gateway.stop(front)


@pytest.fixture(scope="module")
async def gateway() -> AsyncIterator[Arena]:
    async with arena() as opened:
        yield opened


@pytest.mark.parametrize("shift", [DAYS, -DAYS])
async def test_a_token_lasts_its_seconds_on_a_machine_whose_clock_is_off(gateway: Arena, tmp_path: Path, shift: float):
    is_short = {"GATEWAY_TOKEN_SECONDS": "4"}
    machine = Machine(tmp_path, shift)
    async with front_end_on(machine, gateway, **is_short) as front, gateway.caller(front) as caller:
        fresh, _, _ = await caller.call("GET", "/api/v1/jobs")
        lasted = await until(lambda: _is_refused(caller))

    assert fresh == 200
    assert 2 <= lasted <= 6


async def _is_refused(caller) -> bool:
    return (await caller.call("GET", "/api/v1/jobs"))[0] == 401


async def test_a_front_end_whose_clock_jumps_goes_on_as_before(gateway: Arena, tmp_path: Path):
    machine = Machine(tmp_path, 0)
    async with front_end_on(machine, gateway) as front, gateway.caller(front) as caller:
        await caller.connect()
        job = await caller.ended((await caller.submit("tickets", "list", {}))["id"])
        path = f"/api/v1/jobs/{job['id']}/result"
        machine.jump(DAYS)
        ahead = [(await caller.call("GET", path))[0], await _status_of_a_call(caller, "ahead")]
        machine.jump(-DAYS)
        behind = [(await caller.call("GET", path))[0], await _status_of_a_call(caller, "behind")]
        async with gateway.caller(front) as fresh:
            await until(lambda: _is_counted(fresh))

    assert ahead == behind == [200, 200]


async def _status_of_a_call(caller: Caller, key: str) -> int:
    return (await caller.execute("tickets", "list", {}, Idempotency_Key=key))[0]


async def _is_counted(caller: Caller) -> bool:
    """All three operations have a place within the last minutes."""
    _, usage, _ = await caller.call("GET", "/api/v1/usage?step=600")
    return sum(point["calls"] for point in usage["data"]) >= 3


async def test_a_worker_whose_clock_is_ahead_has_as_much_patience(gateway: Arena, tmp_path: Path):
    """A job waits for its application, a day at most."""
    [worker] = gateway.workers
    await gateway.stop(worker)
    shifted = await gateway.worker(**Machine(tmp_path, DAYS).settings)
    gateway.upstream.refusals = 1
    async with gateway.caller() as caller:
        await caller.connect()
        job = await caller.ended((await caller.submit("tickets", "get", {"ticket_id": 1}))["id"])
    await gateway.stop(shifted)

    assert (job["status"], job["attempt"]) == ("succeeded", 2)
