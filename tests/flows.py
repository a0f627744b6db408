"""How much of our code six flows pass through: functions, files, and how often they go from file to file.

`python -m tests.flows` runs each flow warm, in one process on real stores and the sandbox, under `sys.setprofile`, and
prints a table. `python -m tests.flows --list list` prints the functions of one flow in the order of their first calls.
Left out are the sandbox, rounds of background loops, comprehensions and lambdas. Of several runs the one with the
fewest functions counts.
"""

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import uuid4

import aiohttp

from gateway.access.identity.tokens import hashed, new_secret
from tests.harness.caller import Api, ConnectorApi
from tests.harness.clients import EVERY_SCOPE
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.stores import own_stores
from workers.main import Worker

ROOT = Path(__file__).parents[1]
OURS = (f"{ROOT / 'gateway'}{os.sep}", f"{ROOT / 'workers'}{os.sep}")
#: the sandbox, and what goes round beside every request: whatever these call is left out
BESIDE = (
    f"{ROOT / 'gateway' / 'sandbox'}{os.sep}",
    str(ROOT / "gateway" / "foundation" / "aio" / "loops.py"),
    str(ROOT / "gateway" / "foundation" / "telemetry" / "loop_lag.py"),
)
OAUTH = "/api/v1/integrations/connectors/oauth"
LANDING = "https://app.example/landed"
RUNS = 7


@dataclass
class Trace:
    """What was called, in order."""

    functions: dict[tuple[str, int], str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    #: kept, so that a coroutine that goes on is known from one that begins
    _frames: dict[int, FrameType] = field(default_factory=dict)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or not code.co_filename.startswith(OURS):
            return
        if id(frame) in self._frames or _is_beside(frame):
            return
        self._frames[id(frame)] = frame
        self.functions.setdefault((code.co_filename, code.co_firstlineno), code.co_qualname)
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

    @property
    def listing(self) -> str:
        """A line for each function with its place, in the order of their first calls."""
        return "\n".join(
            f"{number:4} {Path(name).relative_to(ROOT)}:{line} {function}"
            for number, ((name, line), function) in enumerate(self.functions.items(), 1)
        )


def _is_beside(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(BESIDE):
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


async def leanest(flow: Callable[[], Awaitable[Trace]]) -> Trace:
    return min([await flow() for _ in range(RUNS)], key=lambda trace: trace.row)


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

    async def started(self) -> Trace:
        """The start of a worker, until it has claimed and run a job: the job is a read of one page."""
        job_id = await self._job("tickets", "list", {"per_page": 1})

        async def polled() -> None:
            async with self._worker():
                await self._done(job_id)

        return await traced(polled)

    async def worked_off(self) -> Trace:
        """A bulk update on a worker that has run a job before."""
        async with self._worker():
            await self._done(await self._job("tickets", "list", {"per_page": 1}))
            job_id = await self._bulk_update()
            return await traced(lambda: self._done(job_id))

    async def _job(self, entity: str, action: str, params: dict[str, Any]) -> str:
        answer = await self.desk.send(entity, action, params, headers={"Prefer": "respond-async"})
        assert answer.status == 202, answer.body
        return str(answer.json()["job"]["id"])

    async def _done(self, job_id: str) -> None:
        answer = await self.api.get(f"/api/v1/jobs/{job_id}?wait=30")
        while not answer.json()["done"]:
            answer = await self.api.get(f"/api/v1/jobs/{job_id}?wait=30")

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

    @property
    def all(self) -> dict[str, tuple[str, Callable[[], Awaitable[Trace]]]]:
        """Their names on the command line and in the table."""
        return {
            "list": ("`tickets.list`, inline", self.listed),
            "bulk": ("bulk update: POST to 202", self.accepted),
            "worker": ("bulk update: worker's run and the poll", self.worked_off),
            "start": ("start of a worker, and its first job", self.started),
            "oauth": ("OAuth callback to an active connector", self.connected),
            "download": ("download with a range", self.downloaded),
        }


NAMES = ("list", "bulk", "worker", "start", "oauth", "download")


async def measured(names: Sequence[str]) -> list[tuple[str, Trace]]:
    """Each flow and its leanest trace."""
    async with (
        own_stores() as stores,
        front_end(stores.directory, stores.postgres.url, stores.redis.url) as opened,
    ):
        return await _all(opened, names)


async def _all(front_end: FrontEnd, names: Sequence[str]) -> list[tuple[str, Trace]]:
    organization, secret = await front_end.organization(), new_secret()
    client_id = await front_end.services.identity.create_client(
        "flows", [organization], hashed(secret), EVERY_SCOPE, [LANDING]
    )
    async with Api.of(front_end.base_url, str(client_id), secret) as api:
        configuration = {"client_id": "app", "client_secret": "own-secret"}
        body = {"connector_type": "work-management", "configuration": configuration}
        await api.call("PUT", "/api/v1/oauth/credentials", json=body)
        flows = Flows(front_end, api, await api.connector()).all
        return [(flows[name][0], await leanest(flows[name][1])) for name in names]


def table(rows: list[tuple[str, Trace]]) -> str:
    """The figures as a table of Markdown."""
    head = "| flow | functions | files | moves between files | returns to a file already left |"
    lines = [f"| {name} | {' | '.join(map(str, trace.row))} |" for name, trace in rows]
    return "\n".join([head, "|---|---|---|---|---|", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.flows", description=__doc__)
    parser.add_argument("--list", choices=NAMES, dest="listed", help="print the functions of this flow in order")
    listed = parser.parse_args().listed
    if listed is None:
        print(table(asyncio.run(measured(NAMES))))
    else:
        ((name, trace),) = asyncio.run(measured([listed]))
        print(f"{name}: {len(trace.functions)} functions\n{trace.listing}")


if __name__ == "__main__":
    main()
