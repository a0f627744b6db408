"""A file of an application, as a source for `gateway.foundation.saving`."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from gateway.errors import GatewayError, Unavailable, UpstreamTruncated
from gateway.foundation.saving.save import IncomingPart, file_name_of
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.http_ranges.integrity import File
from gateway.upstream.http_ranges.ranges import RangeRequest
from gateway.upstream.prepared import prepare

#: seconds; the pause doubles with each consecutive break, to at most `_LONGEST_PAUSE`
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 30.0


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file of an application, requested by this process."""

    connector: UpstreamConnector
    entity: str
    params: Mapping[str, Any]

    @property
    def label(self) -> str:
        names = ", ".join(f"{name}={value}" for name, value in sorted(self.params.items()))
        return f"{self.connector.kind.name} {self.connector.session.environment} {self.entity} {names}"

    @property
    def interruptions(self) -> tuple[type[GatewayError], ...]:
        return (Unavailable, UpstreamTruncated)

    async def name(self) -> str | None:
        async with self._open({}) as file:
            return file_name_of(file.headers)

    @asynccontextmanager
    async def open(self, headers: Mapping[str, str]) -> AsyncIterator[IncomingPart]:
        async with self._open(headers) as file:
            yield IncomingPart.of(file.status, file.headers, aiter(file))

    def pause(self, breaks: int) -> float:
        return min(_FIRST_PAUSE * 2.0**breaks, _LONGEST_PAUSE)

    @asynccontextmanager
    async def _open(self, headers: Mapping[str, str]) -> AsyncIterator[File]:
        call = prepare(self.connector.kind.operation(self.entity, "download"), self.params)
        async with self.connector.open_file(call, RangeRequest.of(headers)) as file:
            yield file
