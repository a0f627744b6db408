"""The key service is away under load: no call fails, and the key is replaced afterwards.

python -m tests.faults.key_storm [--connectors 6] [--away 40]
"""

import argparse
import asyncio
import itertools
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gateway.foundation.vault.key_services.opening import new_wrapped_key
from tests.faults.arena import Arena, arena, ticket
from tests.harness.caller import ASYNC, ConnectorApi
from tests.harness.command_line import invoked
from tests.harness.key_services import KeyServices, service_urls
from tests.harness.processes import Program
from tests.harness.waiting import eventually

CONNECTORS, AWAY = 6, 40.0
#: keys are held for twice the time that the service is away, as two hours by default are twice an hour
_HELD = 2
#: calls of each connector before the service goes away, and after each change
_CALLS = 5
_ENCRYPTION_KEYS = "GATEWAY_ENCRYPTION_KEYS"
_WAITS = "the process cannot start yet"


@dataclass
class KeyReport:
    """The calls and jobs of a run."""

    connectors: int
    #: seconds for which the service was away, and requests that it left unanswered
    away: float = 0.0
    unanswered: int = 0
    calls: int = 0
    calls_while_away: int = 0
    #: statuses of calls that were neither answered nor accepted
    failed: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    doubled: int = 0
    #: creates reported as done that the application never saw, and the other way round
    untrue: int = 0
    slowest: float = 0.0
    #: whether the killed worker waited, and seconds until it was ready once the service was back
    has_waited: bool = False
    ready: float = float("inf")
    #: seconds in which the data keys were wrapped by the next key, and the keys that wrap them in the end
    rotation: float = float("inf")
    is_rotated: bool = False
    #: requests that no vendor documents
    undocumented: int = 0

    @property
    def is_clean(self) -> bool:
        was_away = self.unanswered and self.calls_while_away and self.has_waited
        is_wrong = self.failed or self.doubled or self.untrue or self.undocumented
        return bool(was_away and self.is_rotated and not is_wrong and not set(self.ends) - {"succeeded", "unknown"})

    def table(self) -> str:
        lines = [
            ("connectors", self.connectors),
            ("key service away", f"{self.away:.0f} s, {self.unanswered} requests without an answer"),
            ("calls, while it was away", f"{self.calls}, {self.calls_while_away}"),
            ("failed", _listed(self.failed) or 0),
            ("slowest call", f"{self.slowest:.1f} s"),
            ("jobs ended", _listed(self.ends)),
            ("creates sent twice, results untrue", f"{self.doubled}, {self.untrue}"),
            ("a killed worker waited, and was ready", f"{self.ready:.1f} s after the service was back"),
            ("wrapped again by the next key", f"in {self.rotation:.1f} s, {'all' if self.is_rotated else 'not all'}"),
        ]
        return "\n".join(f"{name:<38} {value}" for name, value in lines)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


class Load:
    """Reads, creates and jobs of each connector, one after the other, at the first front end."""

    def __init__(self, gateway: Arena, report: KeyReport) -> None:
        self._gateway = gateway
        self._report = report
        self._numbers = itertools.count()
        #: path of the connector → the front end that it calls
        self._called: dict[str, Program] = {}
        #: path of the connector → the number of its calls
        self._calls = Counter[str]()
        self._is_over = asyncio.Event()
        #: name → whether it was created, as the gateway says; ids of jobs by the name that they create
        self.created: dict[str, bool] = {}
        self.jobs: dict[str, str] = {}

    @asynccontextmanager
    async def running(self, desks: list[ConnectorApi]) -> AsyncIterator[None]:
        """Call the connectors within the block, each of them before it begins."""
        async with asyncio.TaskGroup() as calling:
            for desk in desks:
                calling.create_task(self._call(desk))
            await eventually(lambda: len(self._calls) == len(desks))
            await self.more()
            yield
            self._is_over.set()

    async def more(self) -> None:
        """Wait for further calls of each connector."""
        before = self._calls.copy()
        await eventually(lambda: all(self._calls[path] >= calls + _CALLS for path, calls in before.items()))

    async def left(self, front_end: Program) -> None:
        """Wait until no connector calls the front end."""
        await eventually(lambda: front_end not in self._called.values())

    async def _call(self, desk: ConnectorApi) -> None:
        while not self._is_over.is_set():
            front_end = self._called[desk.path] = self._gateway.front_ends[0]
            async with self._gateway.api(front_end) as api:
                while self._gateway.front_ends[0] is front_end and not self._is_over.is_set():
                    await self._once(desk.through(api))
                    self._calls[desk.path] += 1
        del self._called[desk.path]

    async def _once(self, desk: ConnectorApi) -> None:
        number, started = next(self._numbers), time.monotonic()
        name, is_list = f"keys-{number}", number % 3 == 0
        call = ("list", {}) if is_list else ("create", ticket(name))
        answer = await desk.send("tickets", *call, ASYNC if number % 3 == 1 else {})
        self._report.calls += 1
        self._report.slowest = max(self._report.slowest, time.monotonic() - started)
        if answer.status == 202:
            self.jobs[name] = answer.json()["job"]["id"]
        elif answer.status != 200:
            self._report.failed[f"{answer.status} {answer.json().get('detail')}"] += 1
        if answer.status != 202 and not is_list:
            self.created[name] = answer.status == 200


