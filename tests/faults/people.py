"""A storm of people: each has own connectors of five kinds, and uses them in every way while processes are killed.

python -m tests.faults.people [--seed 1] [--people 60] [--calls 2500] [--faults 20] [--minutes 0]

With `--minutes` the calls end after so many minutes, also if fewer were made.

Each connector has an account of its own at the stand-in application, which says by whose credentials it is called, and
whose records it sends. Each answer, each record of a copy and each event must be of the person who gets it.
"""

import asyncio
import itertools
import logging
import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import aiohttp

from gateway.access.identity.tokens import hashed, new_secret
from tests.agents.mcp.conftest import Raw
from tests.events.receiver import Receiver, receiving
from tests.faults.accounts import ACCOUNT, Accounts
from tests.faults.arena import Arena, arena, ticket
from tests.faults.long_work import LongWorkReport, run_alone
from tests.faults.strikes import KILL_FRONT_END, KILL_WORKER, Strikes
from tests.harness.people import add_people, copy_connector
from tests.harness.waiting import eventually

log = logging.getLogger(__name__)
PEOPLE, CALLS, FAULTS = 60, 2500, 20
#: calls under way at a time
_CONCURRENT = 16
#: seconds after which a request is repeated, in which each call ends, and for which tokens are valid
_REQUEST, _PATIENCE, _LIFE = 20.0, 240.0, 14_400
#: people with a webhook, and people with a copy, at most
_SUBSCRIBERS, _COPIES = 200, 2000
CONNECTORS = "/api/v1/integrations/connectors"
#: the kinds of the connectors: the names of the credentials that have the account, others, and a list
KINDS: tuple[tuple[str, str, dict[str, str], tuple[str, str]], ...] = (
    ("support-desk", "api_token", {"email": "a@example.com", "subdomain": "acme"}, ("tickets", "list")),
    ("team-chat", "bot_key", {}, ("channels", "list")),
    ("work-management", "token", {}, ("workspaces", "list")),
    ("workspace-notes", "token", {}, ("users", "list")),
    ("crm-records", "private_app_token", {}, ("contacts", "list")),
)
#: ways to call, and how often each is chosen
_WAYS = {
    "call": 5, "write": 4, "agent": 4, "job": 4, "search": 3, "download": 2, "events": 2, "schedule": 1, "trespass": 3,
}  # fmt: skip
#: ways that a session for the person has too
_IN_SESSION = {"call", "write", "agent", "job", "search", "download"}
#: codes of errors after which a call is repeated
_AGAIN = {"idempotency_in_flight", "rate_limited", "unavailable", "overloaded", "upstream_unavailable"}
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ADD_TOKEN = "INSERT INTO tokens (hash, client_id, expires_at) VALUES ($1, $2, now() + make_interval(secs => $3))"
_COME = "UPDATE schedules SET next_run_at = now() WHERE next_run_at > now() AND last_run_at IS NULL"
_DUE = "SELECT count(*) FROM schedules WHERE last_run_at IS NULL"
_OPEN = "SELECT count(*) FROM jobs WHERE finished_at IS NULL"
#: what the gateway has recorded of a personal connector under another actor than its owner
_JOBS_OF_OTHERS = """
    SELECT count(*) FROM jobs JOIN connectors ON connectors.id = connector_id
    WHERE connectors.owner_id IS NOT NULL AND jobs.client_id <> connectors.owner_id
"""
_ENTRIES_OF_OTHERS = """
    SELECT count(*) FROM audit JOIN connectors ON connectors.id = connector_id
    WHERE connectors.owner_id IS NOT NULL AND actor <> connectors.owner_id AND outcome NOT IN ('not_found')
"""


@dataclass
class Person:
    """A person, the tokens with which the person and a client for the person call, and the own connectors."""

    number: int
    id: UUID = field(default_factory=uuid4)
    token: str = field(default_factory=new_secret)
    session: str = ""
    connectors: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    has_copy: bool = False
    has_webhook: bool = False
    #: held while the session, the copy or the webhook is made
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def account(self, slot: int) -> str:
        """The account of the connector of that kind."""
        return f"acct-{self.number}-{slot}"


