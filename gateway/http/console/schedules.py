"""Schedules in the console: their next slots and last runs; enabled, run and deleted."""

import contextlib
import json

import msgspec
from aiohttp import web

from gateway.contract.jobs import JobView
from gateway.errors import NotFound
from gateway.http.api.jobs import job_view
from gateway.http.api.schedules import schedule_view
from gateway.http.bodies import path_id
from gateway.http.console.page import console_page, see_other
from gateway.http.console.session import read_console_form
from gateway.http.keys import CALLER, REQUEST_ID, SERVICES
from gateway.http.responses import cursor_of, read_time_cursor
from gateway.schedules.model import Schedule

_PAGE, _LIMIT = "/console/schedules", 50


async def list_schedules(request: web.Request) -> web.Response:
    """GET /console/schedules."""
    after = read_time_cursor(request.query.get("cursor"))
    schedules = await request.app[SERVICES].schedules.find(request[CALLER], after, _LIMIT + 1)
    page = schedules[:_LIMIT]
    return console_page(
        request,
        "schedules.html",
        active="schedules",
        schedules=[schedule_view(schedule) for schedule in page],
        cursor=cursor_of((page[-1].created_at, page[-1].id)) if len(schedules) > len(page) else None,
    )


async def show_schedule(request: web.Request) -> web.Response:
    """GET /console/schedules/{schedule_id}."""
    schedule = await request.app[SERVICES].schedules.get(request[CALLER], path_id(request, "schedule_id"))
    view = schedule_view(schedule)
    return console_page(
        request,
        "schedule.html",
        active="schedules",
        schedule=view,
        params=json.dumps(msgspec.to_builtins(view.params), indent=2, ensure_ascii=False),
        runs=await _runs(request, schedule),
    )


async def enable_schedule(request: web.Request) -> web.Response:
    """POST /console/schedules/{schedule_id}: its slots are run, or not."""
    fields, schedule_id = await read_console_form(request), path_id(request, "schedule_id")
    change = {"is_enabled": fields.get("enabled") == "yes"}
    await request.app[SERVICES].schedules.change(request[CALLER], schedule_id, change, {})
    return see_other(f"{_PAGE}/{schedule_id}")


async def run_schedule(request: web.Request) -> web.Response:
    """POST /console/schedules/{schedule_id}/run: on to the job."""
    await read_console_form(request)
    schedules, schedule_id = request.app[SERVICES].schedules, path_id(request, "schedule_id")
    job = await schedules.run(request[CALLER], schedule_id, request[REQUEST_ID])
    return see_other(f"/console/jobs/{job.id}")


async def delete_schedule(request: web.Request) -> web.Response:
    """POST /console/schedules/{schedule_id}/delete."""
    await read_console_form(request)
    await request.app[SERVICES].schedules.delete(request[CALLER], path_id(request, "schedule_id"))
    return see_other(_PAGE)


async def _runs(request: web.Request, schedule: Schedule) -> list[JobView]:
    """The jobs of its last runs that are kept, the newest first."""
    jobs, runs = request.app[SERVICES].jobs, []
    for job_id in schedule.job_ids:
        with contextlib.suppress(NotFound):  # pruned
            runs.append(job_view(request, await jobs.get(request[CALLER], job_id)))
    return runs
