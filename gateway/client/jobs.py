"""Jobs: list them, follow one, read its result, cancel it, or retry it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from datetime import datetime
from os import PathLike
from typing import Any, Self

import aiohttp

from gateway.client.downloads import Resource, ResourceSource
from gateway.client.paths import segment
from gateway.client.session import ApiRequest, ApiResponse, Session, connection_lost
from gateway.contract.answers import Answer
from gateway.contract.jobs import FINAL, AcceptedJobView, JobEvent, JobPage, JobStatus, JobView
from gateway.errors import GatewayError, InvalidParams, Unavailable
from gateway.foundation import payloads
from gateway.foundation.event_stream import EventStream
from gateway.foundation.saving.save import Downloaded, Progress, save

#: seconds of one long poll; below the idle timeout of common proxies
_WAIT = 25
#: consecutive broken connections without an event, after which a stream fails
_BREAKS = 5
_NDJSON = "application/x-ndjson"

Watcher = Callable[[JobView], object]


class Job:
    """One job; `view` is its state when it was last read."""

    def __init__(self, session: Session, view: JobView) -> None:
        self._session = session
        self.view: JobView = view

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.status}>"

    @property
    def id(self) -> str:
        return self.view.id

    @property
    def status(self) -> str:
        return self.view.status

    @property
    def is_done(self) -> bool:
        return self.view.done or self.view.status in FINAL

    async def refresh(self) -> Self:
        """Read the job's current state."""
        self.view = (await self._session.fetch(ApiRequest(method="GET", path=self._path()))).into(JobView)
        return self

    async def wait(self, *, on_change: Watcher | None = None) -> Self:
        """Wait until the job has ended, with any status; `on_change` gets its view at first and after each change."""
        etag = None
        while True:
            if on_change is not None and etag is not None:
                on_change(self.view)
            if self.is_done:
                return self
            etag = await self._changed(etag)

    async def _changed(self, etag: str | None) -> str:
        """Long-poll until the job has changed."""
        while True:
            query = {"wait": _WAIT} if etag else {}
            headers = {"If-None-Match": etag} if etag else {}
            reply = await self._session.fetch(
                ApiRequest(method="GET", path=self._path(), query=query, headers=headers, wait=_WAIT)
            )
            if reply.status == 200:
                self.view = reply.into(JobView)
                return reply.headers.get("ETag", '"0"')

    async def events(self, after: str = "0") -> AsyncGenerator[JobEvent, None]:
        """The job's events after the id `after`, until `done`; resumes a broken stream."""
        reader, breaks = EventStream(after), 0
        while True:
            try:
                async with aclosing(self._stream(reader)) as stream:
                    async for event in stream:
                        breaks = 0
                        yield event
                        if event.name == "done":
                            return
            except Unavailable:
                if breaks >= _BREAKS:
                    raise
            breaks += 1
            if breaks > _BREAKS:
                raise Unavailable("the job's stream of events ended before the job")
            await asyncio.sleep(self._session.policy.growing_pause(breaks))

    async def _stream(self, reader: EventStream) -> AsyncGenerator[JobEvent, None]:
        reader.restart()
        headers = {"Accept": "text/event-stream", "Last-Event-ID": reader.last_id}
        async with await self._session.open(
            ApiRequest(method="GET", path=self._path("events"), headers=headers)
        ) as response:
            try:
                async for chunk in response.content.iter_any():
                    for name, data in reader.feed(chunk):
                        yield JobEvent(name, payloads.typed(data, dict[str, Any]), reader.last_id)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise connection_lost(error) from error

    async def result(self, *, on_change: Watcher | None = None) -> Answer:
        """Wait for the job and return its result as `execute` would; raises the error of a failed job."""
        if self.view.action == "download":
            raise _is_file(self.id)
        if on_change is not None:
            await self.wait(on_change=on_change)
        with _with_job_id(self.id):
            while True:
                call = ApiRequest(method="GET", path=self._path("result"), query={"wait": _WAIT}, wait=_WAIT)
                reply = await self._session.fetch(call)
                if reply.status == 200 and not reply.headers.get("Content-Type", "").startswith("application/json"):
                    raise _is_file(self.id)
                if reply.status == 200:
                    return reply.into(Answer)
                self.view = reply.into(AcceptedJobView).job

    async def records(self) -> AsyncGenerator[Any, None]:
        """Wait for the job and yield the records of its result one by one, in constant memory."""
        await self.wait()
        with _with_job_id(self.id):
            call = ApiRequest(method="GET", path=self._path("result"), headers={"Accept": _NDJSON})
            async with await self._session.open(call) as response:
                rest = b""
                try:
                    async for chunk in response.content.iter_any():
                        *lines, rest = (rest + chunk).split(b"\n")
                        for line in lines:
                            yield payloads.typed(line, Any)
                except (aiohttp.ClientError, TimeoutError, OSError) as error:
                    raise connection_lost(error) from error

    async def download(
        self, to: str | PathLike[str], *, sha256: str | None = None, on_progress: Progress | None = None
    ) -> Downloaded:
        """Wait for the job and save its file; resumes an interrupted download."""
        await self.wait()
        with _with_job_id(self.id):
            source = ResourceSource(self._session, Resource(self._path("result")))
            return await save(source, to, sha256=sha256, on_progress=on_progress)

    async def cancel(self) -> Self:
        """Cancel the job; a request already sent to the application is allowed to finish."""
        self.view = (await self._session.fetch(ApiRequest(method="POST", path=self._path("cancel")))).into(JobView)
        return self

    async def retry(self, *, confirm: bool = False) -> "Job":
        """Run the same work as a new job; with `confirm` also a write that may have happened."""
        reply = await self._session.fetch(
            ApiRequest(method="POST", path=self._path("retry"), body={"confirm": confirm})
        )
        return accepted(self._session, reply)

    def _path(self, part: str = "") -> str:
        return f"/api/v1/jobs/{segment(self.id)}/{part}".rstrip("/")


def _is_file(job_id: str) -> InvalidParams:
    return InvalidParams("the job's result is a file; read it with `download`", extra={"job_id": job_id})


@contextmanager
def _with_job_id(job_id: str) -> Iterator[None]:
    """Add the job's id to errors of the block."""
    try:
        yield
    except GatewayError as error:
        error.extra["job_id"] = job_id
        raise


class Jobs:
    """The jobs of the organization."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def get(self, job_id: str) -> Job:
        """One job by its id; raises NotFound."""
        return await Job(self._session, JobView(id=job_id, status=JobStatus.QUEUED)).refresh()

    async def list(
        self,
        *,
        status: str | None = None,
        connector_id: str | None = None,
        entity: str | None = None,
        created_after: datetime | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Job, None]:
        """Jobs, newest first, at most `limit`; fetches page after page."""
        query = {
            "status": status,
            "connector_id": connector_id,
            "entity": entity,
            "created_after": created_after and created_after.isoformat(),
            "limit": min(limit or 100, 1000),
        }
        async for view in self._session.views("/api/v1/jobs", query, JobPage, limit):
            yield Job(self._session, view)


def accepted(session: Session, reply: ApiResponse) -> Job:
    """The job in a 202 response."""
    return Job(session, reply.into(AcceptedJobView).job)
