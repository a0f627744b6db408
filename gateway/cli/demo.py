"""`gateway demo`: typical calls of a client to a gateway with the sandbox, all on this machine."""

import asyncio
import json
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn, TransferSpeedColumn
from rich.text import Text

from gateway.cli.progress import bars_on
from gateway.cli.steps import DemoFailed, Steps, require
from gateway.cli.tour import READY_FILE, break_things, connect_desk
from gateway.client import Connector, Gateway, JobView
from gateway.errors import GatewayError, InvalidParams

#: seconds for the gateway to become ready
_TIMEOUT = 60
_TICKETS = 250
#: MiB; in the sandbox the id of an attachment is its size
_FILE = 64
#: one call for each other kind: credentials that the sandbox accepts, the entity to list, and params
_OTHER_KINDS: tuple[tuple[str, dict[str, str], str, dict[str, Any]], ...] = (
    ("crm-records", {"private_app_token": "demo"}, "contacts", {"limit": 2}),
    (
        "crm-query",
        {"refresh_token": "demo", "client_id": "demo", "client_secret": "demo"},
        "accounts",
        {"q": "SELECT Id FROM Account LIMIT 2"},
    ),
    ("workspace-notes", {"token": "demo"}, "users", {"page_size": 2}),
    ("team-chat", {"bot_key": "demo"}, "channels", {"limit": 2}),
    ("work-management", {"token": "demo"}, "workspaces", {"limit": 2}),
    ("incident-management", {"api_key": "demo"}, "incidents", {"page_size": 2}),
)


class _Interruption(Exception):
    """Interrupts a download in the middle, as a lost connection would."""


@click.command()
@click.option(
    "--tour", is_flag=True, help="Break things instead: kill processes and cut answers, and count what is lost."
)
def demo(tour: bool) -> None:
    """Try the gateway: make typical calls to a sandbox and print each step. It takes a minute.

    Starts a gateway with its own PostgreSQL, Redis and sandbox in a temporary folder. Creates a connector, reads and
    writes tickets, updates 250 tickets on a worker, downloads a file, resumes an interrupted download, and calls six
    other kinds. The exit code is 1 if a step fails.

    With --tour it kills the worker and the front end under a bulk update, loses the answer of a write, refuses reads
    and cuts a download, and compares the results with what the sandbox received.
    """
    console = Console()
    try:
        asyncio.run(_demo(console, break_things if tour else _calls))
    except (DemoFailed, GatewayError, click.ClickException) as error:
        Console(stderr=True, soft_wrap=True).print(Text.assemble(("The demo failed: ", "red"), str(error)))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


async def _demo(console: Console, story: Callable[[Steps, Gateway, Path], Awaitable[None]]) -> None:
    steps = Steps(console)
    with tempfile.TemporaryDirectory(prefix="gw-") as folder:
        async with _gateway(steps, Path(folder)) as ready:
            credentials = (ready["base_url"], ready["client_id"], ready["client_secret"])
            async with Gateway(*credentials, workspace_name="demo") as gateway:
                await story(steps, gateway, Path(folder))
    steps.print_summary()
    console.print("\n`gateway up --sandbox` serves the same set-up until Ctrl-C.", highlight=False)


