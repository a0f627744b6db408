"""Schedules in the console: next slots, last runs, and actions."""

import contextlib
import json
from uuid import UUID

import msgspec
from aiohttp import web

from gateway.contract.jobs import JobView
from gateway.contract.schedules import ScheduleView
from gateway.errors import NotFound
from gateway.web.api.jobs import job_view
from gateway.web.bodies import path_id
from gateway.web.console.page import connectors_by_id, console_page, see_other
from gateway.web.console.session import read_console_form, read_form_once
from gateway.web.keys import CALLER, REQUEST_ID, SERVICES

_PAGE, _LIMIT = "/console/schedules", 50


async def list_schedules(request: web.Request) -> web.Response:
    """GET /console/schedules."""
    page = await request.app[SERVICES].operations.schedules.find(request[CALLER], request.query.get("cursor"), _LIMIT)
    return console_page(
        request,
        "schedules.html",
        active="schedules",
        schedules=page.data,
        connectors=await connectors_by_id(request, (each.connector_id for each in page.data)),
        cursor=page.next_cursor,
    )


async def show_schedule(request: web.Request) -> web.Response:
    """GET /console/schedules/{schedule_id}."""
    schedule = await request.app[SERVICES].operations.schedules.get(request[CALLER], path_id(request, "schedule_id"))
    return console_page(
        request,
        "schedule.html",
        active="schedules",
        schedule=schedule,
        connector=(await connectors_by_id(request, [schedule.connector_id])).get(schedule.connector_id),
        params=json.dumps(msgspec.to_builtins(schedule.params), indent=2, ensure_ascii=False),
        runs=await _runs(request, schedule),
    )


async def enable_schedule(request: web.Request) -> web.Response:
    """POST /console/schedules/{schedule_id}: enable or disable it."""
    fields, schedule_id = await read_console_form(request), path_id(request, "schedule_id")
    change = {"enabled": fields.get("enabled") == "yes"}
    await request.app[SERVICES].operations.schedules.change(request[CALLER], schedule_id, change)
    return see_other(f"{_PAGE}/{schedule_id}")


async def run_schedule(request: web.Request) -> web.Response:
    """POST /console/schedules/{schedule_id}/run: run it now, and redirect to the job."""
    await read_form_once(request)
    schedules, schedule_id = request.app[SERVICES].operations.schedules, path_id(request, "schedule_id")
    job = await schedules.run(request[CALLER], schedule_id, request[REQUEST_ID])
    return see_other(f"/console/jobs/{job.id}")


async def delete_schedule(request: web.Request) -> web.Response:
    """POST /console/schedules/{schedule_id}/delete."""
    await read_console_form(request)
    await request.app[SERVICES].operations.schedules.delete(request[CALLER], path_id(request, "schedule_id"))
    return see_other(_PAGE)


async def _runs(request: web.Request, schedule: ScheduleView) -> list[JobView]:
    """The jobs of its last runs that are still stored, the newest first."""
    jobs, runs = request.app[SERVICES].jobs.access, []
    for job_id in schedule.job_ids:
        with contextlib.suppress(NotFound):  # pruned
            runs.append(job_view(request, await jobs.get(request[CALLER], UUID(job_id))))
    return runs
