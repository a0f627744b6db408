"""The events of a job as Server-Sent Events (WHATWG HTML §9.2), which outlive an absence of PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import msgspec
from aiohttp import web

from gateway.aio.idle import with_idle_marks
from gateway.errors import MalformedRequest, NotFound, Unavailable
from gateway.http.api.jobs import job_view
from gateway.http.bodies import path_id, whole_number
from gateway.http.keys import CALLER, SERVICES
from gateway.jobs.model import JobSummary
from gateway.jobs.store import JobChange

#: seconds without an event after which a comment line shows that the stream is alive
_KEEP_ALIVE = 15.0
#: seconds between two attempts to read the job while PostgreSQL is away
_RETRY_INTERVAL = 0.5
#: the data of the first event of every job
_ACCEPTED = '{"status":"queued","progress":0,"total":null,"message":null,"attempt":0,"cancel_requested":false}'
_COMMENT = b": alive\n\n"
_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def job_events(request: web.Request) -> web.StreamResponse:
    """The events of a job as Server-Sent Events: `progress`, `status`, and at the end `done`. With `Last-Event-ID` the
    stream continues after that event, without gap or repeat; 204 when there are no more events.
    """
    services, job_id = request.app[SERVICES], path_id(request, "job_id")
    job = await services.jobs.get(request[CALLER].organization_id, job_id)
    last_event = _last_event(request)
    if job.is_done and last_event >= job.version:
        # 204 keeps an EventSource from connecting again (WHATWG HTML §9.2.3).
        return web.Response(status=204)
    response = web.StreamResponse(headers=_HEADERS)
    await response.prepare(request)
    await response.write(b"retry: 1000\n\n")
    async with aclosing(with_idle_marks(_events(request, job, last_event), _KEEP_ALIVE)) as events:
        async for event in events:
            await response.write(_COMMENT if event is None else _encoded(event))
    await response.write_eof()
    return response


async def _events(request: web.Request, job: JobSummary, last_event: int) -> AsyncGenerator[JobChange, None]:
    """The events after `last_event` until the job is done, its organization is disabled, or the process stops."""
    waiters = request.app[SERVICES].job_waiters
    while True:
        try:
            async for event in _events_after(request, job, last_event):
                yield event
                last_event = event.number
            if job.is_done or waiters.shutting_down:
                return
            job = await waiters.changed(job.organization_id, job.id, job.version, _KEEP_ALIVE)
        except NotFound:
            return
        except Unavailable:
            if waiters.shutting_down:
                return
            await asyncio.sleep(_RETRY_INTERVAL)


async def _events_after(request: web.Request, job: JobSummary, last_event: int) -> AsyncIterator[JobChange]:
    """The events after `last_event`, up to this state of the job: acceptance first, `done` last."""
    if last_event < 1:
        yield JobChange(1, "status", _ACCEPTED)
        last_event = 1
    while page := await request.app[SERVICES].jobs.events(job, last_event):
        for event in page:
            yield event
        last_event = page[-1].number
    if job.is_done:
        yield JobChange(job.version, "done", msgspec.json.encode(job_view(request, job)).decode())


def _encoded(event: JobChange) -> bytes:
    return f"id: {event.number}\nevent: {event.event}\ndata: {event.data}\n\n".encode()


def _last_event(request: web.Request) -> int:
    number = whole_number(request.headers.get("Last-Event-ID", "0").strip())
    if number is None:
        raise MalformedRequest("Last-Event-ID is the id of an event of this stream")
    return number