class KeyStorm:
    """One absence of the key service, and the change of the key after it."""

    def __init__(self, gateway: Arena, services: KeyServices, keys: tuple[str, str], connectors: int) -> None:
        self._gateway = gateway
        self._services = services
        #: the entry that wraps the credentials, and the one that replaces it
        self._old, self._new = keys
        self.report = KeyReport(connectors)
        self._load = Load(gateway, self.report)

    async def run(self, away: float) -> KeyReport:
        async with self._gateway.api() as api:
            desks = [await api.connector(validate=False) for _ in range(self.report.connectors)]
        async with self._load.running(desks):
            await self._go_away(away)
            await self._replace_the_key()
        await self._judge()
        return self.report

    async def _go_away(self, seconds: float) -> None:
        """Cut its connections for half of the time, and then leave requests without an answer; kill a worker."""
        services, worker = self._services, self._gateway.workers[0]
        asked, called, started = len(services.requests), self.report.calls, time.monotonic()
        services.is_away = True
        await worker.kill()
        await worker.launch()
        await asyncio.sleep(seconds / 2)
        services.held = asyncio.Event()
        services.is_away = False
        await asyncio.sleep(seconds / 2)
        self.report.has_waited = _WAITS in self._gateway.log()
        self.report.unanswered = len(services.requests) - asked
        self.report.calls_while_away = self.report.calls - called
        self.report.away = time.monotonic() - started
        services.held.set()
        services.held, back = None, time.monotonic()
        await worker.ready()
        self.report.ready = time.monotonic() - back

    async def _replace_the_key(self) -> None:
        """Seal with the next key in all processes, wrap what the old one has wrapped, and take the old one away."""
        both = f"{self._new},{self._old}"
        await self._restart(both)
        started = time.monotonic()
        await rotated(self._gateway, both)
        self.report.rotation = time.monotonic() - started
        await self._load.more()
        await self._restart(self._new)
        await self._load.more()
        self.report.is_rotated = await sealed_by(self._gateway) == {self._new.partition(":")[0]}

    async def _restart(self, keys: str) -> None:
        """Replace each process by one with the keys."""
        for worker in list(self._gateway.workers):
            await self._gateway.worker(**{_ENCRYPTION_KEYS: keys})
            await self._gateway.stop(worker)
        for front_end in list(self._gateway.front_ends):
            await self._gateway.front_end_apart(**{_ENCRYPTION_KEYS: keys})
            self._gateway.front_ends.remove(front_end)
            await self._load.left(front_end)
            await front_end.stop()

    async def _judge(self) -> None:
        report, created = self.report, self._gateway.upstream.created
        async with self._gateway.api() as api:
            ended = {name: await api.ended_job({"id": job}) for name, job in self._load.jobs.items()}
        report.ends.update(job["status"] for job in ended.values())
        said = {**self._load.created, **{name: job["status"] == "succeeded" for name, job in ended.items()}}
        unknown = {name for name, job in ended.items() if job["status"] == "unknown"}
        report.untrue = sum(is_done != (created[name] > 0) for name, is_done in said.items() if name not in unknown)
        report.doubled = sum(count > 1 for count in created.values())
        report.undocumented = len(self._services.faults)


async def wrapped_key(services: KeyServices) -> str:
    """An entry of a key list with a new key that the service has wrapped."""
    key_id, key = await new_wrapped_key(service_urls(services)["vault"], services.environ)
    return f"{key_id}:{key.text}"


async def rotated(gateway: Arena, keys: str) -> None:
    """Wrap all data keys by the first of the keys."""
    environment: Mapping[str, str] = {**gateway.environment, _ENCRYPTION_KEYS: keys}
    ended = await invoked("keys", "rotate", environment=environment, directory=gateway.stores.directory)
    assert ended.code == 0, ended.err


async def sealed_by(gateway: Arena) -> set[str]:
    """The ids of the keys that wrap credentials."""
    return {row["key_id"] for row in await gateway.stores.rows("SELECT DISTINCT key_id FROM connector_secrets")}


async def key_storm(connectors: int, away: float) -> KeyReport:
    """Take the key service away for so many seconds; returns the report."""
    async with KeyServices().serving() as services:
        keys = (await wrapped_key(services), await wrapped_key(services))
        settings = {_ENCRYPTION_KEYS: ",".join(keys), "GATEWAY_ENCRYPTION_KEYS_SECONDS": str(away * _HELD)}
        async with arena(workers=2, **settings, **services.environ) as gateway:
            return await KeyStorm(gateway, services, keys, connectors).run(away)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connectors", type=int, default=CONNECTORS)
    parser.add_argument("--away", type=float, default=AWAY)
    options = parser.parse_args()
    report = asyncio.run(key_storm(options.connectors, options.away))
    sys.stdout.write(report.table() + "\n")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
