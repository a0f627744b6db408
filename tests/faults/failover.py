"""The primary of PostgreSQL is lost under load, and its standby is promoted: nothing accepted is lost or doubled.

python -m tests.faults.failover [--jobs 1500]
"""

import argparse
import asyncio
import contextlib
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from tests.faults.arena import Arena, ticket
from tests.faults.insistent import InsistentClient
from tests.faults.storm import FINAL
from tests.faults.strikes import frozen
from tests.faults.upstream import Upstream
from tests.harness.clients import new_client_in
from tests.harness.postgres_relay import postgres_relay
from tests.harness.processes import Program
from tests.harness.replication import ListeningPostgres
from tests.harness.stores import Stores, own_stores
from tests.harness.waiting import eventually

JOBS = 1500
#: seconds from the loss of the primary within which every front end accepts jobs again and a worker runs them
TARGET = 10.0
#: seconds until whoever watches the servers promotes the standby
_NOTICED = 1.0
#: concurrent submissions at each front end, and seconds until a request is repeated
_SUBMITTERS, _ANSWERED = 4, 20.0
#: the part of the jobs that is accepted before the primary is lost
_BEFORE = 1 / 3
_JOBS = "SELECT id, status, extract(epoch FROM finished_at)::float8 AS ended FROM jobs WHERE NOT is_inline"
_IN_STEP = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"


class Loss(StrEnum):
    """How the primary is lost, and how the processes find the other server."""

    KILLED = "killed, two hosts in the URL"
    SILENT = "silent, two hosts in the URL"
    RELAYED = "killed, behind a proxy"


@dataclass
class FailoverReport:
    """The result of one loss."""

    loss: Loss
    accepted: int = 0
    lost: int = 0
    doubled: int = 0
    #: creates reported as done that the application never saw, and the other way round
    untrue: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    #: seconds from the loss until the standby accepted writes
    promoted: float = 0.0
    #: seconds from the loss until the last front end accepted a job, and until a job was run that was accepted later
    accepts: float = float("inf")
    runs: float = float("inf")

    @property
    def is_clean(self) -> bool:
        is_wrong = self.lost or self.doubled or self.untrue or set(self.ends) - {"succeeded", "unknown"}
        return not is_wrong and max(self.accepts, self.runs) <= TARGET

    def table(self) -> str:
        lines = [
            ("primary", self.loss),
            ("jobs accepted", self.accepted),
            ("final states", ", ".join(f"{name} {count}" for name, count in sorted(self.ends.items()))),
            ("lost", self.lost),
            ("creates sent twice", self.doubled),
            ("results untrue", self.untrue),
            ("from the loss: standby promoted", f"{self.promoted:.1f} s"),
            ("from the loss: both accept jobs", f"{self.accepts:.1f} s"),
            ("from the loss: a later job has run", f"{self.runs:.1f} s"),
        ]
        return "\n".join(f"{name:<38} {value}" for name, value in lines)


@dataclass
class FailoverReports:
    """The results of all losses."""

    reports: list[FailoverReport]

    @property
    def is_clean(self) -> bool:
        return all(report.is_clean for report in self.reports)

    def table(self) -> str:
        return "\n\n".join(report.table() for report in self.reports)


class Failover:
    """One loss of the primary while jobs are submitted at each front end and run by two workers."""

    def __init__(self, pair: "_Pair", jobs: int) -> None:
        self._pair = pair
        self._gateway = pair.gateway
        self._jobs = jobs
        self._numbers: Iterator[int] = iter(range(jobs))
        #: name → id of the job
        self._accepted: dict[str, str] = {}
        #: front end → when it accepted jobs
        self._accepted_at: dict[int, list[float]] = {}
        #: id → when its acceptance was known
        self._known_at: dict[str, float] = {}
        self._lost_at = float("inf")
        self.report = FailoverReport(pair.loss)

    async def run(self) -> FailoverReport:
        async with self._gateway.desk() as desk, asyncio.TaskGroup() as load:
            for front_end in self._gateway.front_ends:
                for _ in range(_SUBMITTERS):
                    load.create_task(self._submit(desk.path, front_end))
            await eventually(lambda: len(self._accepted) >= self._jobs * _BEFORE, within=120)
            self._lost_at = time.time()
            await self._pair.fail_over()
            self.report.promoted = time.time() - self._lost_at
        await eventually(self._all_ended, within=120)
        await self._judge()
        return self.report

    async def _submit(self, path: str, front_end: Program) -> None:
        """Submit jobs at the front end, each with a key, until each is accepted."""
        times = self._accepted_at.setdefault(id(front_end), [])
        async with self._gateway.api(front_end) as api:
            client = InsistentClient(self._gateway, random.Random(0), shared=[api])
            for number in self._numbers:
                name = f"failover-{number}"
                body = {"entity": "tickets", "action": "create", "params": ticket(name)}
                job_id = await client.submit(f"{path}/execute", body, name)
                self._accepted[name] = job_id
                times.append(time.time())
                self._known_at[job_id] = times[-1]

    async def _all_ended(self) -> bool:
        rows = await self._gateway.stores.rows(_JOBS)
        return bool(rows) and all(row["status"] in FINAL for row in rows)

    async def _judge(self) -> None:
        report, created = self.report, self._gateway.upstream.created
        rows = {str(row["id"]): row for row in await self._gateway.stores.rows(_JOBS)}
        report.accepted = len(self._accepted)
        report.ends = Counter(row["status"] for row in rows.values())
        for name, job_id in self._accepted.items():
            status = rows[job_id]["status"] if job_id in rows else None
            report.lost += status is None
            report.untrue += (status == "succeeded") > created[name] or (status == "failed" and created[name] > 0)
        report.doubled = sum(count > 1 for count in created.values())
        report.accepts = max(self._since_loss(times) for times in self._accepted_at.values())
        later = (rows[job_id]["ended"] for job_id, at in self._known_at.items() if at > self._lost_at)
        report.runs = self._since_loss(list(later))

    def _since_loss(self, times: list[float]) -> float:
        """Seconds from the promotion's loss until the first of the times after the standby was promoted."""
        promoted = self._lost_at + self.report.promoted
        return min((at for at in times if at >= promoted), default=float("inf")) - self._lost_at