@dataclass
class Reply:
    """A response."""

    status: int
    document: Any
    text: str
    location: str = ""

    @property
    def code(self) -> str:
        """The code of an error."""
        return str(self.document.get("code", "")) if isinstance(self.document, dict) else ""


@dataclass
class PeopleStorm:
    """One run."""

    gateway: Arena
    accounts: Accounts
    receiver: Receiver
    people: list[Person]
    calls: int
    faults: int
    seed: int
    #: seconds after which no further call begins
    seconds: float
    report: LongWorkReport = field(init=False)
    http: aiohttp.ClientSession = field(init=False)
    #: a token of the program that opens sessions
    program: str = ""
    #: calls that have ended
    done: int = 0
    #: the id of a connector or a job → the person
    owner_of: dict[str, Person] = field(default_factory=dict)
    #: names that schedules write
    scheduled: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.report = LongWorkReport(f"{len(self.people):,} people with {len(KINDS)} own connectors each")
        for name in (
            "answers and records",
            "with another's credential",
            "with another's records or ids",
            "events to another",
            "another's reached",
        ):
            self.report.counts[name] = 0

    async def run(self) -> LongWorkReport:
        """Set everybody up, storm, and judge what everybody got."""
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as self.http:
            began = time.monotonic()
            await self._set_up()
            started = time.monotonic()
            self.report.counts["seconds of set-up"] = round(started - began)
            strikes = Strikes(self.gateway, self.seed, (KILL_WORKER, KILL_FRONT_END))
            ways = random.Random(self.seed).choices(list(_WAYS), list(_WAYS.values()), k=self.calls)
            calls = itertools.takewhile(lambda _: time.monotonic() - started < self.seconds, enumerate(ways))

            def done() -> int:
                return max(self.done, round(self.calls * min(1, (time.monotonic() - started) / self.seconds)))

            async with asyncio.TaskGroup() as storming:
                storming.create_task(strikes.spread(self.faults, done, self.calls))
                for _ in range(_CONCURRENT):
                    storming.create_task(self._calling(calls))
            await eventually(self._are_due, within=_PATIENCE)
            await eventually(self._are_ended, within=_PATIENCE)
            await self.gateway.swept()
            await self._judge()
        return self.report.finish(strikes, time.monotonic() - started)

    async def _are_due(self) -> bool:
        await self.gateway.stores.value(_COME)
        return bool(await self.gateway.stores.value(_DUE) == 0)

    async def _are_ended(self) -> bool:
        return bool(await self.gateway.stores.value(_OPEN) == 0)

    # Setting up

    async def _set_up(self) -> None:
        """People with tokens and own connectors, and a shared connector of each kind. A person's session, copy and
        webhook are made when the person first needs them.
        """
        gateway, url = self.gateway, self.gateway.stores.postgres.url
        organization_id, ids = gateway.api_client.organization_id, [each.id for each in self.people]
        async with gateway.api() as administrator:
            await administrator.call("PUT", "/api/v1/groups/staff", json={"workspaces": None, "scopes": []})
            delegate = {"delegate_for": ["staff"]}
            await administrator.call("PATCH", f"/api/v1/clients/{gateway.api_client.id}", json=delegate)
            await add_people(url, organization_id, {each.id: each.token for each in self.people}, _LIFE)
            for slot in range(len(KINDS)):
                template = (await administrator.post(CONNECTORS, connector_of(slot, shared(slot)))).document(201)["id"]
                credentials = [connector_of(slot, each.account(slot))["credentials"] for each in self.people]
                own = await copy_connector(url, organization_id, UUID(template), ids, credentials)
                for person, connector_id in zip(self.people, map(str, own), strict=True):
                    person.connectors.append(connector_id)
                    self.owner_of[connector_id] = person
        # The token of the program is valid for as long as those of the people.
        self.program = new_secret()
        await gateway.stores.rows(_ADD_TOKEN, hashed(self.program), UUID(gateway.api_client.id), _LIFE)

    async def _in_session(self, person: Person) -> str:
        """The token of a session of the program for the person."""
        async with person.lock:
            if not person.session:
                opening = {"person": {"id": str(person.id)}, "expires_in": _LIFE}
                opened = await self._insist(self.program, "POST", "/api/v1/sessions", opening)
                person.session = opened.document["token"]
        return person.session

    async def _copy(self, person: Person) -> None:
        """Copy the person's tickets, unless they are copied."""
        async with person.lock:
            if not person.has_copy:
                path = f"{CONNECTORS}/{person.connectors[0]}/context-store/sync"
                begun = await self._insist(person.token, "POST", path, {"entities": ["tickets"]})
                job_id = begun.document["job"]["id"]
                while not (await self._insist(person.token, "GET", f"/api/v1/jobs/{job_id}?wait=10")).document["done"]:
                    pass
                person.has_copy = True

    async def _subscribe(self, person: Person) -> None:
        """Subscribe the person to the own events, unless that is done or enough others are."""
        async with person.lock:
            if person.has_webhook or len(self.receiver.secrets) >= _SUBSCRIBERS:
                return
            person.has_webhook, path = True, f"/{person.number}"
            subscription = {"url": self.receiver.url + path, "types": ["record.*", "job.*", "connector.*"]}
            made = await self._insist(person.token, "POST", "/api/v1/webhooks", subscription)
            self.receiver.secrets[path] = made.document["secret"]

    # Calling

    async def _calling(self, calls: Iterator[tuple[int, str]]) -> None:
        for number, way in calls:
            chance = random.Random(f"{self.seed} {number}")
            people = self.people[:_COPIES] if way == "search" else self.people
            person, slot = chance.choice(people), chance.randrange(len(KINDS))
            is_in_session = way in _IN_SESSION and chance.random() < 1 / 3
            try:
                async with asyncio.timeout(_PATIENCE):
                    token = await self._in_session(person) if is_in_session else person.token
                    status = await self._by(way, person, slot, token, f"{number}", chance)
            except TimeoutError:
                status = "not ended"
            self.report.add_end(way, status)
            self.report.lost += status != "succeeded" and status != "unknown"
            self.done += 1

    async def _by(self, way: str, person: Person, slot: int, token: str, name: str, chance: random.Random) -> str:
        kind, _, _, (entity, action) = KINDS[slot]
        execute = f"{CONNECTORS}/{person.connectors[slot]}/execute"
        listing = {"entity": entity, "action": action}
        match way:
            case "call":
                reply = await self._insist(token, "POST", execute, listing)
                return self._told(reply, person, slot)
            case "write":
                slot = chance.choice((0, 4))
                body, path = (
                    _write(person.account(slot), slot, name),
                    f"{CONNECTORS}/{person.connectors[slot]}/execute",
                )
                headers = {"Prefer": "respond-async"} if chance.random() < 1 / 2 else {}
                reply = await self._insist(token, "POST", path, body, {"Idempotency-Key": name, **headers})
                return await self._ended(reply, person, slot, token)
            case "agent":
                return await self._by_agent(token, person, slot, f"{kind}.{entity}.{action}")
            case "job":
                headers = {"Prefer": "respond-async", "Idempotency-Key": name}
                reply = await self._insist(token, "POST", execute, listing, headers)
                return await self._ended(reply, person, slot, token)
            case "search":
                await self._copy(person)
                body = {"entity": "tickets", "action": "context_store_search", "params": {"query": {}, "limit": 20}}
                path = f"{CONNECTORS}/{person.connectors[0]}/execute"
                return self._told(await self._insist(token, "POST", path, body), person, 0)
            case "download":
                path = f"{CONNECTORS}/{person.connectors[0]}/download/attachments?attachment_id=10001"
                return self._told(await self._insist(token, "GET", path), person, 0)
            case "events":
                await self._subscribe(person)
                return self._told(await self._insist(token, "GET", "/api/v1/events?limit=200"), person, None)
            case "schedule":
                return await self._schedule(person, token, name)
            case _:
                return await self._trespass(person, chance)

    async def _by_agent(self, token: str, person: Person, slot: int, operation: str) -> str:
        """A call by a tool, which chooses the connector: the person's own before the shared one."""
        arguments = {"operation": operation, "params": {}}
        while True:
            url = self._url()
            try:
                async with asyncio.timeout(_REQUEST):
                    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
                        reply = await Raw(session, f"{url}/mcp")("tools/call", {"name": "read", "arguments": arguments})
                    text = str(reply.document)
                    if reply.status == 200 and not reply.result.get("isError"):
                        return self._told(Reply(200, {}, text), person, slot)
                    if not any(code in text for code in _AGAIN):
                        return f"{reply.status} {text[:80]}"
            except (aiohttp.ClientError, TimeoutError, AssertionError):
                pass
            await asyncio.sleep(0.2)

    async def _schedule(self, person: Person, token: str, name: str) -> str:
        """A schedule that runs once, in the end; a repeated creation may make another one, of another name."""
        attempts = iter(range(1000))
        written = f"{person.account(0)}.s{name}"

        def body() -> dict[str, Any]:
            call = {"entity": "tickets", "action": "create", "params": ticket(f"{written}-{next(attempts)}")}
            return {**call, "name": written, "connector_id": person.connectors[0], "cron": "0 0 1 1 *"}

        reply = await self._insist(token, "POST", "/api/v1/schedules", body)
        if reply.status == 201:
            self.scheduled.add(written)
            self.owner_of[reply.document["id"]] = person
        return "succeeded" if reply.status == 201 else f"{reply.status} {reply.code}"

    async def _trespass(self, person: Person, chance: random.Random) -> str:
        """A call of another person's connector or job, which does not exist for the person."""
        other = chance.choice([each for each in self.people if each is not person])
        slot = chance.randrange(len(KINDS))
        token = await self._in_session(person) if chance.random() < 1 / 2 else person.token
        entity, action = KINDS[slot][3]
        path = f"{CONNECTORS}/{other.connectors[slot]}"
        requests = [
            ("POST", f"{path}/execute", {"entity": entity, "action": action}),
            ("GET", f"{CONNECTORS}/{other.connectors[0]}/download/attachments?attachment_id=10001", None),
            ("POST", f"{path}/batch", {"operations": [{"entity": entity, "action": action}]}),
            *(("GET", f"/api/v1/jobs/{each}/result", None) for each in other.jobs[-1:]),
        ]
        reply = await self._insist(token, *chance.choice(requests))
        self.report.counts["another's reached"] += reply.status != 404
        return "succeeded" if reply.status == 404 else f"{reply.status} {reply.code}"

    async def _ended(self, reply: Reply, person: Person, slot: int, token: str) -> str:
        """The end of a call, which may have become a job."""
        if reply.status != 202:
            return self._told(reply, person, slot)
        job_id = reply.document["job"]["id"]
        person.jobs.append(job_id)
        self.owner_of[job_id] = person
        while (reply := await self._insist(token, "GET", f"/api/v1/jobs/{job_id}/result?wait=10")).status == 202:
            pass
        return self._told(reply, person, slot)

    def _told(self, reply: Reply, person: Person, slot: int | None) -> str:
        """How a call ended; counts what in the response is another's."""
        owners = {self.owner_of[each].number for each in _ID.findall(reply.text) if each in self.owner_of}
        accounts, slots = set(ACCOUNT.findall(reply.text)), range(len(KINDS)) if slot is None else (slot,)
        self.report.counts["answers and records"] += 1 + len(ACCOUNT.findall(reply.text))
        own = {person.account(each) for each in slots}
        is_anothers = bool(owners - {person.number} or accounts - own)
        if is_anothers:
            log.warning("%s got %s of %s", person.account(0), accounts - own, owners)
        self.report.counts["with another's records or ids" if slot is not None else "events to another"] += is_anothers
        if reply.status == 200:
            return "succeeded" if slot is None or accounts else "without a record"
        if isinstance(reply.document, dict) and reply.document.get("outcome") == "unknown":
            return "unknown"
        return f"{reply.status} {reply.code}"

    def _url(self) -> str:
        return self.gateway.url_of(random.choice(self.gateway.front_ends))

    async def _insist(
        self, token: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """The response of the first front end that answers."""
        sent = {"Authorization": f"Bearer {token}", **(headers or {})}
        while True:
            try:
                async with asyncio.timeout(_REQUEST):
                    document = body() if callable(body) else body
                    async with self.http.request(method, self._url() + path, json=document, headers=sent) as response:
                        text = await response.text()
                        is_json = "json" in response.content_type
                        reply = Reply(response.status, await response.json() if is_json and text else text, text)
            except (aiohttp.ClientError, TimeoutError):
                await asyncio.sleep(0.2)
                continue
            is_unknown = isinstance(reply.document, dict) and reply.document.get("outcome") == "unknown"
            if is_unknown or not (reply.status >= 500 or reply.code in _AGAIN):
                return reply
            await asyncio.sleep(0.2)

    # Judging

    async def _judge(self) -> None:
        report, accounts = self.report, self.accounts
        counts = report.counts
        counts["with another's credential"] = len(accounts.foreign)
        for path, events in self.receiver.received.items():
            for event in events:
                owners = {self.owner_of[each].number for each in _ID.findall(str(event)) if each in self.owner_of}
                counts["events delivered"] += 1
                counts["events to another"] += bool(owners - {int(path[1:])})
        counts["jobs and entries of another"] = await self.gateway.stores.value(
            _JOBS_OF_OTHERS
        ) + await self.gateway.stores.value(_ENTRIES_OF_OTHERS)
        counts["calls"] = self.done
        counts["requests to accounts"] = accounts.requests_of.total()
        counts["accounts called"] = len(accounts.requests_of)
        counts["requests to shared accounts"] = sum(
            count for account, count in accounts.requests_of.items() if account.startswith("acct-shared")
        )
        written = Counter(name.rpartition("-")[0] for name in accounts.written)
        missing = [name for name in self.scheduled if not written[name]]
        report.lost += len(missing)
        report.untrue = sum(
            counts[name]
            for name in (
                "with another's credential",
                "with another's records or ids",
                "events to another",
                "another's reached",
                "jobs and entries of another",
                "requests to shared accounts",
            )
        )


def shared(slot: int) -> str:
    """The account of the connector that everybody may use."""
    return f"acct-shared-{slot}"


def connector_of(slot: int, account: str) -> dict[str, Any]:
    kind, secret, others, _ = KINDS[slot]
    credentials = {**others, secret: account}
    name = f"Shared {slot}" if account == shared(slot) else account
    members = {"workspace_name": "acme", "connector_type": kind, "name": name, "validate": False}
    return {**members, "credentials": credentials}


def _write(account: str, slot: int, name: str) -> dict[str, Any]:
    """A call that writes the name of the account."""
    written = f"{account}.w{name}"
    if slot == 0:
        return {"entity": "tickets", "action": "create", "params": ticket(written)}
    return {"entity": "contacts", "action": "create", "params": {"properties": {"firstname": written}}}


def _people(number: int) -> Iterator[Person]:
    return (Person(each) for each in range(number))


@asynccontextmanager
async def _opened() -> AsyncIterator[tuple[Arena, Accounts, Receiver]]:
    accounts = Accounts()
    async with (
        receiving() as receiver,
        arena(front_ends=2, workers=2, upstream=accounts, GATEWAY_WEBHOOK_ORIGINS=receiver.url) as gateway,
    ):
        yield gateway, accounts, receiver


async def people_storm(people: int, calls: int, faults: int, minutes: int = 0, seed: int = 1) -> LongWorkReport:
    """Run the storm; returns its report."""
    seconds = 60.0 * minutes or math.inf
    async with _opened() as (gateway, accounts, receiver):
        return await PeopleStorm(gateway, accounts, receiver, [*_people(people)], calls, faults, seed, seconds).run()


if __name__ == "__main__":
    sys.exit(run_alone(__doc__, people_storm, people=PEOPLE, calls=CALLS, faults=FAULTS, minutes=0))
