"""Deliveries while processes are killed and receivers fail: `python -m tests.faults.event_storm --changes 50000`.

Writers change records of two organizations. Each change must reach its organization's receivers at least once, in order
for each record, under one `webhook-id`, and no receiver of the other organization.
"""

import argparse
import asyncio
import itertools
import random
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from aiohttp import web

from gateway.db.pool import Database
from gateway.events.recording import add_record_events
from gateway.events.sender import TIMEOUT
from tests.events.receiver import Receiver, receiving
from tests.faults.arena import Arena, arena
from tests.harness.caller import Api
from tests.harness.clients import new_client_in
from tests.harness.waiting import eventually

RECORDS = 200
#: seconds until a part of the changes must have arrived
_PATIENCE = 2400
#: changes of one transaction
BATCH = 10
#: of the first attempts of an event: the shares that are answered 500, 429, and later than a sender waits
_FAILED, _LIMITED, _LATE = 1 / 20, 1 / 400, 1 / 10_000
CHANGES, KILLS = 50_000, 10


@dataclass
class Outcome:
    """What the receivers saw."""

    #: of each of two organizations
    changes: int
    kills: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    deliveries: int = 0
    repeated: int = 0
    missing: int = 0
    out_of_order: int = 0
    foreign: int = 0
    ids_of_one_event: int = 1
    answers: Counter[int] = field(default_factory=Counter)
    timeouts: int = 0

    @property
    def is_clean(self) -> bool:
        """Nothing lost, out of order, foreign, or delivered under two ids."""
        return not (self.missing or self.out_of_order or self.foreign) and self.ids_of_one_event == 1

    def table(self) -> str:
        """The report as lines of text."""
        rows = {
            "changes": f"2 × {self.changes:,}, each to 2 receivers, and to one that answers 410",
            "kills": ", ".join(f"{count} {name}" for name, count in sorted(self.kills.items())),
            "answers": ", ".join(f"{count:,} × {status}" for status, count in sorted(self.answers.items())),
            "timeouts": str(self.timeouts),
            "deliveries": f"{self.deliveries:,}, {self.repeated:,} of them again",
            "missing": str(self.missing),
            "records out of order": str(self.out_of_order),
            "of another organization": str(self.foreign),
            "took": f"{self.seconds:.0f} s",
        }
        return "\n".join(f"{name:<24}{value}" for name, value in rows.items())


class Unreliable:
    """Answers of a receiver that fails now and then, and takes each event in the end."""

    def __init__(self, outcome: Outcome, seed: int) -> None:
        self._outcome = outcome
        self._random = random.Random(seed)
        self._tried: Counter[int] = Counter()

    def __call__(self, event: dict[str, Any]) -> "web.Response | Awaitable[web.Response]":
        self._tried[event["id"]] += 1
        draw = self._random.random() if self._tried[event["id"]] == 1 else 1.0
        if _FAILED + _LIMITED <= draw < _FAILED + _LIMITED + _LATE:
            self._outcome.timeouts += 1
            return self._late()
        status = 500 if draw < _FAILED else 429 if draw < _FAILED + _LIMITED else 204
        self._outcome.answers[status] += 1
        return web.Response(status=status, headers={"Retry-After": "1"} if status == 429 else {})

    @staticmethod
    async def _late() -> web.Response:
        await asyncio.sleep(TIMEOUT + 1)
        return web.Response(status=504)


async def storm(changes: int, kills: int) -> Outcome:
    """Changes of each of two organizations, delivered to two receivers each by two workers of which one is killed."""
    outcome = Outcome(changes)
    async with receiving() as receiver, arena(workers=2, GATEWAY_WEBHOOK_ORIGINS=receiver.url) as gateway:
        url = gateway.stores.postgres.url
        clients = {"ours": gateway.api_client, "theirs": await new_client_in(url)}
        for seed, (name, client) in enumerate(clients.items()):
            async with Api.of(gateway.url_of(gateway.front_ends[0]), client.id, client.secret) as api:
                for path in (f"/{name}/a", f"/{name}/b"):
                    receiver.answers[path] = Unreliable(outcome, seed)
                    await _subscribe(api, receiver, path)
                receiver.answers[f"/{name}/gone"] = lambda _: 410
                await _subscribe(api, receiver, f"/{name}/gone")
        started = time.monotonic()
        async with Database.open(url, size=8) as database, asyncio.TaskGroup() as group:
            for name, client in clients.items():
                group.create_task(_write(database, UUID(str(client.organization_id)), name, changes))
            group.create_task(_kill(gateway, receiver, outcome, kills))
        paths = [f"/{name}/{each}" for name in clients for each in "ab"]
        await eventually(lambda: all(len(_ids(receiver, path)) >= changes for path in paths), within=_PATIENCE)
        outcome.seconds = time.monotonic() - started
    for path in paths:
        _judge(outcome, receiver, path)
    return outcome


async def _subscribe(api: Api, receiver: Receiver, path: str) -> None:
    created = await api.post("/api/v1/webhooks", {"url": receiver.url + path, "types": ["record.*"]})
    receiver.secrets[path] = created.document(201)["secret"]


async def _write(database: Database, organization_id: UUID, name: str, changes: int) -> None:
    records = itertools.cycle(f"{name}-{number}" for number in range(RECORDS))
    connector = uuid4()
    for _ in range(changes // BATCH):
        async with database.tenant(organization_id) as connection, connection.transaction():
            ids = list(itertools.islice(records, BATCH))
            await add_record_events(connection, organization_id, connector, "tickets", updated=ids)


async def _kill(gateway: Arena, receiver: Receiver, outcome: Outcome, kills: int) -> None:
    """Kill a worker, or now and then the front end, and start it again, whenever a further part has arrived."""
    for kill in range(1, kills + 1):
        part = kill * outcome.changes // (kills + 1)
        await eventually(lambda part=part: len(receiver.received["/ours/a"]) >= part, within=_PATIENCE)
        name = "front end" if kill % 4 == 0 else "worker"
        program = gateway.front_ends[0] if kill % 4 == 0 else gateway.workers[kill % len(gateway.workers)]
        await program.kill()
        await program.start()
        outcome.kills[name] += 1


def _ids(receiver: Receiver, path: str) -> set[int]:
    return {event["id"] for event in receiver.received[path]}


def _judge(outcome: Outcome, receiver: Receiver, path: str) -> None:
    received, name = receiver.received[path], path.split("/")[1]
    first: dict[str, list[int]] = defaultdict(list)
    seen: set[int] = set()
    for event in received:
        if event["id"] not in seen:
            first[event["data"]["record_id"]].append(event["id"])
        seen.add(event["id"])
    outcome.deliveries += len(received)
    outcome.repeated += len(received) - len(seen)
    outcome.missing += outcome.changes - len(seen)
    outcome.out_of_order += sum(ids != sorted(ids) for ids in first.values())
    outcome.foreign += sum(not event["data"]["record_id"].startswith(name) for event in received)
    outcome.ids_of_one_event = max(
        outcome.ids_of_one_event, len({each.rpartition("_")[0] for each in receiver.ids[path]})
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=CHANGES)
    parser.add_argument("--kills", type=int, default=KILLS)
    arguments = parser.parse_args()
    print(asyncio.run(storm(arguments.changes, arguments.kills)).table())
