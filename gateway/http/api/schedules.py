"""Schedules: create, list, read, change, delete, and run now."""

from typing import Any, ClassVar
from uuid import UUID

from aiohttp import web
from pydantic import Field

from gateway.contract.exports import OutputView
from gateway.contract.members import ID
from gateway.contract.schedules import CatchUp, MissedSlotView, Overlap, SchedulePage, ScheduleView
from gateway.http.api.execute import MAX_FIELDS, OutputBody
from gateway.http.api.jobs import Text, accepted_response
from gateway.http.bodies import Body, Name, QueryString, path_id, read_body, read_query
from gateway.http.keys import CALLER, REQUEST_ID, SERVICES
from gateway.http.responses import cursor_of, json_response, read_time_cursor
from gateway.schedules.model import Definition, Schedule
from gateway.upstream.field_selection import FieldSelection

_NEXT_RUNS = 3
_CRON = "when it runs: minute hour day-of-month month day-of-week, or a shorthand such as @daily"
_TIMEZONE = "the time zone of `cron`, a name of the IANA database"
_OUTPUT = "of a list or search: each run collects all pages into a file, which is its result"
_OVERLAP = (
    "what happens to a slot that comes before the previous run has ended: skip it, or queue it until the run has ended"
)
_CATCH_UP = "what happens to slots that came while no worker ran: one run for all of them, or none"
_LABELS = "labels of each run, beside `schedule_id` and `scheduled_for`"


class CreateSchedule(Body):
    """A new schedule."""

    EXAMPLES: ClassVar = {
        "mornings": {
            "name": "Open tickets, every morning",
            "connector_id": ID,
            "entity": "tickets",
            "action": "list",
            "params": {"per_page": 100},
            "cron": "30 6 * * 1-5",
            "timezone": "Europe/Berlin",
        }
    }

    name: Name = Field(description="display name")
    connector_id: UUID = Field(description="the connector", strict=False)
    entity: str = Field(max_length=100, description="what the operation is of, such as tickets")
    action: str = Field(max_length=100, description="what to do, such as list")
    params: dict[str, Any] = Field(default_factory=dict, description="the operation's params")
    select_fields: list[Text] | None = Field(None, max_length=MAX_FIELDS, description="dotted paths to keep")
    exclude_fields: list[Text] | None = Field(None, max_length=MAX_FIELDS, description="dotted paths to leave out")
    output: OutputBody | None = Field(None, description=_OUTPUT)
    cron: str = Field(max_length=200, description=_CRON)
    timezone: str = Field("UTC", max_length=100, description=_TIMEZONE)
    enabled: bool = Field(True, description="whether its slots are run")
    overlap: Overlap = Field(Overlap.SKIP, description=_OVERLAP, strict=False)
    catch_up: CatchUp = Field(CatchUp.ONE, description=_CATCH_UP, strict=False)
    labels: dict[Text, Text] = Field(default_factory=dict, max_length=50, description=_LABELS)


class ChangeSchedule(Body):
    """What to change of a schedule; members that are left out stay as they are."""

    EXAMPLES: ClassVar = {"disable": {"enabled": False}, "time": {"cron": "0 7 * * 1-5"}}

    name: Name | None = Field(None, description="display name")
    connector_id: UUID | None = Field(None, description="another connector", strict=False)
    entity: str | None = Field(None, max_length=100, description="what the operation is of")
    action: str | None = Field(None, max_length=100, description="what to do")
    params: dict[str, Any] | None = Field(None, description="the operation's params, which replace the old ones")
    select_fields: list[Text] | None = Field(None, max_length=MAX_FIELDS, description="dotted paths to keep, or null")
    exclude_fields: list[Text] | None = Field(
        None, max_length=MAX_FIELDS, description="dotted paths to leave out, or null"
    )
    output: OutputBody | None = Field(None, description=f"{_OUTPUT}; null for none")
    cron: str | None = Field(None, max_length=200, description=_CRON)
    timezone: str | None = Field(None, max_length=100, description=_TIMEZONE)
    enabled: bool | None = Field(None, description="whether its slots are run")
    overlap: Overlap | None = Field(None, description=_OVERLAP, strict=False)
    catch_up: CatchUp | None = Field(None, description=_CATCH_UP, strict=False)
    labels: dict[Text, Text] | None = Field(None, max_length=50, description=_LABELS)


