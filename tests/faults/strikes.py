"""The faults of a storm: kills and freezes of processes and stores, flushes of Redis, cut connections."""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psutil
from redis.asyncio import Redis

from gateway.embedded.server import LocalServer
from tests.faults.arena import Arena
from tests.harness.deployment import Deployment
from tests.harness.processes import Program
from tests.harness.waiting import eventually

#: seconds of a freeze; a lease lasts ten
FREEZES = (1.0, 13.0)
#: seconds until a part of what a storm waits for must be done
PATIENCE = 2400
#: seconds until a killed store is started again
DOWN = 0.5
_CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname IS NOT NULL AND pid <> pg_backend_pid()"


async def kill_in_turn(
    deployment: Deployment, killed: Counter[str], kills: int, done: Callable[[], int], total: int
) -> None:
    """Kill a worker, or every fourth time a front end, and start it again, whenever a further part is done."""
    for kill in range(1, kills + 1):
        part = kill * total // (kills + 1)
        await eventually(lambda part=part: done() >= part, within=PATIENCE)
        name = "front end" if kill % 4 == 0 else "worker"
        programs = deployment.front_ends if kill % 4 == 0 else deployment.workers
        program = programs[kill % len(programs)]
        await program.kill()
        await program.start()
        killed[name] += 1


async def _kill_program(gateway: Arena, program: Program, seconds: float) -> None:
    await program.kill()
    await program.launch()


async def _kill_server(gateway: Arena, server: LocalServer, seconds: float) -> None:
    await gateway.stores.restart(server, down=DOWN)


async def _freeze(gateway: Arena, target: Program | LocalServer, seconds: float) -> None:
    with frozen(target):
        await asyncio.sleep(seconds)


@contextlib.contextmanager
def frozen(target: Program | LocalServer) -> Iterator[None]:
    """Stop the process and its children, of which PostgreSQL has one for each connection, within the block."""
    assert target.pid is not None
    stopped = [target.pid, *(child.pid for child in psutil.Process(target.pid).children(recursive=True))]
    for pid in stopped:
        _signal(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            _signal(pid, signal.SIGCONT)


def _signal(pid: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
        os.kill(pid, sign)


async def _flush(gateway: Arena, server: LocalServer, seconds: float) -> None:
    await gateway.stores.flush_redis()


async def _cut_postgres(gateway: Arena, server: LocalServer, seconds: float) -> None:
    await gateway.stores.rows(_CUT)


async def _cut_redis(gateway: Arena, server: LocalServer, seconds: float) -> None:
    async with Redis.from_url(gateway.environment["GATEWAY_REDIS_URL"]) as redis:
        await redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def _workers(gateway: Arena) -> Sequence[Program]:
    return gateway.workers


def _front_ends(gateway: Arena) -> Sequence[Program]:
    return gateway.front_ends


def _postgres(gateway: Arena) -> Sequence[LocalServer]:
    return [gateway.stores.postgres]


def _redis(gateway: Arena) -> Sequence[LocalServer]:
    return [gateway.stores.redis]


@dataclass(frozen=True)
class Fault:
    """A kind of strike; `act` gets its duration in seconds."""

    name: str
    targets: Callable[[Arena], Sequence[Program | LocalServer]]
    act: Callable[[Arena, Any, float], Awaitable[None]]
    #: its frequency relative to the others
    weight: int = 1


KILL_WORKER = Fault("worker killed", _workers, _kill_program, weight=3)
KILL_FRONT_END = Fault("front end killed", _front_ends, _kill_program)
FAULTS = (
    KILL_WORKER,
    Fault("worker frozen", _workers, _freeze, weight=2),
    KILL_FRONT_END,
    Fault("front end frozen", _front_ends, _freeze),
    Fault("PostgreSQL killed", _postgres, _kill_server),
    Fault("PostgreSQL frozen", _postgres, _freeze),
    Fault("PostgreSQL's connections cut", _postgres, _cut_postgres),
    Fault("Redis killed", _redis, _kill_server),
    Fault("Redis frozen", _redis, _freeze),
    Fault("Redis's connections cut", _redis, _cut_redis),
    Fault("Redis flushed", _redis, _flush),
)


@dataclass
class Strike:
    """One fault: its kind, its process, and its start and end by the machine's clock."""

    fault: Fault
    pid: int
    began: float
    over: float = float("inf")


class Strikes:
    """Random strikes; several may last concurrently, but not on the same process."""

    def __init__(self, gateway: Arena, seed: int, faults: Sequence[Fault] = FAULTS) -> None:
        self._gateway = gateway
        self._faults = faults
        self._random = random.Random(seed)
        self._struck: set[int] = set()
        self._lasting: set[asyncio.Task[None]] = set()
        self.all: list[Strike] = []

    async def some(self, number: int) -> None:
        """Strike `count` times, every second or two; returns when all are over."""
        for _ in range(number):
            await asyncio.sleep(self._random.uniform(0.3, 3.0))
            await self._one()
        await asyncio.gather(*self._lasting)

    async def spread(self, number: int, done: Callable[[], int], total: int) -> None:
        """Strike `number` times, whenever a further part of the total is done; returns when all are over."""
        for strike in range(1, number + 1):
            part = strike * total // (number + 1)
            await eventually(lambda part=part: done() >= part, within=PATIENCE)
            await self._one()
        await asyncio.gather(*self._lasting)

    async def _one(self) -> None:
        fault, target = self._chosen()
        assert target.pid is not None
        strike = Strike(fault, target.pid, time.time())
        self.all.append(strike)
        striking = asyncio.create_task(self._strike(strike, target, self._random.uniform(*FREEZES)))
        self._lasting.add(striking)
        if fault.act is not _freeze:
            await asyncio.wait([striking])

    def _chosen(self) -> tuple[Fault, Program | LocalServer]:
        """A fault and its target, which is not struck now."""
        free = [
            (fault, target)
            for fault in self._faults
            for target in [each for each in fault.targets(self._gateway) if id(each) not in self._struck][:1]
        ]
        [(fault, _)] = self._random.choices(free, [fault.weight for fault, _ in free])
        targets = [each for each in fault.targets(self._gateway) if id(each) not in self._struck]
        return fault, self._random.choice(targets)

    async def _strike(self, strike: Strike, target: Program | LocalServer, seconds: float) -> None:
        self._struck.add(id(target))
        try:
            await strike.fault.act(self._gateway, target, seconds)
        finally:
            strike.over = time.time()
            self._struck.discard(id(target))
