"""`gateway demo --tour`: processes are killed and answers cut, and nothing is lost or doubled."""

import asyncio
import contextlib
import json
import os
import signal
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

from gateway.cli.sandbox_control import ask
from gateway.cli.steps import DemoFailed, Steps, require
from gateway.client import Connector, Gateway, Job
from gateway.errors import GatewayError
from gateway.foundation.aio.background import cancel_and_wait

#: the file of `gateway up` with its address and process ids, in the folder of the demo
READY_FILE = "ready.json"
_KIND = "support-desk"
#: more than two requests of the application's bulk update
_TICKETS = 250
#: MiB; in the sandbox the id of an attachment is its size
_FILE = 8
#: seconds until a killed process must have a successor
_REPLACED_WITHIN = 30


async def connect_desk(gateway: Gateway) -> Connector:
    """Create the connector whose tickets a demo reads and writes."""
    credentials = {"email": "demo@example.com", "api_token": "demo"}
    return await gateway.connectors.create(_KIND, credentials, environment={"subdomain": "demo"})


async def break_things(steps: Steps, gateway: Gateway, folder: Path) -> None:
    """Each step breaks something, and requires that nothing is lost or doubled; raises DemoFailed."""
    tour = _Tour(steps, gateway, await connect_desk(gateway), folder)
    await steps.step(f"kill the worker during an update of {_TICKETS} tickets", lambda: tour.kill("workers"))
    await steps.step(f"kill the front end during an update of {_TICKETS} tickets", lambda: tour.kill("gateway"))
    await steps.step("lose the answer to a create", tour.lose_an_answer)
    await steps.step("send the create again under its key", tour.repeat_the_create)
    await steps.step("refuse two reads with 503", tour.refuse_reads)
    await steps.step(f"cut a download of {_FILE} MiB in the middle", tour.cut_a_download)


