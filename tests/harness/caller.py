"""A caller that sends HTTP requests to a gateway, and compares each response with the OpenAPI document."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import aiohttp

from tests.harness import contract
from tests.harness.waiting import PATIENCE

#: seconds for which an idle connection is reused; a front end that stops keeps it for longer, so that no request is
#: sent on a connection that is being closed (RFC 9112 §9.5)
KEEP_ALIVE = 1.0
CREDENTIALS = {"email": "agent@example.com", "api_token": "token", "subdomain": "acme"}
#: the headers of a call that becomes a job
ASYNC = {"Prefer": "respond-async"}


class Api:
    """A caller with a token."""

    def __init__(self, session: aiohttp.ClientSession, headers: dict[str, str]) -> None:
        self.session = session
        self.headers = headers

    @classmethod
    @asynccontextmanager
    async def of(cls, base_url: str, client_id: str, client_secret: str) -> AsyncIterator["Api"]:
        """A caller with a new token, within the block."""
        secret = {"client_id": client_id, "client_secret": client_secret}
        connector = aiohttp.TCPConnector(keepalive_timeout=KEEP_ALIVE)
        async with aiohttp.ClientSession(base_url, connector=connector) as session:
            token = (await cls(session, {}).post("/api/v1/account/applications/token", secret)).document()
            yield cls(session, {"Authorization": f"Bearer {token['access_token']}"})

    async def call(self, method: str, path: str, **options: Any) -> "Answer":
        headers = {**self.headers, **options.pop("headers", {})}
        async with self.session.request(method, path, headers=headers, **options) as response:
            answer = Answer(response.status, response.headers, await response.read())
            sent, body = response.request_info.headers, options.get("json")
        contract.check(method, path, sent, body, answer.status, answer.headers, answer.body)
        return answer

    async def get(self, path: str, **options: Any) -> "Answer":
        return await self.call("GET", path, **options)

    async def post(self, path: str, document: Any = None, **options: Any) -> "Answer":
        return await self.call("POST", path, json=document, **options)

    async def connector(
        self, kind: str = "Support-Desk", credentials: dict[str, str] | None = None, **members: Any
    ) -> "ConnectorApi":
        """A new connector in a new workspace."""
        body = {
            "workspace_name": f"w-{uuid4().hex[:8]}",
            "connector_type": kind,
            "name": "test",
            "credentials": credentials or CREDENTIALS,
            **members,
        }
        return ConnectorApi(self, (await self.post("/api/v1/integrations/connectors", body)).document(201))

    async def ended_job(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Wait until the job has ended."""
        return await self.job_once(job, lambda seen: seen["done"])

    async def running_job(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Wait until a worker runs the job."""
        return await self.job_once(job, lambda seen: seen["status"] == "running")

    async def job_once(self, job: Mapping[str, Any], is_so: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Wait until the condition is true of the job, which is read whenever it changes."""
        path = f"/api/v1/jobs/{job['id']}"
        async with asyncio.timeout(PATIENCE):
            answer = await self.get(path)
            while not is_so(seen := answer.document()):
                assert not seen["done"], seen
                answer = await self._changed(path, answer.headers["ETag"])
        return seen

    async def _changed(self, path: str, tag: str) -> "Answer":
        while (answer := await self.get(f"{path}?wait=5", headers={"If-None-Match": tag})).status == 304:
            pass
        return answer


class UnexpectedStatus(AssertionError):
    """A response has another status than the test requires."""


@dataclass(frozen=True)
class Answer:
    """A complete response."""

    status: int
    headers: Any
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def document(self, status: int = 200) -> Any:
        """The JSON of a response that must have this status."""
        if self.status != status:
            raise UnexpectedStatus(self.status, self.body)
        return self.json()


class ConnectorApi:
    """A connector in the API."""

    def __init__(self, api: Api, record: dict[str, Any]) -> None:
        self.api = api
        self.record = record
        self.path = f"/api/v1/integrations/connectors/{record['id']}"

    def through(self, api: Api) -> "ConnectorApi":
        """The same connector for another caller."""
        return ConnectorApi(api, self.record)

    async def send(
        self, entity: str, action: str, params: Any = None, headers: Mapping[str, str] | None = None, **members: Any
    ) -> Answer:
        body = {"entity": entity, "action": action, **members}
        if params is not None:
            body["params"] = params
        return await self.api.post(f"{self.path}/execute", body, headers=headers or {})

    async def execute(self, entity: str, action: str, params: Any = None, **members: Any) -> dict[str, Any]:
        """The document of a call, which must succeed."""
        return (await self.send(entity, action, params, **members)).document()

    async def submit(
        self, entity: str, action: str, params: Any = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """The job of a call."""
        return (await self.send(entity, action, params, {**ASYNC, **(headers or {})})).document(202)["job"]
