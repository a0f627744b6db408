"""Receivers of webhooks that fail at random, and the check of their deliveries."""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from gateway.events.sender import TIMEOUT
from gateway.events.signing import new_secret
from tests.agents.mcp.conftest import Raw
from tests.events.receiver import Receiver
from tests.harness.caller import Api

#: of the first attempts of an event: the shares that are answered 500, 429, and later than a sender waits
_FAILED, _LIMITED, _LATE = 1 / 20, 1 / 400, 1 / 10_000
#: the share that the receiver of an agent's host answers 500
_FAILED_OF_HOST = 3 / 10


@dataclass
class Deliveries:
    """The deliveries and responses of receivers."""

    answers: Counter[int] = field(default_factory=Counter)
    timeouts: int = 0
    received: int = 0
    repeated: int = 0
    missing: int = 0
    out_of_order: int = 0
    foreign: int = 0
    ids_of_one_event: int = 1

    @property
    def are_clean(self) -> bool:
        """Whether nothing was lost, out of order, foreign, or delivered under two ids."""
        return not (self.missing or self.out_of_order or self.foreign) and self.ids_of_one_event == 1

    @property
    def rows(self) -> dict[str, str]:
        """Lines of a report: name → figure."""
        return {
            "answers": ", ".join(f"{count:,} × {status}" for status, count in sorted(self.answers.items())),
            "timeouts": str(self.timeouts),
            "deliveries": f"{self.received:,}, {self.repeated:,} of them again",
            "missing": str(self.missing),
            "records out of order": str(self.out_of_order),
            "of another organization": str(self.foreign),
        }

    def judge(self, receiver: Receiver, path: str, *, expected: int, records: Collection[str]) -> None:
        """Add what arrived at a path, where so many events of these records were expected."""
        events = [event for event in receiver.received[path] if "data" in event]
        first: dict[str, list[int]] = defaultdict(list)
        seen: set[int] = set()
        for event in events:
            if id_of(event) not in seen:
                first[event["data"]["record_id"]].append(id_of(event))
            seen.add(id_of(event))
        self.received += len(events)
        self.repeated += len(events) - len(seen)
        self.missing += expected - len(seen)
        self.out_of_order += sum(ids != sorted(ids) for ids in first.values())
        self.foreign += len(first.keys() - set(records))
        webhooks = {each.rpartition("_")[0] for each in receiver.ids[path] if "verification" not in each}
        self.ids_of_one_event = max(self.ids_of_one_event, len(webhooks))


class Unreliable:
    """A receiver that fails at random, and accepts each event in the end."""

    def __init__(self, deliveries: Deliveries, seed: int, failed: float = _FAILED) -> None:
        self._deliveries = deliveries
        self._random = random.Random(seed)
        self._failed = failed
        self._tried: Counter[int] = Counter()

    def __call__(self, event: dict[str, Any]) -> "web.Response | Awaitable[web.Response]":
        if event.get("type") == "verification":
            return web.json_response({"challenge": event["challenge"]})
        self._tried[id_of(event)] += 1
        draw = self._random.random() if self._tried[id_of(event)] == 1 else 1.0
        if self._failed + _LIMITED <= draw < self._failed + _LIMITED + _LATE:
            self._deliveries.timeouts += 1
            return self._late()
        status = 500 if draw < self._failed else 429 if draw < self._failed + _LIMITED else 204
        self._deliveries.answers[status] += 1
        return web.Response(status=status, headers={"Retry-After": "1"} if status == 429 else {})

    @staticmethod
    async def _late() -> web.Response:
        await asyncio.sleep(TIMEOUT + 1)
        return web.Response(status=504)


async def subscribe(api: Api, receiver: Receiver, path: str) -> None:
    """Deliver the caller's events of records to a path."""
    created = await api.post("/api/v1/webhooks", {"url": receiver.url + path, "types": ["record.*"]})
    receiver.secrets[path] = created.document(201)["secret"]


async def subscribe_unreliable(api: Api, receiver: Receiver, deliveries: Deliveries, name: str, seed: int) -> list[str]:
    """Paths of two receivers that take each event in the end; beside them is one that answers 410."""
    paths = [f"/{name}/a", f"/{name}/b"]
    for path in paths:
        receiver.answers[path] = Unreliable(deliveries, seed)
        await subscribe(api, receiver, path)
    receiver.answers[f"/{name}/gone"] = lambda _: 410
    await subscribe(api, receiver, f"/{name}/gone")
    return paths


async def subscribe_host(api: Api, base_url: str, receiver: Receiver, deliveries: Deliveries, name: str) -> str:
    """The path of a host's receiver, which subscribes to updates of records and takes each of them in the end."""
    path, secret = f"/{name}/host", new_secret()
    receiver.answers[path], receiver.secrets[path] = Unreliable(deliveries, 0, _FAILED_OF_HOST), secret
    delivery = {"mode": "webhook", "url": receiver.url + path, "secret": secret}
    async with aiohttp.ClientSession(headers=api.headers) as session:
        answer = await Raw(session, f"{base_url}/mcp")(
            "events/subscribe", {"name": "record.updated", "delivery": delivery}
        )
    assert answer.result["id"]
    return path


def id_of(event: Mapping[str, Any]) -> int:
    """The id of an event in either form of deliveries."""
    return int(event["id"] if "id" in event else event["eventId"])


def ids_at(receiver: Receiver, path: str) -> set[int]:
    """The events that a path has taken."""
    return {id_of(event) for event in receiver.received[path] if "data" in event}
