"""Deliveries while processes are killed and receivers fail: `python -m tests.faults.event_storm --changes 50000`.

Writers change records of two organizations. Each change must reach its organization's receivers at least once, in order
for each record, under one `webhook-id`, and no receiver of the other organization.
"""

import argparse
import asyncio
import itertools
import time
from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from gateway.events.recording import add_record_events
from gateway.foundation.db.pool import Database
from tests.events.receiver import receiving
from tests.faults.arena import arena
from tests.faults.receivers import Deliveries, ids_at, subscribe_host, subscribe_unreliable
from tests.faults.strikes import PATIENCE, kill_in_turn
from tests.harness.caller import Api
from tests.harness.clients import new_client_in
from tests.harness.waiting import eventually

RECORDS = 200
#: changes of one transaction
BATCH = 10
CHANGES, KILLS = 50_000, 10


@dataclass
class Outcome:
    """The deliveries that the receivers got."""

    #: of each of two organizations
    changes: int
    kills: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    deliveries: Deliveries = field(default_factory=Deliveries)

    def table(self) -> str:
        """The report as lines of text."""
        rows = {
            "changes": f"2 × {self.changes:,}, each to 2 webhooks, an agent's host, and one that answers 410",
            "kills": ", ".join(f"{count} {name}" for name, count in sorted(self.kills.items())),
            **self.deliveries.rows,
            "took": f"{self.seconds:.0f} s",
        }
        return "\n".join(f"{name:<24}{value}" for name, value in rows.items())

    @property
    def is_clean(self) -> bool:
        """Each change was delivered, in order, under one id, to its own organization only."""
        return self.deliveries.are_clean


async def storm(changes: int, kills: int) -> Outcome:
    """Changes of each of two organizations, delivered to three receivers each by two workers of which one is killed."""
    outcome, paths = Outcome(changes), list[str]()
    async with receiving() as receiver, arena(workers=2, GATEWAY_WEBHOOK_ORIGINS=receiver.url) as gateway:
        url = gateway.stores.postgres.url
        clients = {"ours": gateway.api_client, "theirs": await new_client_in(url)}
        for seed, (name, client) in enumerate(clients.items()):
            front_end = gateway.url_of(gateway.front_ends[0])
            async with Api.of(front_end, client.id, client.secret) as api:
                paths += await subscribe_unreliable(api, receiver, outcome.deliveries, name, seed)
                paths.append(await subscribe_host(api, front_end, receiver, outcome.deliveries, name))
        started = time.monotonic()
        async with Database.open(url, size=8) as database, asyncio.TaskGroup() as group:
            for name, client in clients.items():
                group.create_task(_write(database, UUID(str(client.organization_id)), name, changes))
            arrived = receiver.received["/ours/a"]
            group.create_task(kill_in_turn(gateway, outcome.kills, kills, lambda: len(arrived), changes))
        await eventually(lambda: all(len(ids_at(receiver, path)) >= changes for path in paths), within=PATIENCE)
        outcome.seconds = time.monotonic() - started
    for path in paths:
        records = _records(path.split("/")[1])
        outcome.deliveries.judge(receiver, path, expected=changes, records=records)
    return outcome


def _records(name: str) -> list[str]:
    """The ids of an organization's records."""
    return [f"{name}-{number}" for number in range(RECORDS)]


async def _write(database: Database, organization_id: UUID, name: str, changes: int) -> None:
    records = itertools.cycle(_records(name))
    connector = uuid4()
    for _ in range(changes // BATCH):
        async with database.tenant(organization_id) as connection, connection.transaction():
            ids = list(itertools.islice(records, BATCH))
            await add_record_events(connection, organization_id, connector, "tickets", updated=ids)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=CHANGES)
    parser.add_argument("--kills", type=int, default=KILLS)
    arguments = parser.parse_args()
    print(asyncio.run(storm(arguments.changes, arguments.kills)).table())
