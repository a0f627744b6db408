"""A caller that speaks plain HTTP to a gateway, and holds each answer to the OpenAPI document."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from tests.harness import contract

CREDENTIALS = {"email": "agent@example.com", "api_token": "token", "subdomain": "acme"}


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
