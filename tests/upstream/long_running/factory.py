"""An application with long operations of every shape, its kind, and runs that are killed at a chosen step."""

import asyncio
import csv
import io
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from gateway.contract.kinds import Effect
from gateway.errors import OutcomeUnknown
from gateway.foundation.aio.background import cancel_and_wait
from gateway.kinds.catalog import Kind
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.auth import StaticAuthorizer
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.prepared import PreparedCall, prepare
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.responses import OperationResult
from gateway.upstream.run_context import InMemoryRunContext
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.kinds.small_kind import SMALL_SPEC

_LIST = {"type": "array", "description": "items"}
_STATES = {"running": ["running"], "succeeded": ["done"], "failed": ["failed"], "interval": 0.01}
_STATUS = {"request": "GET /runs/{run_id}", "path": "state", "message": "message", **_STATES}
ACTIONS: dict[str, dict[str, Any]] = {
    # started by the request, followed, one record at the end
    "copy": {
        "request": "POST /copies",
        "effect": "write",
        "record": "copy",
        "params": {"name": {"type": "string", "description": "name"}},
        "long_running": {"start": {"id": "id"}, "status": _STATUS},
    },
    # a result for each item
    "tag": {
        "request": "POST /tags",
        "effect": "write",
        "record": "run",
        "params": {"ids": _LIST},
        "required": ["ids"],
        "long_running": {
            "start": {"id": "id"},
            "status": {**_STATUS, "progress": "progress"},
            "results": {"items": {"path": ["results"], "index": "index", "error": ["error"]}},
            "split": {"param": "ids", "size": 1, "concurrency": 5, "message": "{done} of {total} things tagged"},
        },
    },
    # a result for each item, of an operation that may be repeated
    "label": {
        "request": "PUT /labels",
        "effect": "idempotent",
        "record": "run",
        "params": {"ids": _LIST},
        "required": ["ids"],
        "long_running": {
            "start": {"id": "id"},
            "status": {**_STATUS, "progress": "progress"},
            "results": {"items": {"path": ["results"], "index": "index", "error": ["error"]}},
            "split": {"param": "ids", "size": 1, "concurrency": 5, "message": "{done} of {total} things labeled"},
        },
    },
    # the same, answered at once
    "set": {
        "request": "PUT /made",
        "effect": "idempotent",
        "record": "run",
        "params": {"things": _LIST},
        "required": ["things"],
        "long_running": {
            "results": {
                "items": {
                    "path": ["results", "errors"],
                    "trace": "trace",
                    "trace_path": ["trace", "context.trace"],
                    "error": ["message"],
                    "record": "$",
                }
            },
            "split": {"param": "things", "size": 1, "concurrency": 5},
        },
    },
    # uploaded and closed; results in CSV
    "import": {
        "request": "POST /imports",
        "effect": "write",
        "record": "run",
        "params": {"rows": _LIST, "object": {"type": "string", "description": "object"}},
        "required": ["rows"],
        "long_running": {
            "start": {"id": "id"},
            "upload": {"request": "PUT /imports/{run_id}/data", "request_body": "rows", "content_type": "text/csv"},
            "close": {"request": "PATCH /imports/{run_id}", "constant_body": {"state": "closed"}},
            "status": {**_STATUS, "open": ["open"]},
            "results": {
                "requests": [
                    {"request": "GET /imports/{run_id}/good", "format": "csv", "add_fields": {"success": True}},
                    {"request": "GET /imports/{run_id}/bad", "format": "csv", "add_fields": {"success": False}},
                ],
                "items": {"id": ["new_id"], "success": "success", "error": ["why"], "record": "$"},
            },
            "split": {"param": "rows", "size": 2},
        },
    },
    # results in pages
    "query": {
        "request": "POST /queries",
        "effect": "read",
        "records": "$",
        "params": {"q": {"type": "string", "description": "query"}},
        "long_running": {
            "start": {"id": "id"},
            "status": _STATUS,
            "results": {"requests": [{"request": "GET /queries/{run_id}", "records": "things", "paging": "cursor"}]},
        },
    },
    # answered at once, portion by portion
    "make": {
        "request": "POST /made",
        "effect": "write",
        "record": "run",
        "params": {"things": _LIST},
        "required": ["things"],
        "long_running": {
            "results": {
                "items": {
                    "path": ["results", "errors"],
                    "trace": "trace",
                    "trace_path": ["trace", "context.trace"],
                    "error": ["message"],
                    "record": "$",
                }
            },
            "split": {"param": "things", "size": 2},
        },
    },
}


def factory_kind() -> Kind:
    actions = {name: {"description": "Acts.", "runs": "job", **action} for name, action in ACTIONS.items()}
    entities = {"things": {"description": "Things.", "actions": actions}}
    document = {
        **SMALL_SPEC,
        "server": "https://api.example.com",
        "entities": entities,
        "rate_limit": {"requests": 10_000, "seconds": 1},
    }
    return Kind(ConnectorSpec.model_validate(document))


