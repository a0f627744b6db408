"""`gateway up` as a process, with its stores unless they are given, front end, worker and sandbox."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.caller import Api
from tests.harness.command_line import invoked
from tests.harness.processes import GATEWAY, Program, free_port


@dataclass(frozen=True)
class Running:
    """A running gateway."""

    base_url: str
    client_id: str
    client_secret: str
    organization_id: str
    database_url: str
    sandbox_url: str
    environment: dict[str, str]

    async def admin(self, *arguments: str) -> dict[str, Any]:
        """The output of `gateway admin …`."""
        ended = await invoked("admin", *arguments, environment=self.environment, directory=Path.cwd())
        assert ended.code == 0, ended.err
        return ended.json()


@asynccontextmanager
async def brought_up(
    folder: Path,
    environment: Mapping[str, str],
    *options: str,
    command: Sequence[str] = GATEWAY,
    log: Path | None = None,
) -> AsyncIterator[dict[str, Any]]:
    """`gateway up` within the block, with its data in the folder; yields the content of its ready file."""
    ready_file = folder / "ready.json"
    program = Program(
        *command,
        *("up", "--bind", f"127.0.0.1:{free_port()}"),
        *("--data-dir", str(folder / "up"), "--ready-file", str(ready_file), *options),
        environment=environment,
        log=log,
    )
    await program.start()
    try:
        await program.until(ready_file.exists)
        yield json.loads(ready_file.read_text())
    finally:
        await program.stop()


@asynccontextmanager
async def brought_up_with_sandbox(
    folder: Path, database_url: str, environment: Mapping[str, str]
) -> AsyncIterator[Running]:
    """A gateway whose applications are the sandbox."""
    environment = {**environment, "GATEWAY_DATABASE_URL": database_url}
    async with brought_up(folder, environment, "--sandbox") as ready:
        names = ("base_url", "client_id", "client_secret", "organization_id")
        yield Running(
            **{name: ready[name] for name in names},
            database_url=database_url,
            sandbox_url=await _sandbox_url(ready),
            environment=environment,
        )


async def _sandbox_url(ready: dict[str, Any]) -> str:
    """The URL of the sandbox, from a dry run of the support desk."""
    async with Api.of(ready["base_url"], ready["client_id"], ready["client_secret"]) as api:
        connector = await api.connector()
        shown = await connector.execute("tickets", "get", {"ticket_id": 1}, dry_run=True)
    return shown["result"][0]["url"].split("/api/")[0]
