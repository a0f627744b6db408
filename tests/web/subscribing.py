"""A host of agents that subscribes a receiver to events of the gateway."""

import base64
import os
from typing import Any

from aiohttp import web

from tests.agents.mcp.conftest import Raw
from tests.events.receiver import Receiver

CREATED = "connector.created"


def new_secret() -> str:
    return f"whsec_{base64.b64encode(os.urandom(32)).decode()}"


def willing(event: dict[str, Any]) -> int | web.Response:
    """A receiver that returns the challenge and accepts everything else."""
    return web.json_response({"challenge": event["challenge"]}) if event.get("type") == "verification" else 204


class Host:
    """An agent's host with one receiver."""

    def __init__(self, mcp: Raw, receiver: Receiver, path: str) -> None:
        self.mcp, self.receiver, self.path = mcp, receiver, path
        self.secret = new_secret()
        receiver.secrets[path] = self.secret
        receiver.answers[path] = willing

    async def subscribe(self, name: str = CREATED, secret: str | None = None, **params: Any) -> Any:
        delivery = {"mode": "webhook", "url": self.receiver.url + self.path, "secret": secret or self.secret}
        return await self.mcp("events/subscribe", {"name": name, "delivery": delivery, **params})

    async def unsubscribe(self, name: str = CREATED, **params: Any) -> Any:
        delivery = {"url": self.receiver.url + self.path}
        return await self.mcp("events/unsubscribe", {"name": name, "delivery": delivery, **params})

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.receiver.received[self.path]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [each for each in self.messages if "eventId" in each]

    def of_type(self, type_: str) -> list[dict[str, Any]]:
        return [each for each in self.messages if each.get("type") == type_]
