"""Machines whose clocks are days off or jump: nothing ends early or late."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.faults.arena import Arena, arena, seconds_until, ticket
from tests.harness.caller import Answer, Api, ConnectorApi
from tests.harness.processes import Program
from tests.harness.waiting import eventually

DAYS, HOUR = 2 * 86_400, 3600
#: seconds of an approval, and calls that a budget and a policy allow
LIFETIME, MOST = 60, 4
SOON = "UPDATE approvals SET expires_at = now() + interval '2 seconds' WHERE id = $1 RETURNING expires_at"
POLICY = f"""
    permit(principal, action, resource);
    @id("ask") @approval("Look first.")
    forbid(principal, action == Action::"support-desk.tickets.create", resource);
    @id("few") forbid(principal, action == Action::"support-desk.tickets.get", resource)
    when {{ context.calls.last_hour >= {MOST} || context.calls.today >= {MOST} }};
"""
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


@dataclass(frozen=True)
class TwoHours:
    """Two front ends whose clocks are an hour ahead and an hour behind, and a caller and an approver at each."""

    gateway: Arena
    desks: Sequence[ConnectorApi]
    approvers: Sequence[Api]

    async def asked(self, name: str, at: int) -> dict[str, Any]:
        """The approval for which a call at a front end waits, with the id of its job."""
        desk = self.desks[at]
        job = await desk.submit("tickets", "create", ticket(name))
        await eventually(lambda: _waits(desk.api, job["id"]))
        waiting = (await desk.api.get(f"/api/v1/jobs/{job['id']}")).document()
        shown = (await self.approvers[at].get(f"/api/v1/approvals/{waiting['approval']['id']}")).document()
        return dict(shown)

    async def decide(self, approval: dict[str, Any], at: int, word: str = "approve") -> Answer:
        path = f"/api/v1/approvals/{approval['id']}/{word}"
        return await self.approvers[at].post(path, {"digest": approval["digest"]})

    async def now(self) -> datetime:
        """The time of PostgreSQL."""
        now: datetime = await self.gateway.stores.value("SELECT now()")
        return now


async def _waits(api: Api, job_id: str) -> bool:
    return bool((await api.get(f"/api/v1/jobs/{job_id}")).document()["status"] == "waiting")


@pytest.fixture(scope="module")
async def hours(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TwoHours]:
    folder = tmp_path_factory.mktemp("clocks")
    async with arena(front_ends=0, GATEWAY_APPROVAL_SECONDS=str(LIFETIME)) as gateway, AsyncExitStack() as stack:
        ends = [
            await stack.enter_async_context(front_end_on(Machine(folder, shift), gateway)) for shift in (HOUR, -HOUR)
        ]
        colleague = await gateway.colleague()
        first = await stack.enter_async_context(gateway.desk(ends[0]))
        desks = [first, first.through(await stack.enter_async_context(gateway.api(ends[1])))]
        approvers = [await stack.enter_async_context(gateway.api(end, colleague)) for end in ends]
        (await first.api.call("PUT", "/api/v1/policies/main", json={"cedar": POLICY, "mode": "enforce"})).document()
        yield TwoHours(gateway, desks, approvers)


@pytest.mark.parametrize(("asked", "decided"), [(0, 1), (1, 0)])
async def test_front_ends_an_hour_apart_agree_on_an_approval_that_is_used_once(
    hours: TwoHours, asked: int, decided: int
):
    began = await hours.now()
    approval = await hours.asked(f"approved{asked}", asked)
    first, again = await hours.decide(approval, decided), await hours.decide(approval, asked)
    other = await hours.decide(approval, asked, "deny")
    job = await hours.desks[asked].api.ended_job({"id": approval["job_id"]})
    [word] = (await hours.approvers[asked].get(f"/api/v1/approvals/{approval['id']}")).document()["decisions"]
    ended = await hours.now()

    assert (first.status, again.status, other.status, job["status"]) == (200, 200, 409, "succeeded")
    assert hours.gateway.upstream.created[f"approved{asked}"] == 1
    assert began <= datetime.fromisoformat(word["at"]) <= ended
    assert began <= datetime.fromisoformat(approval["expires_at"]) - timedelta(seconds=LIFETIME) <= ended


@pytest.mark.parametrize(("asked", "late"), [(0, 1), (1, 0)])
async def test_an_approval_expires_after_its_seconds_at_front_ends_an_hour_apart(
    hours: TwoHours, asked: int, late: int
):
    approval = await hours.asked(f"expired{asked}", asked)
    path = f"/api/v1/approvals/{approval['id']}"
    ends = await hours.gateway.stores.value(SOON, UUID(approval["id"]))

    async def is_expired() -> bool:
        return bool((await hours.approvers[late].get(path)).document()["status"] == "expired")

    await eventually(is_expired, within=60)
    expired, refused = await hours.now(), [await hours.decide(approval, at) for at in (late, asked)]
    job = await hours.desks[late].api.ended_job({"id": approval["job_id"]})

    assert ends <= expired
    assert [each.status for each in refused] == [409, 409]
    assert job["status"] == "canceled"
    assert hours.gateway.upstream.created[f"expired{asked}"] == 0


async def test_front_ends_an_hour_apart_count_the_same_hour(hours: TwoHours):
    """For a budget of an hour, and for policies that read the calls of the last hour and of today."""
    await eventually(lambda: _has_begun(hours), within=60)
    budget = {"per": "hour", "calls": MOST, "client_id": hours.gateway.api_client.id}
    for at, desk in enumerate(hours.desks):
        (await desk.api.call("PUT", f"/api/v1/budgets/hour{at}", json=budget)).document()
    listed = [await hours.desks[number % 2].send("tickets", "list", {}) for number in range(2 * MOST)]
    shown = [(await desk.api.get("/api/v1/budgets")).document()["data"] for desk in hours.desks]
    for at, desk in enumerate(hours.desks):
        assert (await desk.api.call("DELETE", f"/api/v1/budgets/hour{at}")).status == 204
    read = [await desk.send("tickets", "get", {"ticket_id": 1}) for desk in hours.desks]

    assert [each.status for each in listed] == [200] * MOST + [429] * MOST
    assert [each.status for each in read] == [403, 403]
    assert shown[0] == shown[1]
    assert len({each["resets_at"] for each in shown[0]}) == 1
    left = datetime.fromisoformat(shown[0][0]["resets_at"]) - await hours.now()
    assert timedelta(0) < left <= timedelta(hours=1)


async def _has_begun(hours: TwoHours) -> bool:
    """Whether the hour does not end while the test runs."""
    return bool(await hours.gateway.stores.value("SELECT date_trunc('hour', now() + interval '30 s') <= now()"))


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
