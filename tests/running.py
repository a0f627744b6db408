"""A whole gateway as real processes, sandbox included, and a caller that speaks plain HTTP to it."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from tests.databases import created_database, url_of

#: seconds for a gateway to become ready, and for a job to end
PATIENCE = 60
CREDENTIALS = {"email": "agent@example.com", "api_token": "token", "subdomain": "acme"}


@dataclass(frozen=True)
class Running:
    """A gateway that answers."""

    base_url: str
    client_id: str
    client_secret: str
    organization_id: str
    database_url: str
    sandbox_url: str
    environment: dict[str, str]

    async def admin(self, *arguments: str) -> dict[str, Any]:
        """What `gateway admin …` answers."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", "admin", *arguments, env=self.environment, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        assert process.returncode == 0
        return json.loads(output)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
async def running(
    postgres_url: str, redis_url: str, migrated_database: str, short_directory: Path
) -> AsyncIterator[Running]:
    """`gateway up --sandbox` on the session's stores, for all journeys."""
    async with created_database(postgres_url, migrated_database) as name:
        database_url = url_of(postgres_url, name)
        environment = {
            **os.environ,
            "GATEWAY_DATABASE_URL": database_url,
            "GATEWAY_REDIS_URL": redis_url,
            "GATEWAY_INLINE_BUDGET": "5",
            # Stories count what the application receives; those of the copies have a gateway of their own.
            "GATEWAY_SYNCHRONIZE": "false",
            "GATEWAY_LOG_LEVEL": "warning",
        }
        async with brought_up(short_directory, environment, "--sandbox") as ready:
            yield Running(
                ready["base_url"],
                ready["client_id"],
                ready["client_secret"],
                ready["organization_id"],
                database_url,
                await _sandbox_url(ready),
                environment,
            )


@asynccontextmanager
async def brought_up(folder: Path, environment: dict[str, str], *options: str) -> AsyncIterator[dict[str, Any]]:
    """`gateway up` with its data in the folder, until the block ends; what its ready file says."""
    ready_file = folder / "ready.json"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "gateway", "up", "--bind", f"127.0.0.1:{free_port()}"),
        *("--data-dir", str(folder / "up"), "--ready-file", str(ready_file), *options),
        env=environment,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        yield await _announced(process, ready_file)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


async def _announced(process: asyncio.subprocess.Process, ready_file: Path) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        while not ready_file.exists():
            assert process.returncode is None, "the gateway did not start"
            await asyncio.sleep(0.05)
    return json.loads(ready_file.read_text())


async def _sandbox_url(ready: dict[str, Any]) -> str:
    """The address that the gateway's requests for the support desk go to, as a dry run tells it."""
    async with Api.of(ready["base_url"], ready["client_id"], ready["client_secret"]) as api:
        connector = await api.connector()
        shown = await connector.execute("tickets", "get", {"ticket_id": 1}, dry_run=True)
    return shown["result"][0]["url"].split("/api/")[0]


class Api:
    """A caller with a token."""

    def __init__(self, session: aiohttp.ClientSession, headers: dict[str, str]) -> None:
        self.session = session
        self.headers = headers

    @classmethod
    def of(cls, base_url: str, client_id: str, client_secret: str) -> "_Opening":
        return _Opening(base_url, client_id, client_secret)

    async def call(self, method: str, path: str, **options: Any) -> "Answer":
        headers = {**self.headers, **options.pop("headers", {})}
        async with self.session.request(method, path, headers=headers, **options) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str, **options: Any) -> "Answer":
        return await self.call("GET", path, **options)

    async def post(self, path: str, document: Any = None, **options: Any) -> "Answer":
        return await self.call("POST", path, json=document, **options)

    async def connector(
        self, kind: str = "Support-Desk", credentials: dict[str, str] | None = None, **members: Any
    ) -> "ConnectorApi":
        """A new connector in a workspace of its own."""
        body = {
            "workspace_name": f"w-{uuid4().hex[:8]}",
            "connector_type": kind,
            "name": "test",
            "credentials": credentials or CREDENTIALS,
            **members,
        }
        answer = await self.post("/api/v1/integrations/connectors", body)
        assert answer.status == 201, answer.body
        return ConnectorApi(self, answer.json())


class _Opening:
    """Gets a token on the way in and closes the session on the way out."""

    def __init__(self, base_url: str, client_id: str, client_secret: str) -> None:
        self._secret = {"client_id": client_id, "client_secret": client_secret}
        self._base_url = base_url

    async def __aenter__(self) -> Api:
        self._session = aiohttp.ClientSession(self._base_url)
        async with self._session.post("/api/v1/account/applications/token", json=self._secret) as response:
            status, document = response.status, await response.json()
        if status != 200:
            await self._session.close()
            pytest.fail(f"no token: {document}")
        return Api(self._session, {"Authorization": f"Bearer {document['access_token']}"})

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    status: int
    headers: Any
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class ConnectorApi:
    """One connector through the API."""

    def __init__(self, api: Api, record: dict[str, Any]) -> None:
        self.api = api
        self.record = record
        self.path = f"/api/v1/integrations/connectors/{record['id']}"

    async def send(
        self, entity: str, action: str, params: Any = None, headers: dict[str, str] | None = None, **members: Any
    ) -> Answer:
        body = {"entity": entity, "action": action, **members}
        if params is not None:
            body["params"] = params
        return await self.api.post(f"{self.path}/execute", body, headers=headers or {})

    async def execute(self, entity: str, action: str, params: Any = None, **members: Any) -> dict[str, Any]:
        """The document of a call that succeeds."""
        answer = await self.send(entity, action, params, **members)
        assert answer.status == 200, answer.body
        return answer.json()