class ScheduleQuery(QueryString):
    """Which schedules."""

    EXAMPLE: ClassVar = {"limit": 20}

    connector_id: UUID | None = Field(None, description="only those of this connector")
    limit: int = Field(100, ge=1, le=1000, description="schedules of a page")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


#: members that a schedule and its definition have as callers see them
_SAME = tuple(name for name in ScheduleView.__struct_fields__ if name in Definition.__struct_fields__)
#: member of a body → the name that `Definition` has for it
_DEFINED_AS = {"enabled": "is_enabled"}
#: members of a body that are one in its `Definition`; null is a value
_SELECTION = ("select_fields", "exclude_fields")


def schedule_view(schedule: Schedule) -> ScheduleView:
    """The schedule as callers see it."""
    definition, selection = schedule.definition, schedule.definition.selection
    missed_at, reason = schedule.missed_at, schedule.missed_reason
    members = {name: getattr(definition, name) for name in _SAME} | {
        "id": str(schedule.id),
        "connector_id": str(definition.connector_id),
        "workspace_name": schedule.workspace_name,
        "select_fields": selection.select_fields,
        "exclude_fields": selection.exclude_fields,
        "output": definition.file and OutputView(definition.file),
        "enabled": definition.is_enabled,
        "paused_reason": schedule.paused_reason,
        "next_runs": schedule.next_slots(_NEXT_RUNS),
        "last_run_at": schedule.last_run_at,
        "last_missed": None if missed_at is None or reason is None else MissedSlotView(missed_at, reason),
        "job_ids": [str(job_id) for job_id in schedule.job_ids],
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
    }
    return ScheduleView(**members)


async def create_schedule(request: web.Request) -> web.Response:
    """Creates a schedule. Its entity, action and params are checked as those of a call are. Each run is a job with the
    label `schedule_id`.
    """
    body = await read_body(request, CreateSchedule)
    definition = Definition(
        body.name,
        body.connector_id,
        body.entity,
        body.action,
        body.cron,
        body.params,
        FieldSelection(body.select_fields, body.exclude_fields),
        None if body.output is None else body.output.file,
        body.timezone,
        body.enabled,
        body.overlap,
        body.catch_up,
        body.labels,
    )
    schedule = await request.app[SERVICES].schedules.create(request[CALLER], definition)
    return json_response(schedule_view(schedule), 201, {"Location": f"/api/v1/schedules/{schedule.id}"})


async def list_schedules(request: web.Request) -> SchedulePage:
    """The schedules of the organization, the oldest first."""
    query = read_query(request, ScheduleQuery)
    after = read_time_cursor(query.cursor)
    schedules = await request.app[SERVICES].schedules.find(request[CALLER], after, query.limit + 1, query.connector_id)
    page = schedules[: query.limit]
    next_cursor = cursor_of((page[-1].created_at, page[-1].id)) if len(schedules) > len(page) else None
    return SchedulePage([schedule_view(schedule) for schedule in page], next_cursor)


async def get_schedule(request: web.Request) -> ScheduleView:
    """The schedule with its next slots and the jobs of its last runs."""
    return schedule_view(await request.app[SERVICES].schedules.get(request[CALLER], path_id(request, "schedule_id")))


async def change_schedule(request: web.Request) -> ScheduleView:
    """Changes members of a schedule. From now on it runs in the name of the client that changed it."""
    body = await read_body(request, ChangeSchedule)
    sent = {name: getattr(body, name) for name in body.model_fields_set}
    selection = {name: sent.pop(name) for name in _SELECTION if name in sent}
    output = sent.pop("output", None)
    file = {"file": output and output.file} if "output" in body.model_fields_set else {}
    change = {_DEFINED_AS.get(name, name): value for name, value in sent.items() if value is not None} | file
    schedules, schedule_id = request.app[SERVICES].schedules, path_id(request, "schedule_id")
    return schedule_view(await schedules.change(request[CALLER], schedule_id, change, selection))


async def delete_schedule(request: web.Request) -> web.Response:
    """Deletes a schedule. A run that has begun goes on."""
    await request.app[SERVICES].schedules.delete(request[CALLER], path_id(request, "schedule_id"))
    return web.Response(status=204)


async def run_schedule(request: web.Request) -> web.Response:
    """Runs the schedule's operation now, whether or not the schedule is enabled or a run is in progress."""
    schedules, schedule_id = request.app[SERVICES].schedules, path_id(request, "schedule_id")
    return accepted_response(request, await schedules.run(request[CALLER], schedule_id, request[REQUEST_ID]))