class _Pair:
    """A gateway on a primary with a synchronous standby."""

    def __init__(self, gateway: Arena, standby: ListeningPostgres, loss: Loss, stack: contextlib.ExitStack) -> None:
        self.gateway = gateway
        self.loss = loss
        self._standby = standby
        self._stack = stack
        #: called once the standby is promoted
        self.on_promoted = lambda: None

    async def fail_over(self) -> None:
        """Lose the primary, and promote the standby soon after."""
        stores = self.gateway.stores
        if self.loss is Loss.SILENT:
            self._stack.enter_context(frozen(stores.postgres))
        else:
            assert stores.postgres.pid is not None
            os.kill(stores.postgres.pid, signal.SIGKILL)
        await asyncio.sleep(_NOTICED)
        await self._standby.promote()
        stores.postgres = self._standby
        self.on_promoted()


@asynccontextmanager
async def _standby_of(stores: Stores) -> AsyncIterator[ListeningPostgres]:
    """A standby, for which each commit of the primary waits."""
    primary = stores.postgres
    assert isinstance(primary, ListeningPostgres)
    standby = ListeningPostgres(stores.directory / "s")
    await stores.in_servers(partial(standby.copy, primary))
    await stores.in_servers(standby.start)
    try:
        await primary.require_standby()
        await eventually(lambda: stores.value(_IN_STEP))
        yield standby
    finally:
        await stores.in_servers(standby.stop)


@asynccontextmanager
async def _pair(loss: Loss) -> AsyncIterator[_Pair]:
    async with contextlib.AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(Upstream().serving())
        stores = await stack.enter_async_context(own_stores(ListeningPostgres))
        standby = await stack.enter_async_context(_standby_of(stores))
        freezing = stack.enter_context(contextlib.ExitStack())
        client = await new_client_in(stores.postgres.url)
        settings = {"GATEWAY_DATABASE_URL": _both(stores.postgres, standby), "GATEWAY_SYNCHRONIZE": "false"}
        relay = await stack.enter_async_context(postgres_relay(stores.postgres.url))
        if loss is Loss.RELAYED:
            settings["GATEWAY_DATABASE_URL"] = relay.url
        gateway = Arena(stores, upstream, client, settings)
        stack.push_async_callback(gateway.close)
        pair = _Pair(gateway, standby, loss, freezing)
        if loss is Loss.RELAYED:
            pair.on_promoted = lambda: relay.point(standby.url)
        for _ in range(2):
            await gateway.worker()
            await gateway.front_end_apart()
        yield pair


def _both(*servers: object) -> str:
    """The URL of whichever of the servers accepts writes."""
    hosts = ",".join(f"127.0.0.1:{each.port}" for each in servers if isinstance(each, ListeningPostgres))
    return f"postgresql://postgres@{hosts}/gateway?target_session_attrs=read-write"


async def failover(loss: Loss, jobs: int) -> FailoverReport:
    """Lose the primary in this way; returns the report."""
    async with _pair(loss) as pair:
        return await Failover(pair, jobs).run()


async def failovers(jobs: int) -> FailoverReports:
    """Lose the primary in every way, each time of a new gateway."""
    return FailoverReports([await failover(loss, jobs) for loss in Loss])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=JOBS)
    report = asyncio.run(failovers(parser.parse_args().jobs))
    sys.stdout.write(report.table() + "\n")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