class Killed(Exception):
    """The process of the run has ended."""


class Killer:
    """Counts the steps of a run and of the application, and kills the run at one of them."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.steps = 0
        self.struck = asyncio.Event()
        self.released = asyncio.Event()

    async def step(self) -> None:
        """One step; the one that is struck does not return before the run is gone."""
        self.steps += 1
        if self.steps == self.at:
            self.struck.set()
            await self.released.wait()
            raise Killed


class Row(InMemoryRunContext):
    """A job's row: what outlives the processes that run the job."""

    def __init__(self, killer: Killer) -> None:
        super().__init__()
        self.killer = killer
        self._in_flight = 0
        self._lock = asyncio.Lock()
        #: what the row says: a write went out whose answer is not stored
        self.is_in_flight = False
        self.reported: list[tuple[int, int | None, str]] = []

    def taken_over(self) -> None:
        """Let another process run the job, which is not killed."""
        self.killer, self._in_flight = Killer(), 0

    async def mark_in_flight(self) -> None:
        async with self._lock:
            self._in_flight += 1
            self.is_in_flight = True
            await self.killer.step()

    async def clear_in_flight(self) -> None:
        self._in_flight -= 1
        self.is_in_flight = self.is_in_flight and self._in_flight > 0

    def refused(self) -> None:
        self._in_flight -= 1

    async def checkpoint(
        self, state: Mapping[str, Any], records: Sequence[Any] = (), part: int | None = None, *, answers: int = 0
    ) -> None:
        async with self._lock:
            self._in_flight = max(0, self._in_flight - answers)
            is_answered = not self._in_flight
            await self.killer.step()
            # As long as PostgreSQL takes, so that portions that end together wait for each other.
            await asyncio.sleep(0.003)
            await super().checkpoint(json.loads(json.dumps(state)), records, part)
            self.is_in_flight = self.is_in_flight and not is_answered
            await self.killer.step()

    async def progress(self, done: int, total: int | None, message: str) -> None:
        self.reported.append((done, total, message))


class Factory:
    """The application. What it did is counted; a run ends at its second look."""

    def __init__(self) -> None:
        self.killer = Killer()
        self.done: Counter[str] = Counter()
        self.received: list[tuple[str, str]] = []
        self.bodies: list[str] = []
        self.runs: dict[str, dict[str, Any]] = {}
        self.fails = False
        #: things that are done, and the response to which is lost so many times
        self.loses = Counter[str]()
        #: things that are refused, with the status of the response; and those that are, after a response was lost
        self.refuses: dict[str, int] = {}
        self.refuses_after_loss: dict[str, int] = {}
        #: things whose tags are refused for now, once this is set
        self.limited: dict[str, asyncio.Event] = {}
        #: whether the state of a run is refused for now
        self.pauses = False
        #: imports are never begun; those that fail report on no row
        self.refuses_to_close = self.keeps_silent = False
        #: characters of the state's message while a run goes on, and once it has ended
        self.message_sizes = (0, 0)
        self.origin = URL()

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.text()
        self.received.append((request.method, request.path))
        try:
            await self.killer.step()
            answer = await self._answer(request, body)
            self.bodies.append(body)
            await self.killer.step()
        except Killed:
            raise web.HTTPServiceUnavailable from None
        return answer

    async def _answer(self, request: web.Request, body: str) -> web.Response:
        items = _items_of(request.method, body)
        refusal = next((self.refuses[each] for each in items if each in self.refuses), None)
        if refusal is not None:
            return web.json_response({"message": "Not yours"}, status=refusal)
        answer = await self._done(request, body)
        lost = [each for each in items if self.loses[each]]
        self.loses.subtract(lost)
        if lost:
            self.refuses |= self.refuses_after_loss
        return web.Response(status=504) if lost else answer

    async def _done(self, request: web.Request, body: str) -> web.Response:
        match request.method, *request.path.removeprefix("/").split("/"):
            case "POST" | "PUT", "made":
                return self._made(json.loads(body)["things"], request.method)
            case "POST", "tags" if (limited := self.limited.get(json.loads(body)["ids"][0])) is not None:
                await limited.wait()
                return web.Response(status=429, headers={"Retry-After": "3600"})
            case "POST" | "PUT", sort:
                return self._begun(sort, json.loads(body))
            case "GET", "runs", _ if self.pauses:
                return web.Response(status=429, headers={"Retry-After": "3600"})
            case "GET", "runs", run_id:
                return self._state(run_id)
            case "PUT", "imports", run_id, "data":
                self.runs[run_id]["rows"] = list(csv.DictReader(io.StringIO(body)))
                return web.Response(status=201)
            case "PATCH", "imports", run_id:
                return self._closed(run_id)
            case "GET", "imports", run_id, which:
                return self._rows(run_id, which)
            case "GET", "queries", _run_id:
                return self._page(request.query.get("after"))
        raise web.HTTPNotFound

    def _begun(self, sort: str, body: dict[str, Any]) -> web.Response:
        run_id = f"{sort}-{len(self.runs) + 1}"
        self.runs[run_id] = {"sort": sort, "looks": 0, "state": "open" if sort == "imports" else "running", **body}
        if sort == "copies":
            self.done["copy"] += 1
        for each in body.get("ids", ()):
            self.done[each] = 1 if sort == "labels" else self.done[each] + 1
        return web.json_response({"id": run_id})

    def _state(self, run_id: str) -> web.Response:
        run = self.runs[run_id]
        run["looks"] += run["state"] != "open"
        if run["looks"] == 2:
            run["state"] = "failed" if self.fails else "done"
        size = self.message_sizes[run["looks"] >= 2]
        shown = {"state": run["state"], "message": "Not today" if self.fails else "x" * size or None}
        if run["sort"] == "copies":
            shown["copy"] = {"id": "c-1", "name": run.get("name")}
        if run["sort"] in ("tags", "labels") and run["looks"] >= 2 and not self.fails:
            shown["results"] = [self._tagged(place, each) for place, each in enumerate(run["ids"])]
        return web.json_response({**shown, "progress": 1})

    @staticmethod
    def _tagged(place: int, thing: str) -> dict[str, Any]:
        return {"index": place, "error": "Locked"} if thing == "locked" else {"index": place, "id": thing}

    def _closed(self, run_id: str) -> web.Response:
        run = self.runs[run_id]
        if run["state"] != "open" or self.refuses_to_close:
            return web.json_response({"message": "closed already"}, status=400)
        run["state"] = "running"
        for row in run["rows"]:
            self.done[row["name"]] += 1
        return web.Response(status=200)

    def _rows(self, run_id: str, which: str) -> web.Response:
        known = [] if self.keeps_silent else self.runs[run_id]["rows"]
        rows = [row for row in known if (row["name"] == "locked") is (which == "bad")]
        lines = [f"{row['name']},{'Locked' if which == 'bad' else ''}" for row in rows]
        return web.Response(text="\n".join(["new_id,why", *lines]), content_type="text/csv")

    @staticmethod
    def _page(after: str | None) -> web.Response:
        first = int(after or 0)
        things = [{"id": number} for number in range(first, first + 3)]
        more = first < 6
        return web.json_response({"things": things, "paging": {"next": str(first + 3)}, "more": more})

    def _made(self, things: list[dict[str, Any]], method: str) -> web.Response:
        results, errors = [], []
        for thing in reversed(things):
            if thing["name"] == "locked":
                errors.append({"message": "Locked", "context": {"trace": [thing["trace"]]}})
            else:
                self.done[thing["name"]] = 1 if method == "PUT" else self.done[thing["name"]] + 1
                results.append({"id": f"m-{thing['name']}", "trace": thing["trace"]})
        return web.json_response({"results": results, "errors": errors})


