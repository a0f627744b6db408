"""Files of a gateway: streams them, and is a source for `gateway.foundation.saving`."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from gateway.client.session import ApiRequest, Session, connection_lost
from gateway.errors import GatewayError, Unavailable
from gateway.foundation.saving.save import IncomingPart, file_name_of

#: bytes written to the disk at a time
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Resource:
    """The path and query of a file at the gateway."""

    path: str
    query: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResourceSource:
    """A file of a gateway, as a source for `save`."""

    session: Session
    resource: Resource

    @property
    def label(self) -> str:
        return str(self.resource)

    @property
    def interruptions(self) -> tuple[type[GatewayError], ...]:
        return (Unavailable,)

    async def name(self) -> str | None:
        try:
            async with await self.session.open(_call(self.resource, method="HEAD")) as response:
                return file_name_of(response.headers)
        except GatewayError:
            pass  # a response to HEAD has no body with the error
        async with await self.session.open(_call(self.resource)) as response:
            return file_name_of(response.headers)

    @asynccontextmanager
    async def open(self, headers: Mapping[str, str]) -> AsyncIterator[IncomingPart]:
        async with await self.session.open(_call(self.resource, headers)) as response:
            yield IncomingPart.of(response.status, response.headers, _bytes(response))

    def pause(self, breaks: int) -> float:
        return self.session.policy.growing_pause(breaks)


async def chunks(session: Session, resource: Resource) -> AsyncGenerator[bytes, None]:
    """The file's bytes as they arrive; raises Unavailable if the connection breaks."""
    async with await session.open(_call(resource)) as response:
        async for chunk in _bytes(response):
            yield chunk


def _call(resource: Resource, headers: Mapping[str, str] | None = None, method: str = "GET") -> ApiRequest:
    all_headers = {"Accept": "*/*", "Accept-Encoding": "identity", **(headers or {})}
    return ApiRequest(method=method, path=resource.path, query=resource.query, headers=all_headers)


async def _bytes(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in response.content.iter_chunked(_CHUNK):
            yield chunk
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise connection_lost(error) from error
