"""Schedules."""

from gateway.access.identity.model import Scope
from gateway.contract.jobs import AcceptedJobView
from gateway.contract.schedules import SchedulePage, ScheduleView
from gateway.web.api import schedules
from gateway.web.route import ACCEPTED_HEADERS, Route

READ, WRITE = Scope.READ, Scope.WRITE
_SCHEDULES = "/api/v1/schedules"
_SCHEDULE = _SCHEDULES + "/{schedule_id}"

ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        _SCHEDULES,
        schedules.create_schedule,
        "Run an operation at the times of a cron expression",
        "Schedules",
        body=schedules.CreateSchedule,
        response=ScheduleView,
        answers={201: "The schedule"},
        sends={201: ("Location",)},
        errors=(404,),
        scope=WRITE,
        audit="schedule.create",
        command='gateway schedules create Mornings "30 6 * * 1-5" support-desk tickets list',
        python='print(await gateway.schedules.create("Mornings", "30 6 * * 1-5", "support-desk", "tickets", "list"))',
    ),
    Route(
        "GET",
        _SCHEDULES,
        schedules.list_schedules,
        "List schedules, the oldest first",
        "Schedules",
        query=schedules.ScheduleQuery,
        response=SchedulePage,
        scope=READ,
        command="gateway schedules list",
        python="async for schedule in gateway.schedules.list():\n    print(schedule.name, schedule.next_runs)",
    ),
    Route(
        "GET",
        _SCHEDULE,
        schedules.get_schedule,
        "Get a schedule",
        "Schedules",
        response=ScheduleView,
        scope=READ,
        command="gateway schedules show $SCHEDULE",
        python="print(await gateway.schedules.get(schedule_id))",
    ),
    Route(
        "PATCH",
        _SCHEDULE,
        schedules.change_schedule,
        "Change a schedule",
        "Schedules",
        body=schedules.ChangeSchedule,
        response=ScheduleView,
        scope=WRITE,
        audit="schedule.update",
        command="gateway schedules update $SCHEDULE --disable",
        python="print(await gateway.schedules.update(schedule_id, enabled=False))",
    ),
    Route(
        "DELETE",
        _SCHEDULE,
        schedules.delete_schedule,
        "Delete a schedule",
        "Schedules",
        answers={204: "The schedule is deleted"},
        scope=WRITE,
        audit="schedule.delete",
        command="gateway schedules delete $SCHEDULE",
        python="await gateway.schedules.delete(schedule_id)",
    ),
    Route(
        "POST",
        f"{_SCHEDULE}/run",
        schedules.run_schedule,
        "Run a schedule's operation now",
        "Schedules",
        response=AcceptedJobView,
        answers={202: "The job of the run"},
        sends={202: ACCEPTED_HEADERS},
        scope=WRITE,
        audit="schedule.run",
        command="gateway schedules run $SCHEDULE",
        python="job = await gateway.schedules.run(schedule_id)\nawait job.wait()",
    ),
)
