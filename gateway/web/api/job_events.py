"""The events of a job as Server-Sent Events (WHATWG HTML §9.2), which continue after an outage of PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import msgspec
from aiohttp import web

from gateway.access.identity.model import Scope
from gateway.errors import NotFound, Unauthorized, Unavailable
from gateway.jobs.model import JobSummary
from gateway.web.api.jobs import job_view
from gateway.web.bodies import path_id
from gateway.web.keys import CALLER, SERVICES
from gateway.web.route import Route
from gateway.web.server_sent_events import KEEP_ALIVE, ServerSentEvent, last_event_id, stream_events

#: seconds between attempts to read the job while PostgreSQL is unavailable
_RETRY_INTERVAL = 0.5
#: the data of the first event of every job
_ACCEPTED = '{"status":"queued","progress":0,"total":null,"message":null,"attempt":0,"cancel_requested":false}'


async def job_events(request: web.Request) -> web.StreamResponse:
    """The events of a job as Server-Sent Events: `progress`, `status`, and at the end `done`. With `Last-Event-ID` the
    stream continues after that event, without gap or repeat; 204 when there are no more events.
    """
    services, job_id = request.app[SERVICES], path_id(request, "job_id")
    job = await services.jobs.access.get(request[CALLER], job_id)
    last_event = last_event_id(request) or 0
    if job.is_done and last_event >= job.version:
        # 204 keeps an EventSource from connecting again (WHATWG HTML §9.2.3).
        return web.Response(status=204)
    return await stream_events(request, _events(request, job, last_event))


async def _events(request: web.Request, job: JobSummary, last_event: int) -> AsyncGenerator[ServerSentEvent, None]:
    """The events after `last_event` until the job is done, the process stops, or the caller may not see it any more."""
    services = request.app[SERVICES]
    waiters = services.jobs.waiters
    while True:
        try:
            async for event in _events_after(request, job, last_event):
                yield event
                last_event = event.id
            if job.is_done or waiters.is_shutting_down:
                return
            job = await services.jobs.access.changed(request[CALLER], job.id, job.version, KEEP_ALIVE)
        except (NotFound, Unauthorized):
            return
        except Unavailable:
            if waiters.is_shutting_down:
                return
            await asyncio.sleep(_RETRY_INTERVAL)


async def _events_after(request: web.Request, job: JobSummary, last_event: int) -> AsyncIterator[ServerSentEvent]:
    """The events after `last_event`, up to this state of the job: acceptance first, `done` last."""
    if last_event < 1:
        yield ServerSentEvent(1, "status", _ACCEPTED)
        last_event = 1
    while page := await request.app[SERVICES].jobs.access.events(job, last_event):
        for change in page:
            yield ServerSentEvent(change.number, change.event, change.data)
        last_event = page[-1].number
    if job.is_done:
        yield ServerSentEvent(job.version, "done", msgspec.json.encode(job_view(request, job)).decode())


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/jobs/{job_id}/events",
        job_events,
        "Follow a job by Server-Sent Events",
        "Jobs",
        answers={200: "A stream of progress, status and done events", 204: "There are no more events"},
        media={200: ("text/event-stream",)},
        reads=("Last-Event-ID",),
        sends={200: ("Cache-Control", "X-Accel-Buffering")},
        scope=Scope.READ,
        command="gateway jobs watch $JOB",
        python="job = await gateway.jobs.get(job_id)\nasync for event in job.events():\n    print(event)",
        in_session=True,
    ),
)
