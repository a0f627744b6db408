"""Schedules: create, list, read, change, delete, and run now."""

from typing import Any, ClassVar
from uuid import UUID

from aiohttp import web
from pydantic import Field

from gateway.access.identity.model import Scope
from gateway.contract.exports import OutputView
from gateway.contract.jobs import AcceptedJobView
from gateway.contract.members import ID
from gateway.contract.schedules import CatchUp, Overlap, ScheduleDefinition, SchedulePage, ScheduleView
from gateway.web.api.execute import MAX_FIELDS, OutputBody
from gateway.web.api.jobs import Labels, Text, accepted_response
from gateway.web.bodies import Body, Name, QueryString, json_response, path_id, read_body, read_query
from gateway.web.keys import CALLER, REQUEST_ID, SERVICES
from gateway.web.route import ACCEPTED_HEADERS, Route

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
    entity: str = Field(max_length=100, description="the entity, such as tickets")
    action: str = Field(max_length=100, description="the action, such as list")
    params: dict[str, Any] = Field(default_factory=dict, description="the operation's params")
    select_fields: list[Text] | None = Field(None, max_length=MAX_FIELDS, description="dotted paths to keep")
    exclude_fields: list[Text] | None = Field(None, max_length=MAX_FIELDS, description="dotted paths to leave out")
    output: OutputBody | None = Field(None, description=_OUTPUT)
    cron: str = Field(max_length=200, description=_CRON)
    timezone: str = Field("UTC", max_length=100, description=_TIMEZONE)
    enabled: bool = Field(True, description="whether its slots are run")
    overlap: Overlap = Field(Overlap.SKIP, description=_OVERLAP, strict=False)
    catch_up: CatchUp = Field(CatchUp.ONE, description=_CATCH_UP, strict=False)
    labels: Labels = Field(default_factory=dict, description=_LABELS)


class ChangeSchedule(Body):
    """Changes of a schedule; members that are left out do not change."""

    EXAMPLES: ClassVar = {"disable": {"enabled": False}, "time": {"cron": "0 7 * * 1-5"}}

    name: Name | None = Field(None, description="display name")
    connector_id: UUID | None = Field(None, description="another connector", strict=False)
    entity: str | None = Field(None, max_length=100, description="the entity")
    action: str | None = Field(None, max_length=100, description="the action")
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
    labels: Labels | None = Field(None, description=_LABELS)


class ScheduleQuery(QueryString):
    """The filter and page of schedules."""

    EXAMPLE: ClassVar = {"limit": 20}

    connector_id: UUID | None = Field(None, description="only those of this connector")
    limit: int = Field(100, ge=1, le=1000, description="maximum schedules of a page")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


#: members of a body that may be set to null; for the others null means no change
_NULLABLE = ("select_fields", "exclude_fields", "output")


def definition_in(body: CreateSchedule | ChangeSchedule) -> dict[str, Any]:
    """The members of the definition that are in the body."""
    members = {name: getattr(body, name) for name in body.model_fields_set}
    if body.output is not None:
        members["output"] = OutputView(body.output.file)
    return {name: value for name, value in members.items() if value is not None or name in _NULLABLE}


async def create_schedule(request: web.Request) -> web.Response:
    """Creates a schedule. Entity, action and params are checked like those of a call. Each run is a job with the label
    `schedule_id`.
    """
    body = await read_body(request, CreateSchedule)
    schedule = await request.app[SERVICES].operations.schedules.create(
        request[CALLER], ScheduleDefinition(**definition_in(body))
    )
    return json_response(schedule, 201, {"Location": f"/api/v1/schedules/{schedule.id}"})


async def list_schedules(request: web.Request) -> SchedulePage:
    """The schedules of the organization, the oldest first."""
    query = read_query(request, ScheduleQuery)
    return await request.app[SERVICES].operations.schedules.find(
        request[CALLER], query.cursor, query.limit, query.connector_id
    )


async def get_schedule(request: web.Request) -> ScheduleView:
    """The schedule with its next slots and the jobs of its last runs."""
    return await request.app[SERVICES].operations.schedules.get(request[CALLER], path_id(request, "schedule_id"))


async def change_schedule(request: web.Request) -> ScheduleView:
    """Changes members of a schedule. From then on it runs as the client that changed it."""
    body, schedule_id = await read_body(request, ChangeSchedule), path_id(request, "schedule_id")
    return await request.app[SERVICES].operations.schedules.change(request[CALLER], schedule_id, definition_in(body))


async def delete_schedule(request: web.Request) -> web.Response:
    """Deletes a schedule. A run that has begun continues."""
    await request.app[SERVICES].operations.schedules.delete(request[CALLER], path_id(request, "schedule_id"))
    return web.Response(status=204)


async def run_schedule(request: web.Request) -> web.Response:
    """Runs the schedule's operation now, whether or not the schedule is enabled or a run is in progress."""
    schedules, schedule_id = request.app[SERVICES].operations.schedules, path_id(request, "schedule_id")
    return accepted_response(request, await schedules.run(request[CALLER], schedule_id, request[REQUEST_ID]))


_SCHEDULES = "/api/v1/schedules"
_SCHEDULE = _SCHEDULES + "/{schedule_id}"

#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        _SCHEDULES,
        create_schedule,
        "Run an operation at the times of a cron expression",
        "Schedules",
        body=CreateSchedule,
        response=ScheduleView,
        answers={201: "The schedule"},
        sends={201: ("Location",)},
        errors=(404, 409),
        scope=Scope.WRITE,
        audit="schedule.create",
        command='gateway schedules create Mornings "30 6 * * 1-5" support-desk tickets list',
        python='print(await gateway.schedules.create("Mornings", "30 6 * * 1-5", "support-desk", "tickets", "list"))',
    ),
    Route(
        "GET",
        _SCHEDULES,
        list_schedules,
        "List schedules, the oldest first",
        "Schedules",
        query=ScheduleQuery,
        response=SchedulePage,
        scope=Scope.READ,
        command="gateway schedules list",
        python="async for schedule in gateway.schedules.list():\n    print(schedule.name, schedule.next_runs)",
    ),
    Route(
        "GET",
        _SCHEDULE,
        get_schedule,
        "Get a schedule",
        "Schedules",
        response=ScheduleView,
        scope=Scope.READ,
        command="gateway schedules show $SCHEDULE",
        python="print(await gateway.schedules.get(schedule_id))",
    ),
    Route(
        "PATCH",
        _SCHEDULE,
        change_schedule,
        "Change a schedule",
        "Schedules",
        body=ChangeSchedule,
        response=ScheduleView,
        scope=Scope.WRITE,
        audit="schedule.update",
        command="gateway schedules update $SCHEDULE --disable",
        python="print(await gateway.schedules.update(schedule_id, enabled=False))",
    ),
    Route(
        "DELETE",
        _SCHEDULE,
        delete_schedule,
        "Delete a schedule",
        "Schedules",
        answers={204: "The schedule is deleted"},
        scope=Scope.WRITE,
        audit="schedule.delete",
        command="gateway schedules delete $SCHEDULE",
        python="await gateway.schedules.delete(schedule_id)",
    ),
    Route(
        "POST",
        f"{_SCHEDULE}/run",
        run_schedule,
        "Run a schedule's operation now",
        "Schedules",
        response=AcceptedJobView,
        answers={202: "The job of the run"},
        sends={202: ACCEPTED_HEADERS},
        scope=Scope.WRITE,
        audit="schedule.run",
        command="gateway schedules run $SCHEDULE",
        python="job = await gateway.schedules.run(schedule_id)\nawait job.wait()",
    ),
)
