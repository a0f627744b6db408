"""How much of our code five flows pass through: functions, files, and how often they go from file to file.

`python -m tests.flows` runs each flow warm, in one process on real stores and the sandbox, under `sys.setprofile`, and
prints the table that stands in docs/architecture.md. The sandbox and what it calls, comprehensions and lambdas are left
out; of several runs the one with the fewest functions counts, because background loops may run in between.
"""

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import uuid4

import aiohttp

from gateway.db.migrate import migrate
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.embedded.redis import EmbeddedRedis
from gateway.identity.tokens import hashed, new_secret
from tests.databases import created_database, url_of
from tests.in_process_app import EVERY_SCOPE, FrontEnd, front_end
from tests.running import Api, ConnectorApi
from workers.main import Worker

ROOT = Path(__file__).parents[1]
OURS = (f"{ROOT / 'gateway'}{os.sep}", f"{ROOT / 'workers'}{os.sep}")
STAND_IN = f"{ROOT / 'gateway' / 'sandbox'}{os.sep}"
OAUTH = "/api/v1/integrations/connectors/oauth"
LANDING = "https://app.example/landed"
RUNS = 5


@dataclass
class Trace:
    """What was called, in order."""

    functions: set[tuple[str, int]] = field(default_factory=set)
    files: list[str] = field(default_factory=list)
    #: kept, so that a coroutine that goes on is known from one that begins
    _frames: dict[int, FrameType] = field(default_factory=dict)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or not code.co_filename.startswith(OURS):
            return
        if id(frame) in self._frames or _is_in_stand_in(frame):
            return
        self._frames[id(frame)] = frame
        self.functions.add((code.co_filename, code.co_firstlineno))
        self.files.append(code.co_filename)

    @property
    def row(self) -> tuple[int, int, int, int]:
        """Functions, files, moves between files, and returns to a file already left."""
        moves = [later for earlier, later in zip(self.files, self.files[1:], strict=False) if earlier != later]
        left: set[str] = set()
        returns = 0
        for earlier, later in zip(self.files, self.files[1:], strict=False):
            if earlier != later:
                left.add(earlier)
                returns += later in left
        return len(self.functions), len(set(self.files)), len(moves), returns


def _is_in_stand_in(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(STAND_IN):
            return True
        frame = frame.f_back
    return False


async def traced(call: Callable[[], Awaitable[Any]]) -> Trace:
    trace = Trace()
    sys.setprofile(trace)
    try:
        await call()
    finally:
        sys.setprofile(None)
    return trace


async def fewest(flow: Callable[[], Awaitable[Trace]]) -> tuple[int, int, int, int]:
    return min([(await flow()).row for _ in range(RUNS)])


class Flows:
    """The five flows of one front end."""

    def __init__(self, front_end: FrontEnd, api: Api, desk: ConnectorApi) -> None:
        self.front_end, self.api, self.desk = front_end, api, desk

    async def listed(self) -> Trace:
        return await traced(lambda: self.desk.execute("tickets", "list", {"per_page": 2}))

    async def accepted(self) -> Trace:
        return await traced(self._bulk_update)

    async def _bulk_update(self) -> str:
        params = {"ids": "1,2,3", "ticket": {"status": "open"}}
        answer = await self.desk.send("ticket_bulk_updates", "create", params)
        assert answer.status == 202, answer.body
        return str(answer.json()["job"]["id"])

    async def worked_off(self) -> Trace:
        job_id = await self._bulk_update()

        async def polled() -> None:
            async with self._worker():
                answer = await self.api.get(f"/api/v1/jobs/{job_id}?wait=30")
                while not answer.json()["done"]:
                    answer = await self.api.get(f"/api/v1/jobs/{job_id}?wait=30")

        return await traced(polled)

    @asynccontextmanager
    async def _worker(self) -> AsyncIterator[None]:
        stopping = asyncio.Event()
        working = asyncio.create_task(Worker(self.front_end.services).until(stopping))
        try:
            yield
        finally:
            sys.setprofile(None)
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working

    async def connected(self) -> Trace:
        body = {
            "workspace_name": f"w-{uuid4().hex[:8]}",
            "connector_type": "Work-Management",
            "redirect_url": LANDING,
        }
        started = (await self.api.post(f"{OAUTH}/initiate", body)).json()
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            url = self._here(started["consent_url"])
            async with browser.get(url, allow_redirects=False) as hop:
                consent = hop.headers["Location"]
            async with browser.post(consent, data={"decision": "allow"}, allow_redirects=False) as allowed:
                url = self._here(allowed.headers["Location"])

            async def called_back() -> None:
                async with browser.get(url, allow_redirects=False) as answer:
                    assert "connector_id=" in answer.headers["Location"]

            return await traced(called_back)

    def _here(self, url: str) -> str:
        """An address of the front end where it really listens; its settings name another port."""
        own = self.front_end.services.settings.base_url
        return url.replace(own, self.front_end.base_url, 1) if url.startswith(own) else url

    async def downloaded(self) -> Trace:
        path = f"{self.desk.path}/download/attachments?attachment_id=7"
        return await traced(lambda: self.api.get(path, headers={"Range": "bytes=5-9"}))


async def measured() -> list[tuple[str, tuple[int, int, int, int]]]:
    """Each flow and its figures."""
    with tempfile.TemporaryDirectory(prefix="gw-") as name:
        folder = Path(name)
        postgres, redis = EmbeddedPostgres(folder / "postgres", durable=False), EmbeddedRedis(folder / "redis")
        server, redis_url = postgres.start(), redis.start()
        try:
            async with created_database(server, "template1") as database:
                await migrate(url_of(server, database))
                async with front_end(folder, url_of(server, database), redis_url) as opened:
                    return await _all(opened)
        finally:
            redis.stop()
            postgres.stop()


async def _all(front_end: FrontEnd) -> list[tuple[str, tuple[int, int, int, int]]]:
    organization, secret = await front_end.organization(), new_secret()
    client_id = await front_end.services.identity.create_client(
        "flows", [organization], hashed(secret), EVERY_SCOPE, [LANDING]
    )
    async with Api.of(front_end.base_url, str(client_id), secret) as api:
        configuration = {"client_id": "app", "client_secret": "own-secret"}
        body = {"connector_type": "work-management", "configuration": configuration}
        await api.call("PUT", "/api/v1/oauth/credentials", json=body)
        flows = Flows(front_end, api, await api.connector())
        return [
            ("`tickets.list`, inline", await fewest(flows.listed)),
            ("bulk update: POST to 202", await fewest(flows.accepted)),
            ("bulk update: worker's run and the poll", await fewest(flows.worked_off)),
            ("OAuth callback to an active connector", await fewest(flows.connected)),
            ("download with a range", await fewest(flows.downloaded)),
        ]


def table(rows: list[tuple[str, tuple[int, int, int, int]]]) -> str:
    """The figures as a table of Markdown."""
    head = "| flow | functions | files | moves between files | returns to a file already left |"
    lines = [f"| {name} | {' | '.join(map(str, figures))} |" for name, figures in rows]
    return "\n".join([head, "|---|---|---|---|---|", *lines])


if __name__ == "__main__":
    print(table(asyncio.run(measured())))
