"""The form of a schedule: the operation with its params, when it runs, and its next times."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from aiohttp import web

from gateway.access.identity.model import id_of
from gateway.contract.exports import FileFormat
from gateway.contract.schedules import CatchUp, Overlap, ScheduleDefinition, ScheduleView
from gateway.errors import Conflict, DeniedByPolicy, GatewayError, IdempotencyMismatch, InvalidParams, NotFound
from gateway.kinds.find.entries import OperationEntry
from gateway.web.api.schedules import ChangeSchedule, CreateSchedule, definition_in
from gateway.web.bodies import path_id, validated
from gateway.web.console.operation_choice import Choice, choice_of
from gateway.web.console.page import console_page, see_other
from gateway.web.console.rights import lines_in
from gateway.web.console.schema_form import fields_of, params_of
from gateway.web.console.session import read_console_form
from gateway.web.keys import AUDIT, CALLER, SERVICES

_PAGE = "/console/schedules"
#: times that are shown before a schedule is stored
_TIMES = 5
#: errors that are shown at the form
REFUSED = (InvalidParams, Conflict, NotFound, DeniedByPolicy)
#: cron expression → its words in the choice of intervals
_INTERVALS = {
    "*/5 * * * *": "every 5 minutes",
    "*/15 * * * *": "every 15 minutes",
    "@hourly": "every hour",
    "0 */6 * * *": "every 6 hours",
    "@daily": "every day at 00:00",
    "30 6 * * 1-5": "Monday to Friday at 06:30",
    "@weekly": "every Sunday at 00:00",
    "@monthly": "on the first of each month at 00:00",
}


async def show_new(request: web.Request) -> web.Response:
    """GET /console/schedules/new: the choice of an operation, and the form for the chosen one."""
    return await _shown(request, await choice_of(request, request.query), request.query)


async def create_schedule(request: web.Request) -> web.Response:
    """POST /console/schedules/new: store the schedule, and redirect to its page; or show its next times."""
    fields = await read_console_form(request)
    choice = await choice_of(request, fields)
    if choice.connector is None or choice.entry is None:
        return await _shown(request, choice, fields, problem=InvalidParams("choose a connector and an operation"))
    if fields.get("do") == "times":
        return await _with_times(request, choice, fields)
    try:
        operation = {"entity": choice.entry.entity_id, "action": choice.entry.action_id}
        members = {**operation, "connector_id": choice.connector.id, **_members_in(choice.entry, fields)}
        definition = ScheduleDefinition(**definition_in(validated(CreateSchedule, _as_sent(members))))
        schedules, key = request.app[SERVICES].operations.schedules, id_of(fields.get("key"))
        schedule = await schedules.create(request[CALLER], definition, idempotency_key=key)
    except IdempotencyMismatch:
        used = Conflict("this form has already created another schedule; press Create again to create this one too")
        return await _shown(request, choice, fields, problem=used)
    except REFUSED as error:
        return await _shown(request, choice, fields, problem=error)
    return see_other(f"{_PAGE}/{schedule.id}")


async def show_change(request: web.Request) -> web.Response:
    """GET /console/schedules/{schedule_id}/change: the form of the schedule."""
    schedule, choice = await _schedule(request)
    return await _shown(request, choice, _fields_of(schedule), schedule=schedule, params=schedule.params)


async def change_schedule(request: web.Request) -> web.Response:
    """POST /console/schedules/{schedule_id}/change: change it, and redirect to its page; or show its next times."""
    fields = await read_console_form(request)
    schedule, choice = await _schedule(request)
    if fields.get("do") == "times":
        return await _with_times(request, choice, fields, schedule)
    try:
        body = validated(ChangeSchedule, _as_sent(_members_in(choice.entry, fields)))
        schedules = request.app[SERVICES].operations.schedules
        await schedules.change(request[CALLER], path_id(request, "schedule_id"), definition_in(body))
    except REFUSED as error:
        return await _shown(request, choice, fields, schedule=schedule, problem=error)
    return see_other(f"{_PAGE}/{schedule.id}")


async def _schedule(request: web.Request) -> tuple[ScheduleView, Choice]:
    """The schedule with its operation, which the form does not change; the operation is None if it is not served."""
    schedule = await request.app[SERVICES].operations.schedules.get(request[CALLER], path_id(request, "schedule_id"))
    choice = await choice_of(request, {"connector": schedule.connector_id})
    if choice.connector is None or schedule.action not in choice.operations.get(schedule.entity, ()):
        return schedule, choice
    kind = request.app[SERVICES].catalog.kind(choice.connector.kind)
    return schedule, replace(choice, entry=OperationEntry(kind, schedule.entity, schedule.action))


def _members_in(entry: OperationEntry | None, fields: Mapping[str, str]) -> dict[str, Any]:
    """The members of the body that the API takes, from the fields of the form; raises InvalidParams."""
    file = fields.get("output") or None
    return {
        "name": fields.get("name", "").strip(),
        "cron": _cron_in(fields),
        "timezone": fields.get("timezone", "").strip(),
        "overlap": fields.get("overlap", ""),
        "catch_up": fields.get("catch_up", ""),
        "output": None if file is None else {"file": file},
        "select_fields": lines_in(fields, "select_fields") or None,
        **({} if entry is None else {"params": params_of(entry.schema, fields)}),
    }


def _as_sent(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members as a body of the API has them, with ids as UUIDs."""
    return {name: id_of(value) or value if name == "connector_id" else value for name, value in members.items()}


def _cron_in(fields: Mapping[str, str]) -> str:
    """The chosen interval, or else the typed expression."""
    return fields.get("every") or fields.get("cron", "").strip()


async def _with_times(
    request: web.Request, choice: Choice, fields: Mapping[str, str], schedule: ScheduleView | None = None
) -> web.Response:
    """The form with the next times; nothing is stored."""
    request[AUDIT].what = None
    try:
        schedules = request.app[SERVICES].operations.schedules
        times = schedules.next_times(_cron_in(fields), fields.get("timezone", "").strip(), _TIMES)
    except InvalidParams as error:
        return await _shown(request, choice, fields, schedule=schedule, problem=error)
    return await _shown(request, choice, fields, schedule=schedule, times=times)


def _fields_of(schedule: ScheduleView) -> Mapping[str, str]:
    """The fields of a form that has this schedule, as a browser would send them; without its params."""
    return {
        "name": schedule.name,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "overlap": schedule.overlap.value,
        "catch_up": schedule.catch_up.value,
        "output": "" if schedule.output is None else schedule.output.file.value,
        "select_fields": "\n".join(schedule.select_fields or ()),
    }


async def _shown(
    request: web.Request,
    choice: Choice,
    fields: Mapping[str, str],
    *,
    schedule: ScheduleView | None = None,
    params: Mapping[str, Any] | None = None,
    times: Sequence[datetime] = (),
    problem: GatewayError | None = None,
) -> web.Response:
    entry = choice.entry
    given = params if params is not None else (entry.example if entry else {})
    typed = fields if request.method == "POST" else None
    return console_page(
        request,
        "schedule_form.html",
        active="schedules",
        status=422 if problem else 200,
        choice=choice,
        schedule=schedule,
        fields=fields,
        schema_of_params=[]
        if entry is None
        else fields_of(entry.schema, given, problem.faults if problem else (), typed),
        intervals=_INTERVALS,
        overlaps=[each.value for each in Overlap],
        catch_ups=[each.value for each in CatchUp],
        formats=[each.value for each in FileFormat],
        times=times,
        problem=problem,
    )
