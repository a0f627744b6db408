"""A client in a storm: repeats each call, with the same key and at any front end, until the gateway answers."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp

from tests.faults.arena import Arena
from tests.harness.caller import Answer, Api, UnexpectedStatus
from tests.harness.clients import NewClient

#: seconds after which a request is repeated, and in which every job ends
_REQUEST_TIMEOUT, _PATIENCE = 20.0, 300.0
_TRANSIENT = (aiohttp.ClientError, UnexpectedStatus, TimeoutError)

T = TypeVar("T")


@dataclass(frozen=True)
class InsistentClient:
    """Calls for a client of the arena."""

    gateway: Arena
    random: random.Random
    #: None for the arena's own
    client: NewClient | None = None
    #: callers at the front ends that many calls share; without them each call gets an own token and connection
    shared: Sequence[Api] = ()

    @asynccontextmanager
    async def api(self) -> AsyncIterator[Api]:
        """A caller at one of the front ends."""
        if self.shared:
            yield self.random.choice(self.shared)
        else:
            async with self.gateway.api(self.random.choice(self.gateway.front_ends), self.client) as api:
                yield api

    async def insist(
        self, call: Callable[[Api], Awaitable[T]], patience: float = _PATIENCE, timeout: float = _REQUEST_TIMEOUT
    ) -> T:
        """The result of the first call that succeeds within `timeout` seconds; raises TimeoutError."""
        deadline = time.monotonic() + patience
        while True:
            try:
                async with asyncio.timeout(timeout), self.api() as api:
                    return await call(api)
            except _TRANSIENT as error:
                if time.monotonic() > deadline:
                    raise TimeoutError from error
                await asyncio.sleep(0.2)

    async def submit(self, path: str, body: Any, key: str) -> str:
        """Submit the body; returns the id of its job. A repeated submission has the same key."""

        async def submitted(api: Api) -> str:
            answer = await api.post(path, body, headers={"Idempotency-Key": key, "Prefer": "respond-async"})
            if answer.status not in (200, 202):
                raise UnexpectedStatus(answer.status, answer.body)
            return str(answer.headers["Location"]).rsplit("/", 1)[-1]

        return await self.insist(submitted)

    async def ended(self, job_id: str) -> dict[str, Any] | None:
        """The job in its final state; None if it does not end in time."""

        async def ended(api: Api) -> dict[str, Any]:
            job: dict[str, Any] = (await api.get(f"/api/v1/jobs/{job_id}?wait=10")).document()
            if not job["done"]:
                raise UnexpectedStatus(200, job["status"])
            return job

        try:
            return await self.insist(ended)
        except TimeoutError:
            return None

    async def result(self, job_id: str, **headers: str) -> Answer:
        """The job's result."""

        async def read(api: Api) -> Answer:
            answer = await api.get(f"/api/v1/jobs/{job_id}/result", headers=headers)
            if answer.status >= 500:
                raise UnexpectedStatus(answer.status, answer.body)
            return answer

        return await self.insist(read)