def _items_of(method: str, body: str) -> list[str]:
    """The names of the things in the body of a write."""
    if method == "GET" or not body.startswith("{"):
        return []
    document = json.loads(body)
    return [*document.get("ids", ()), *(thing["name"] for thing in document.get("things", ()))]


@asynccontextmanager
async def factory() -> AsyncIterator[tuple[Factory, UpstreamConnector]]:
    """The application, and a connector of it."""
    application = Factory()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", application.handle)
    kind = factory_kind()
    async with TestServer(app) as server:
        application.origin = server.make_url("/").origin()
        async with Transport(EgressPolicy.of([application.origin])) as transport:
            upstreams = Upstreams(transport, {kind.name: application.origin})
            yield (
                application,
                upstreams.connector(kind, {}, StaticAuthorizer({}), RateScope(id="things", kind=kind.name)),
            )


async def ran(
    application: Factory, connector: UpstreamConnector, action: str, params: Mapping[str, Any], at: int | None = None
) -> tuple[OperationResult, list[Any]]:
    """The result and the stored records of a job whose first worker is killed at a step; a second one goes on.

    Raises OutcomeUnknown where the kill leaves a write in flight, as the reaper of the gateway ends such a job.
    """
    call = prepare(connector.kind.operation("things", action), params)
    application.killer = Killer(at)
    row = Row(application.killer)
    result = await attempt(connector, call, row)
    if result is None:
        if row.is_in_flight and call.effect is Effect.WRITE:
            raise OutcomeUnknown("the worker was lost while the write was in flight")
        row.taken_over()
        application.killer = row.killer
        result = await attempt(connector, call, row)
    assert result is not None
    return result, row.records


async def attempt(connector: UpstreamConnector, call: PreparedCall, row: Row) -> OperationResult | None:
    """The result of a run; None where it was killed."""
    killer = row.killer
    running = asyncio.create_task(connector.run(call, row))
    striking = asyncio.create_task(killer.struck.wait())
    await asyncio.wait([running, striking], return_when=asyncio.FIRST_COMPLETED)
    was_struck = killer.struck.is_set()
    await cancel_and_wait(striking, *([running] if was_struck else []))
    killer.released.set()
    return None if was_struck else await running