class _Tour:
    """One tour: the gateway, its sandbox and its processes."""

    def __init__(self, steps: Steps, gateway: Gateway, desk: Connector, folder: Path) -> None:
        self._steps, self._gateway, self._desk, self._folder = steps, gateway, desk, folder
        self._sandbox: str = self._ready()["sandbox_url"]
        self._subject = f"tour {uuid.uuid4().hex[:8]}"

    async def kill(self, role: str) -> str:
        """Kill the process of a role when the first tickets of a bulk update are done."""
        await ask(self._sandbox, "DELETE", "requests")
        job, before = await self._submit(), self._ready()["pids"][role][0]
        await self._first_progress(job)
        require(not job.is_done, "the update ended before anything was killed")
        os.kill(before, signal.SIGKILL)
        self._say(f"kill -9 {before} at {job.view.progress} of {_TICKETS} tickets")
        self._say(f"process {await self._replaced(role, before)} goes on")
        try:
            result = (await job.result()).result
        except GatewayError as error:
            require(error.is_outcome_unknown, f"the update failed: {error}")
            result = None
        sent = Counter(
            number
            for request in await self._received("/api/v2/tickets/update_many.json")
            for number in request["query"]["ids"].split(",")
        )
        twice = sum(count > 1 for count in sent.values())
        require(twice == 0, f"{twice} tickets were sent twice")
        if result is None:
            return f"{len(sent)} tickets sent, 0 doubled; a request was out at the kill, and the job says `unknown`"
        require(len(sent) == _TICKETS, f"{_TICKETS - len(sent)} tickets were never sent")
        require(result["succeeded"] == _TICKETS, f"only {result['succeeded']} of {_TICKETS} tickets were updated")
        return f"{len(sent)} tickets sent once, 0 lost, 0 doubled"

    async def lose_an_answer(self) -> str:
        """The application creates a ticket, and closes the connection before it answers."""
        await self._fault(method="POST", entity="tickets", reset=True, times=1)
        try:
            await self._create_ticket()
        except GatewayError as error:
            require(error.is_outcome_unknown, f"the error does not say that the outcome is unknown: {error}")
        else:
            raise DemoFailed("a create whose answer was lost succeeded")
        return f"{await self._created()} created; the gateway says `outcome: unknown`, and does not send it again"

    async def repeat_the_create(self) -> str:
        """The same call with the same Idempotency-Key."""
        try:
            await self._create_ticket()
        except GatewayError as error:
            return f"{await self._created()} created still; the answer is {error.code}, as before"
        raise DemoFailed("the repetition under the same key was sent")

    async def refuse_reads(self) -> str:
        await self._fault(method="GET", entity="tickets", status=503, times=2)
        answer = await self._gateway.execute(self._desk, "tickets", "list", {"per_page": 2})
        require(len(answer.records) == 2, "the list did not hold two tickets")
        return "the gateway asked three times, the caller once"

    async def cut_a_download(self) -> str:
        """The connection ends after half of the bytes; the client continues with a range request."""
        await self._fault(entity="attachments", truncate_after_bytes=_FILE << 19, times=1)
        target = self._folder / "cut"
        file = await self._gateway.download(self._desk, "attachments", {"attachment_id": _FILE}, to=target)
        expected = await ask(self._sandbox, "GET", f"files/{_FILE}")
        require(file.sha256 == expected["sha256"], "the file differs from the application's")
        return f"complete: SHA-256 {file.sha256[:16]}…, as in the application"

    async def _submit(self) -> Job:
        ids = ",".join(str(number) for number in range(1, _TICKETS + 1))
        params = {"ids": ids, "ticket": {"status": "pending"}}
        return await self._gateway.submit(self._desk, "ticket_bulk_updates", "create", params)

    async def _first_progress(self, job: Job) -> None:
        """Follow the job until its first tickets are done."""
        begun = asyncio.Event()
        watching = asyncio.ensure_future(job.wait(on_change=lambda view: begun.set() if view.progress else None))
        starting = asyncio.ensure_future(begun.wait())
        await asyncio.wait({watching, starting}, return_when=asyncio.FIRST_COMPLETED)
        await cancel_and_wait(watching, starting)

    async def _create_ticket(self) -> None:
        ticket = {"subject": self._subject, "comment": {"body": "created by the tour"}}
        await self._gateway.execute(
            self._desk, "tickets", "create", {"ticket": ticket}, idempotency_key=self._subject.replace(" ", "-")
        )

    async def _created(self) -> int:
        """How often the application received the create; it must have been once."""
        received = [each for each in await self._received("/api/v2/tickets") if self._subject in each["body"]]
        require(len(received) == 1, f"the create was sent {len(received)} times")
        return len(received)

    async def _received(self, path_prefix: str) -> list[dict[str, Any]]:
        answer = await ask(self._sandbox, "GET", "requests", query={"path_prefix": path_prefix})
        return [each for each in answer["requests"] if each["method"] != "GET"]

    async def _fault(self, **fault: object) -> None:
        await ask(self._sandbox, "POST", "faults", {"kind": _KIND, **fault})
        self._say(f"gateway sandbox fault add {' '.join(_option(*each) for each in fault.items())}")

    async def _replaced(self, role: str, before: int) -> int:
        """The process that replaced a killed one, once the gateway is ready again."""
        deadline = time.monotonic() + _REPLACED_WITHIN
        while before in (pids := self._ready()["pids"][role]) or not pids or not await self._is_ready():
            require(time.monotonic() < deadline, f"process {before} has no successor")
            await asyncio.sleep(0.05)
        return int(pids[0])

    async def _is_ready(self) -> bool:
        with contextlib.suppress(GatewayError):
            await self._gateway.connectors.get(self._desk.id)
            return True
        return False

    def _ready(self) -> dict[str, Any]:
        ready: dict[str, Any] = json.loads((self._folder / READY_FILE).read_text("utf-8"))
        return ready

    def _say(self, text: str) -> None:
        self._steps.console.print(f"  {text}", style="dim", soft_wrap=True, highlight=False)


def _option(name: str, value: object) -> str:
    option = f"--{name.replace('_', '-')}"
    return option if value is True else f"{option} {value}"
