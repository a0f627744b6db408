"""A support desk that records every write, with which the results of fault runs are compared."""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.harness.serving import served


class Upstream:
    """Answers with a latency, like a remote application."""

    def __init__(self, slowest: float = 0.05) -> None:
        #: seconds that an answer takes at most
        self.slowest = slowest
        #: how often each ticket was created, by its external id
        self.created: Counter[str] = Counter()
        #: when, by the clock of the machine
        self.created_at: defaultdict[str, list[float]] = defaultdict(list)
        #: how often each batch of tickets was updated, by its ids
        self.updated: Counter[str] = Counter()
        #: when, by the clock of the machine
        self.updated_at: defaultdict[str, list[float]] = defaultdict(list)
        self._batches: list[list[int]] = []
        #: batches that were asked for
        self.followed: set[int] = set()
        #: seconds that a batch takes, how many run at a time, and the most that did; when each batch ends
        self.batch_seconds, self.room, self.most_batches = 0.0, 30, 0
        self._ends: list[float] = []
        #: tickets of the list, and the pages that were read, by number
        self.listed = 3
        self.pages: Counter[int] = Counter()
        #: when each single ticket was read last, by its id
        self.read_at: dict[int, float] = {}
        #: the ids of created tickets, and their external ids
        self.made: dict[int, str] = {}
        #: the ids of each request for several tickets
        self.shown: list[list[int]] = []
        self.requests = 0
        #: requests under way, and the most that there were
        self.open, self.most_open = 0, 0
        #: while it is not set, answers wait
        self.gate = asyncio.Event()
        self.gate.set()
        #: while it is not set, answers to updates of one ticket wait, and the update is done all the same
        self.update_gate = asyncio.Event()
        self.update_gate.set()
        #: what the last update of one ticket made of its subject
        self.subject = "s"
        #: the ticket whose reader dies, and tells that it was asked for
        self.deadly: int | None = None
        self.fatal = asyncio.Event()
        #: the ticket, with which tickets are created and no response is sent
        self.unanswered: str | None = None
        #: tells that a request has come in
        self.arrived = asyncio.Event()
        #: how many reads of one ticket are still refused because there were too many
        self.refusals = 0
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Upstream"]:
        app = web.Application()
        app.add_routes(
            [
                web.put("/api/v2/tickets/update_many.json", self._update_many),
                web.post("/api/v2/tickets/create_many.json", self._create_many),
                web.get("/api/v2/job_statuses/{id}.json", self._job_status),
                web.get("/api/v2/tickets.json", self._list),
                web.post("/api/v2/tickets.json", self._create),
                web.get("/api/v2/tickets/show_many.json", self._show_many),
                web.get("/api/v2/tickets/{id}.json", self._get),
                web.put("/api/v2/tickets/{id}.json", self._update),
            ]
        )
        async with served(app) as self.url:
            try:
                yield self
            finally:
                self.gate.set()
                self.update_gate.set()

    async def _taken(self) -> None:
        self.requests += 1
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        self.arrived.set()
        try:
            await asyncio.sleep(random.uniform(0, self.slowest))
            await self.gate.wait()
        finally:
            self.open -= 1

    async def _list(self, request: web.Request) -> web.Response:
        await self._taken()
        page, size = int(request.query.get("page", 1)), int(request.query.get("per_page", 100))
        self.pages[page] += 1
        tickets = [{"id": number, "subject": "s"} for number in range((page - 1) * size, min(page * size, self.listed))]
        following = f"{self.url}/api/v2/tickets.json?page={page + 1}&per_page={size}"
        next_page = following if page * size < self.listed else None
        return web.json_response({"tickets": tickets, "next_page": next_page, "count": self.listed})

    async def _get(self, request: web.Request) -> web.Response:
        self.read_at[int(request.match_info["id"])] = time.time()
        if int(request.match_info["id"]) == self.deadly:
            self.fatal.set()
            await asyncio.sleep(60)
        await self._taken()
        if self.refusals:
            self.refusals -= 1
            return web.json_response({"error": "TooManyRequests"}, status=429, headers={"Retry-After": "11"})
        return web.json_response({"ticket": {"id": int(request.match_info["id"]), "subject": self.subject}})

    async def _show_many(self, request: web.Request) -> web.Response:
        ids = [int(each) for each in request.query["ids"].split(",")]
        self.shown.append(ids)
        await self._taken()
        return web.json_response({"tickets": [{"id": each, "subject": self.subject} for each in ids]})

    async def _create(self, request: web.Request) -> web.Response:
        ticket = (await request.json())["ticket"]
        self.created[ticket["external_id"]] += 1
        self.created_at[ticket["external_id"]].append(time.time())
        number = self.created.total()
        self.made[number] = ticket["external_id"]
        await self._taken()
        return web.json_response({"ticket": {"id": number, **ticket}}, status=201)

    async def _update(self, request: web.Request) -> web.Response:
        ticket = (await request.json())["ticket"]
        self.subject = ticket.get("subject", self.subject)
        await self._taken()
        await self.update_gate.wait()
        return web.json_response({"ticket": {"id": int(request.match_info["id"]), **ticket}})

    async def _update_many(self, request: web.Request) -> web.Response:
        await self._taken()
        if not self._has_room():
            return web.json_response({"error": "TooManyJobs"}, status=429)
        self.updated[request.query["ids"]] += 1
        self.updated_at[request.query["ids"]].append(time.time())
        return self._started([int(each) for each in request.query["ids"].split(",")])

    async def _create_many(self, request: web.Request) -> web.Response:
        tickets = (await request.json())["tickets"]
        await self._taken()
        if not self._has_room():
            return web.json_response({"error": "TooManyJobs"}, status=429)
        first = len(self.created) + 1
        self.created.update(ticket["external_id"] for ticket in tickets)
        if self.unanswered in [ticket["external_id"] for ticket in tickets]:
            await asyncio.sleep(60)
        return self._started(list(range(first, first + len(tickets))))

    def _has_room(self) -> bool:
        return sum(end > time.monotonic() for end in self._ends) < self.room

    def _started(self, ids: list[int]) -> web.Response:
        self._batches.append(ids)
        self._ends.append(time.monotonic() + self.batch_seconds)
        self.most_batches = max(self.most_batches, sum(end > time.monotonic() for end in self._ends))
        return web.json_response({"job_status": self._batch(len(self._batches) - 1, "queued")})

    async def _job_status(self, request: web.Request) -> web.Response:
        await self._taken()
        number = int(request.match_info["id"])
        self.followed.add(number)
        status = "completed" if time.monotonic() >= self._ends[number] else "working"
        return web.json_response({"job_status": self._batch(number, status)})

    def _batch(self, number: int, status: str) -> dict[str, object]:
        ids = self._batches[number]
        results = [{"id": each, "index": place, "success": True} for place, each in enumerate(ids)]
        url = f"{self.url}/api/v2/job_statuses/{number}.json"
        members = {"id": str(number), "url": url, "status": status, "total": len(ids), "message": None}
        return {
            **members,
            "progress": len(ids) if status == "completed" else 0,
            "results": results if status == "completed" else None,
        }
