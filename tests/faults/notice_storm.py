"""Notices that are lost and doubled, receivers that fail: `python -m tests.faults.notice_storm --changes 20000`.

An application changes its records and sends a notice of each change, of which a part is lost and a part comes twice,
while workers and front ends are killed. In the end the copy has every record as the application has it, the feed an
event of each, and receivers that answer 429, 500, 410 or too late have taken every event.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp

from tests.events.receiver import Receiver, receiving
from tests.faults.receivers import Deliveries, ids_at, subscribe, subscribe_unreliable
from tests.faults.strikes import PATIENCE, kill_in_turn
from tests.harness.caller import ConnectorApi
from tests.harness.deployment import Deployment, deployed
from tests.harness.stores import Stores, own_stores
from tests.harness.waiting import eventually

CHANGES, KILLS = 100_000, 10
LOST, DOUBLED = 0.3, 0.2
#: changes of one ticket, and changes that are under way at a time
CHANGES_OF_A_TICKET, WRITERS = 5, 8
#: seconds between two synchronizations of the tickets, the delay after a lost notice
_INTERVAL = 20


@dataclass
class NoticeOutcome:
    """The changes and their deliveries."""

    changes: int
    #: changes of a second at most; None: as many as the application makes
    rate: float | None = None
    kills: Counter[str] = field(default_factory=Counter)
    #: changes that the application has made
    written: int = 0
    seconds: float = 0.0
    #: subject of each changed ticket in the application
    subjects: dict[int, str] = field(default_factory=dict)
    #: when each change of a ticket was sent to the application, in seconds since 1970
    sent_at: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    #: seconds from the oldest change that an event is of to its delivery
    delays: list[float] = field(default_factory=list)
    #: the part of them from the event to its delivery
    on_the_way: list[float] = field(default_factory=list)
    #: changed tickets without an event of their own
    without_event: int = 0
    events: int = 0
    deliveries: Deliveries = field(default_factory=Deliveries)

    @property
    def is_clean(self) -> bool:
        """Whether every change is in the copy, each record has an event, and each event was delivered."""
        return not self.without_event and self.deliveries.are_clean

    def table(self) -> str:
        """The report as lines of text."""
        rows = {
            "changes": f"{self.changes:,} of {len(self.subjects):,} records{self._pace}",
            "kills": ", ".join(f"{count} {name}" for name, count in sorted(self.kills.items())),
            "notices": f"{LOST:.0%} lost, {DOUBLED:.0%} sent twice",
            "events": f"{self.events:,}, each to 2 receivers, and to one that answers 410",
            "records without event": str(self.without_event),
            "delay of an event": f"{_shares(self.delays)} after its oldest change",
            "of it, its delivery": _shares(self.on_the_way),
            **self.deliveries.rows,
            "took": f"{self.seconds:.0f} s until the last event was delivered",
        }
        return "\n".join(f"{name:<24}{value}" for name, value in rows.items())

    @property
    def _pace(self) -> str:
        return "" if self.rate is None else f", {self.rate:g} each second"


async def storm(folder: Path, stores: Stores, outcome: NoticeOutcome, kills: int, interval: int) -> NoticeOutcome:
    """Changes of a support desk whose notices are lost and doubled."""
    every = {"GATEWAY_SYNC_EVERY": f'{{"support-desk.tickets": {interval}}}'}
    async with (
        receiving() as receiver,
        deployed(
            folder, stores.postgres.url, stores.redis.url, front_ends=2, workers=2,
            GATEWAY_WEBHOOK_ORIGINS=receiver.url, **every,
        ) as deployment,
        aiohttp.ClientSession(deployment.upstream_url) as application,
    ):  # fmt: skip
        client = await deployment.client()
        async with deployment.api(client) as api, deployment.api() as other:
            connector = await api.connector()
            await eventually(lambda: is_loaded(connector))
            begin = (await api.get("/api/v1/events")).json()["latest_id"]
            paths = await subscribe_unreliable(api, receiver, outcome.deliveries, "ours", seed=0)
            await subscribe(other, receiver, "/theirs")
            await hook(deployment, connector, application, lost=LOST, doubled=DOUBLED)
        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for writer in range(WRITERS):
                group.create_task(_write(application, outcome, writer))
            group.create_task(kill_in_turn(deployment, outcome.kills, kills, lambda: outcome.written, outcome.changes))
        # The writes may take longer than the first token is valid.
        async with deployment.api(client) as api:
            connector = connector.through(api)
            await eventually(lambda: _is_copied(connector, outcome), within=PATIENCE)
            await _judge(outcome, await _told(connector, begin), receiver, paths)
        outcome.seconds = time.monotonic() - started
    return outcome


async def _judge(outcome: NoticeOutcome, told: dict[int, str], receiver: Receiver, paths: list[str]) -> None:
    """Compare what the receivers have, once they have each event, with the feed: id → ticket."""
    await eventually(lambda: all(told.keys() <= ids_at(receiver, path) for path in paths), within=PATIENCE)
    outcome.events = len(told)
    outcome.without_event = len({str(ticket) for ticket in outcome.subjects} - set(told.values()))
    for path in paths:
        outcome.deliveries.judge(receiver, path, expected=len(told), records=set(told.values()))
    outcome.deliveries.judge(receiver, "/theirs", expected=0, records=())
    for delay, on_the_way in _delays(outcome, receiver, paths[0]):
        outcome.delays.append(delay)
        outcome.on_the_way.append(on_the_way)


def _shares(seconds: Sequence[float]) -> str:
    p50, p90, p99 = (sorted(seconds)[int(len(seconds) * share)] if seconds else 0.0 for share in (0.5, 0.9, 0.99))
    return f"p50 {p50:.2f} s, p90 {p90:.2f} s, p99 {p99:.2f} s"


def _delays(outcome: NoticeOutcome, receiver: Receiver, path: str) -> Iterator[tuple[float, float]]:
    """For each event that a path has taken, the seconds since the oldest change that no earlier event is of, and since
    the event itself.
    """
    told: dict[int, float] = defaultdict(float)
    for event, arrived in zip(receiver.received[path], receiver.arrived[path], strict=True):
        if "data" not in event:
            continue
        ticket, at = int(event["data"]["record_id"]), datetime.fromisoformat(event["at"]).timestamp()
        changes = [each for each in outcome.sent_at[ticket] if told[ticket] < each <= at]
        told[ticket] = max(told[ticket], at)
        if changes:
            yield arrived - changes[0], arrived - at


async def is_loaded(connector: ConnectorApi) -> bool:
    """Whether all entities are in the copy: later events are of changes."""
    entities = (await connector.api.get(f"{connector.path}/context-store")).json()["entities"]
    return all(entity["synchronized"] for entity in entities.values())


async def hook(
    deployment: Deployment, connector: ConnectorApi, application: aiohttp.ClientSession, **shares: float
) -> None:
    """Let the application send its notices to a hook of the connector."""
    created = (await connector.api.post(f"{connector.path}/hook", {"secret": "s3cret"})).document()
    registration = {"url": f"{deployment.base_url}/hooks/{created['id']}", "secret": "s3cret", **shares}
    async with application.put("/_sandbox/hooks/support-desk", json=registration) as answer:
        assert answer.status == 204, await answer.text()


async def _write(application: aiohttp.ClientSession, outcome: NoticeOutcome, writer: int) -> None:
    """A writer's share of the changes, of tickets that no other writer changes."""
    started = time.monotonic()
    tickets = max(outcome.changes // CHANGES_OF_A_TICKET, WRITERS)
    for number in range(writer, outcome.changes, WRITERS):
        ticket = random.randrange(writer + 1, tickets + 1, WRITERS)
        path = f"/_sandbox/records/support-desk/tickets/{ticket}"
        if outcome.rate is not None:
            await asyncio.sleep(started + number / outcome.rate - time.monotonic())
        outcome.sent_at[ticket].append(time.time())
        async with application.put(path, json={"subject": f"change {number}"}) as answer:
            assert answer.status == 200, await answer.text()
        outcome.subjects[ticket] = f"change {number}"
        outcome.written += 1


async def _is_copied(connector: ConnectorApi, outcome: NoticeOutcome) -> bool:
    """Whether the copy has all changed tickets as the application has them."""
    waiting = dict(outcome.subjects)
    page: dict[str, Any] | None = {"query": {}, "limit": 1000, "fields": ["id", "subject"]}
    while waiting and page:
        found = await connector.execute("tickets", "context_store_search", page)
        for record in found["result"]["data"]:
            if waiting.get(record["id"]) == record["subject"]:
                del waiting[record["id"]]
        page = found["next"]
    return not waiting


async def _told(connector: ConnectorApi, begin: int) -> dict[int, str]:
    """The events of records in the feed: id → record."""
    told: dict[int, str] = {}
    params = {"types": "record.*", "connector_id": connector.record["id"], "limit": "1000", "after": str(begin)}
    while page := (await connector.api.get("/api/v1/events", params=params)).json()["data"]:
        told |= {each["id"]: each["data"]["record_id"] for each in page}
        params["after"] = str(page[-1]["id"])
    return told


async def notices(changes: int, kills: int, *, rate: float | None = None, interval: int = _INTERVAL) -> NoticeOutcome:
    """The storm on stores of its own."""
    with tempfile.TemporaryDirectory() as folder:
        async with own_stores() as stores:
            return await storm(Path(folder), stores, NoticeOutcome(changes, rate), kills, interval)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=CHANGES)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--rate", type=float, help="changes of a second at most")
    arguments = parser.parse_args()
    print(asyncio.run(notices(arguments.changes, arguments.kills, rate=arguments.rate)).table())