@asynccontextmanager
async def _gateway(steps: Steps, folder: Path) -> AsyncIterator[dict[str, Any]]:
    """`gateway up --sandbox` in a child process, until the block ends."""
    ready_file = folder / READY_FILE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "up", "--sandbox", "--bind", f"127.0.0.1:{_free_port()}"),
        *("--data-dir", str(folder / "data"), "--ready-file", str(ready_file)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    errors = asyncio.ensure_future(_last_lines(process))
    try:
        await steps.step("start PostgreSQL, Redis, front end, worker, sandbox", lambda: _ready(process, ready_file))
        yield json.loads(ready_file.read_text("utf-8"))
    except DemoFailed as failed:
        if process.returncode is None:
            raise
        raise DemoFailed(f"{failed}\n{await errors}") from failed
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        await errors


async def _last_lines(process: asyncio.subprocess.Process) -> str:
    """The last lines that the gateway printed; they are read continuously, so that the pipe never fills up."""
    assert process.stderr is not None
    lines: list[str] = []
    async for line in process.stderr:
        lines = [*lines[-20:], line.decode(errors="replace").rstrip()]
    return "\n".join(lines)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _ready(process: asyncio.subprocess.Process, ready_file: Path) -> str:
    deadline = time.monotonic() + _TIMEOUT
    while not ready_file.exists():  # noqa: ASYNC240  reading a small file blocks for no time
        if process.returncode is not None or time.monotonic() > deadline:
            raise DemoFailed("the gateway did not start")
        await asyncio.sleep(0.05)
    return "ready"


async def _calls(steps: Steps, gateway: Gateway, folder: Path) -> None:
    await steps.step("create a support-desk connector", lambda: _create(gateway))
    desk = await gateway.connectors.resolve("support-desk")
    await steps.step("list tickets", lambda: _list(gateway, desk))
    await steps.step("get a ticket", lambda: _get(gateway, desk))
    await steps.step("create a ticket with a bad status", lambda: _be_refused(gateway, desk))
    await steps.step(f"update {_TICKETS} tickets on a worker", lambda: _bulk(steps, gateway, desk))
    await steps.step(
        f"download {_FILE} MiB, and resume an interrupted download", lambda: _files(steps, gateway, desk, folder)
    )
    for kind, credentials, entity, params in _OTHER_KINDS:
        await steps.step(f"call {kind}", lambda: _call_kind(gateway, kind, credentials, entity, params))  # noqa: B023


async def _bulk(steps: Steps, gateway: Gateway, desk: Connector) -> str:
    ids = ",".join(str(number) for number in range(1, _TICKETS + 1))
    job = await gateway.submit(desk, "ticket_bulk_updates", "create", {"ids": ids, "ticket": {"status": "pending"}})
    columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn())
    with bars_on(steps.console, *columns) as bars:
        bar = bars.add_task("tickets", total=_TICKETS)

        def show(view: JobView) -> None:
            bars.update(bar, completed=view.progress, description=view.message or view.status)

        result = (await job.result(on_change=show)).result
    require(result["succeeded"] == _TICKETS, f"only {result['succeeded']} of {_TICKETS} tickets were updated")
    return f"{result['succeeded']} updated, a result for each"


async def _files(steps: Steps, gateway: Gateway, desk: Connector, folder: Path) -> str:
    params = {"attachment_id": _FILE}
    columns = (TextColumn("  {task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with bars_on(steps.console, *columns) as bars:
        bar = bars.add_task("whole", total=None)

        def show(received: int, total: int | None) -> None:
            bars.update(bar, completed=received, total=total)

        def break_off(received: int, total: int | None) -> None:
            show(received, total)
            if total is not None and received > total // 2:
                raise _Interruption

        whole = await gateway.download(desk, "attachments", params, to=folder / "whole", on_progress=show)
        bars.update(bar, description="interrupted")
        try:
            await gateway.download(desk, "attachments", params, to=folder / "resumed", on_progress=break_off)
        except _Interruption:
            bars.update(bar, description="resumed")
        resumed = await gateway.download(desk, "attachments", params, to=folder / "resumed", on_progress=show)
    require(whole.size == _FILE << 20, f"the file has {whole.size} bytes")
    require(resumed.resumed_from > 0, "the second download started at the beginning")
    require(whole.sha256 == resumed.sha256, "the checksums differ")
    return f"resumed at byte {resumed.resumed_from}, SHA-256 {whole.sha256[:16]}… both times"


async def _create(gateway: Gateway) -> str:
    connector = await connect_desk(gateway)
    return f"{connector.name}, {connector.status}"


async def _list(gateway: Gateway, desk: Connector) -> str:
    answer = await gateway.execute(desk, "tickets", "list", {"per_page": 2})
    require(len(answer.records) == 2, "the list did not hold two tickets")
    return f"{len(answer.records)} of {(answer.meta or {})['count']}"


async def _get(gateway: Gateway, desk: Connector) -> str:
    ticket = (await gateway.execute(desk, "tickets", "get", {"ticket_id": 1})).result
    require(ticket["id"] == 1, "another ticket came back")
    return f"#{ticket['id']} {ticket['subject']}"


async def _be_refused(gateway: Gateway, desk: Connector) -> str:
    try:
        await gateway.execute(desk, "tickets", "create", {"ticket": {"subject": "demo", "status": "closed"}})
    except InvalidParams as error:
        return f"refused: {error.detail}"
    raise DemoFailed("a ticket was created with the status closed")


async def _call_kind(
    gateway: Gateway, kind: str, credentials: dict[str, str], entity: str, params: dict[str, Any]
) -> str:
    connector = await gateway.connectors.create(kind, credentials)
    answer = await gateway.execute(connector, entity, "list", params)
    require(bool(answer.records), f"{kind} {entity} came back empty")
    return f"{len(answer.records)} {entity}"
