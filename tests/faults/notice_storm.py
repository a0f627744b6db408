"""Notices that are lost and doubled: `python -m tests.faults.notice_storm --changes 20000`.

An application changes its records and sends a notice of each change, of which a part is lost and a part comes twice,
while workers are killed. In the end the copy has every record as the application has it, and the feed an event of each.
"""

import argparse
import asyncio
import random
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.harness.caller import ConnectorApi
from tests.harness.deployment import Deployment, deployed
from tests.harness.stores import Stores, own_stores
from tests.harness.waiting import eventually

CHANGES, KILLS = 20_000, 10
LOST, DOUBLED = 0.3, 0.2
#: tickets that change, and changes that are under way at a time
TICKETS, WRITERS = 400, 8
#: seconds between two synchronizations of the tickets: what a lost notice costs
_INTERVAL = 20
_PATIENCE = 600


@dataclass
class NoticeOutcome:
    """What became of the changes."""

    changes: int
    kills: int
    seconds: float = 0.0
    #: subject of each changed ticket in the application
    subjects: dict[int, str] = field(default_factory=dict)
    #: statuses of the answers to the last notices
    notices: dict[int, int] = field(default_factory=dict)
    #: changed tickets without an event of their own
    without_event: int = 0

    @property
    def is_clean(self) -> bool:
        """Every change is in the copy, and an event told of each record."""
        return not self.without_event and set(self.notices) == {200}

    def table(self) -> str:
        """The report as lines of text."""
        rows = {
            "changes": f"{self.changes:,} of {len(self.subjects)} records",
            "workers killed": str(self.kills),
            "notices": f"{LOST:.0%} lost, {DOUBLED:.0%} sent twice",
            "answers to the last": ", ".join(f"{count:,} × {status}" for status, count in sorted(self.notices.items())),
            "records without event": str(self.without_event),
            "took": f"{self.seconds:.0f} s until the copy was the same as the application",
        }
        return "\n".join(f"{name:<24}{value}" for name, value in rows.items())


async def storm(folder: Path, stores: Stores, changes: int, kills: int, interval: int) -> NoticeOutcome:
    """Changes of a support desk whose notices are lost and doubled."""
    outcome = NoticeOutcome(changes, kills)
    every = {"GATEWAY_SYNC_EVERY": f'{{"support-desk.tickets": {interval}}}'}
    async with (
        deployed(folder, stores.postgres.url, stores.redis.url, workers=2, **every) as deployment,
        deployment.api() as api,
        aiohttp.ClientSession(deployment.upstream_url) as application,
    ):
        connector = await api.connector()
        await eventually(lambda: is_loaded(connector))
        begin = (await api.get("/api/v1/events")).json()["latest_id"]
        await hook(deployment, connector, application, lost=LOST, doubled=DOUBLED)
        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for writer in range(WRITERS):
                group.create_task(_write(application, outcome, writer))
            group.create_task(_kill(deployment, kills))
        await eventually(lambda: _is_copied(connector, outcome), within=_PATIENCE)
        outcome.seconds = time.monotonic() - started
        outcome.without_event = len(outcome.subjects.keys() - await _told(connector, begin))
        for notice in (await (await application.get("/_sandbox/notices")).json())["notices"]:
            outcome.notices[notice["status"]] = outcome.notices.get(notice["status"], 0) + 1
    return outcome


async def is_loaded(connector: ConnectorApi) -> bool:
    """Whether the tickets are in the copy."""
    entities = (await connector.api.get(f"{connector.path}/context-store")).json()["entities"]
    return bool(entities["tickets"]["synchronized"])


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
    for number in range(writer, outcome.changes, WRITERS):
        ticket = random.randrange(writer + 1, TICKETS, WRITERS)
        outcome.subjects[ticket] = f"change {number}"
        path = f"/_sandbox/records/support-desk/tickets/{ticket}"
        async with application.put(path, json={"subject": outcome.subjects[ticket]}) as answer:
            assert answer.status == 200, await answer.text()


async def _kill(deployment: Deployment, kills: int) -> None:
    for _ in range(kills):
        await asyncio.sleep(1)
        worker = deployment.workers[0]
        await worker.kill()
        await worker.start()


async def _copied(connector: ConnectorApi) -> dict[int, str]:
    query = {"query": {}, "limit": 1000, "fields": ["id", "subject"]}
    found = (await connector.execute("tickets", "context_store_search", query))["result"]["data"]
    return {record["id"]: record["subject"] for record in found}


async def _is_copied(connector: ConnectorApi, outcome: NoticeOutcome) -> bool:
    copied = await _copied(connector)
    return all(copied.get(ticket) == subject for ticket, subject in outcome.subjects.items())


async def _told(connector: ConnectorApi, begin: int) -> set[int]:
    """The tickets of which the feed has an event."""
    told: set[int] = set()
    params = {"types": "record.updated", "connector_id": connector.record["id"], "limit": "1000", "after": str(begin)}
    while page := (await connector.api.get("/api/v1/events", params=params)).json()["data"]:
        told |= {int(each["data"]["record_id"]) for each in page if each["data"]["entity"] == "tickets"}
        params["after"] = str(page[-1]["id"])
    return told


async def notices(changes: int, kills: int, *, interval: int = _INTERVAL) -> NoticeOutcome:
    """The storm on stores of its own."""
    with tempfile.TemporaryDirectory() as folder:
        async with own_stores() as stores:
            return await storm(Path(folder), stores, changes, kills, interval)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=CHANGES)
    parser.add_argument("--kills", type=int, default=KILLS)
    arguments = parser.parse_args()
    print(asyncio.run(notices(arguments.changes, arguments.kills)).table())
