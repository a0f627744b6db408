"""Schedules through the API: validation, slots, and access."""

import asyncio
from uuid import UUID, uuid4

import pytest

from gateway.access.identity.model import Caller, Client
from gateway.contract.schedules import ScheduleDefinition
from gateway.errors import NotFound
from gateway.events.model import EventFilter, EventType
from gateway.operations.schedules.due import DueRuns
from gateway.operations.schedules.store import ScheduleStore
from tests.harness.blocked_loop import divided, never_blocked
from tests.harness.clients import EVERY_SCOPE
from tests.harness.console import signed_in
from tests.harness.waiting import eventually

MORNINGS = {"entity": "tickets", "action": "list", "params": {"per_page": 2}, "cron": "30 6 * * 1-5"}
SLOT_CAME = "UPDATE schedules SET next_run_at = date_trunc('minute', now()) - $2 * interval '1 minute' WHERE id = $1"
RUNS = "SELECT id, status, labels ->> 'scheduled_for' AS slot FROM jobs WHERE labels ->> 'schedule_id' = $1"


def url_of(schedule):
    return f"/api/v1/schedules/{schedule['id']}"


@pytest.fixture
def body(support_desk):
    return {"name": "Mornings", "connector_id": support_desk.record["id"], **MORNINGS}


@pytest.fixture
async def schedule(api, body):
    return (await api.post("/api/v1/schedules", body)).document(201)


@pytest.fixture
def slot_came(sql):
    """Move the schedule's next slot so many minutes into the past."""

    async def come(schedule, minutes=0):
        await sql(SLOT_CAME, schedule["id"], float(minutes))

    return come


@pytest.fixture
def runs_of(sql):
    async def run(schedule):
        return await sql(RUNS, schedule["id"])

    return run


async def test_a_schedule_is_created_with_its_next_three_slots(api, schedule, body):
    read = (await api.get(url_of(schedule))).document()

    assert read == schedule
    assert {name: schedule[name] for name in body} == body
    assert (schedule["timezone"], schedule["enabled"], schedule["overlap"], schedule["catch_up"]) == (
        "UTC",
        True,
        "skip",
        "one",
    )
    assert len(schedule["next_runs"]) == 3
    assert all(slot.endswith("06:30:00Z") for slot in schedule["next_runs"])


@pytest.mark.parametrize(
    ("members", "status", "field"),
    [
        ({"cron": "61 * * * *"}, 422, "cron"),
        ({"timezone": "Europe/Berln"}, 422, "timezone"),
        ({"overlap": "both"}, 422, "overlap"),
        ({"labels": {"schedule_id": "mine"}}, 422, "labels.schedule_id"),
        ({"params": {"sort_order": "up"}}, 422, "sort_order"),
        ({"select_fields": ["subjekt"]}, 422, "select_fields[0]"),
        ({"action": "lst"}, 422, None),
        ({"action": "context_store_search", "params": {}}, 422, "output"),
        ({"action": "get", "params": {"ticket_id": 1}, "output": {"file": "csv"}}, 422, "output"),
        ({"colour": "red"}, 422, "colour"),
        ({"connector_id": "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11"}, 404, None),
    ],
)
async def test_an_invalid_schedule_is_refused_with_the_field(api, body, members, status, field):
    problem = (await api.post("/api/v1/schedules", {**body, **members})).document(status)

    if field is not None:
        assert field in [fault["field"] for fault in problem["errors"]]


async def test_a_change_keeps_the_members_that_it_leaves_out(api, schedule):
    changed = (await api.call("PATCH", url_of(schedule), json={"name": "Evenings", "cron": "0 18 * * *"})).document()

    assert (changed["name"], changed["cron"]) == ("Evenings", "0 18 * * *")
    assert all(slot.endswith("18:00:00Z") for slot in changed["next_runs"])
    assert {**changed, "name": 0, "cron": 0, "next_runs": 0, "updated_at": 0} == {
        **schedule, "name": 0, "cron": 0, "next_runs": 0, "updated_at": 0,
    }  # fmt: skip


async def test_a_change_of_params_is_checked_like_a_call(api, schedule):
    refused = await api.call("PATCH", url_of(schedule), json={"params": {"sort_order": "up"}})

    assert refused.status == 422


async def test_a_disabled_schedule_has_no_slots_until_it_is_enabled(api, schedule):
    disabled = (await api.call("PATCH", url_of(schedule), json={"enabled": False})).document()
    enabled = (await api.call("PATCH", url_of(schedule), json={"enabled": True})).document()

    assert disabled["next_runs"] == []
    assert enabled["next_runs"] == schedule["next_runs"]


async def test_a_deleted_schedule_is_not_found(api, schedule):
    assert (await api.call("DELETE", url_of(schedule))).status == 204
    assert (await api.get(url_of(schedule))).status == 404


async def test_schedules_are_listed_in_pages(api, body):
    names = [(await api.post("/api/v1/schedules", {**body, "name": f"n{n}"})).document(201)["name"] for n in range(3)]

    first = (await api.get("/api/v1/schedules?limit=2")).document()
    second = (await api.get(f"/api/v1/schedules?limit=2&cursor={first['next_cursor']}")).document()

    assert [each["name"] for page in (first, second) for each in page["data"]] == names
    assert second["next_cursor"] is None


async def test_a_page_of_schedules_with_rare_times_does_not_hold_the_loop(api, front, body, organization_id, sql):
    crons = [f"{number % 60} {number // 60} * 2 1#5" for number in range(150)]
    created = [(await api.post("/api/v1/schedules", {**body, "cron": cron})).document(201) for cron in crons]
    caller = Caller(
        Client(id=uuid4(), name="t", organization_ids=frozenset({organization_id}), scopes=frozenset(EVERY_SCOPE)),
        organization_id,
    )

    with never_blocked():
        page = await divided(front.services.operations.schedules.find(caller, None, 1000))

    assert {each.id for each in page.data} >= {each["id"] for each in created}


async def test_an_organization_has_ten_thousand_schedules_at_most(api, body, schedule, sql):
    await sql(
        "INSERT INTO schedules SELECT (jsonb_populate_record(schedule, jsonb_build_object("
        "'id', gen_random_uuid(), 'next_run_at', null))).* "
        "FROM schedules AS schedule, generate_series(1, 9999) WHERE id = $1", schedule["id"],
    )  # fmt: skip

    refused = await api.post("/api/v1/schedules", body)
    await sql("DELETE FROM schedules WHERE next_run_at IS NULL AND id <> $1", schedule["id"])
    made = await api.post("/api/v1/schedules", body)

    assert refused.document(409)["detail"] == "the organization has 10000 schedules, the most it may have; delete some"
    assert made.status == 201


async def test_organizations_get_turns_when_many_slots_are_due(api, front, body, slot_came):
    many = [(await api.post("/api/v1/schedules", {**body, "name": f"n{n}"})).document(201) for n in range(6)]
    async with front.api() as other:
        desk = await other.connector()
        polite = (await other.post("/api/v1/schedules", {**body, "connector_id": desk.record["id"]})).document(201)
    for each in many:
        await slot_came(each, minutes=5)
    await slot_came(polite)
    services = front.services

    async with services.database.system() as connection, connection.transaction():
        due, _ = await services.operations.due_runs.store.lock_due_within(connection, 2)

    assert str(due[1]["id"]) == polite["id"]
    assert str(due[0]["id"]) in {each["id"] for each in many}


async def test_a_due_slot_becomes_one_job_with_the_labels_of_its_schedule(api, front, schedule, slot_came, runs_of):
    await slot_came(schedule)

    await front.services.operations.due_runs.start()

    [run] = await runs_of(schedule)
    job = (await api.get(f"/api/v1/jobs/{run['id']}")).document()
    assert (job["entity"], job["action"]) == ("tickets", "list")
    assert job["labels"] == {"schedule_id": schedule["id"], "scheduled_for": run["slot"]}
    read = (await api.get(url_of(schedule))).document()
    assert read["job_ids"] == [str(run["id"])]
    assert read["next_runs"] == schedule["next_runs"]


async def test_a_slot_runs_once_with_any_number_of_workers(front, schedule, slot_came, runs_of):
    await slot_came(schedule)

    await asyncio.gather(*(front.services.operations.due_runs.start() for _ in range(8)))

    assert len(await runs_of(schedule)) == 1


async def test_a_slot_with_a_job_gets_no_second_one(front, schedule, slot_came, runs_of):
    """The same slot is due again, as after a restore of the schedule from a backup."""
    for _ in range(2):
        await slot_came(schedule)
        await front.services.operations.due_runs.start()

    assert len(await runs_of(schedule)) == 1


async def test_a_worker_that_dies_between_slot_and_job_leaves_the_slot(front, schedule, slot_came, runs_of):
    """The transaction is aborted after the next slot is stored and before the job is accepted."""
    services = front.services

    class WorkerDied(Exception):
        pass

    class DyingJobs:
        async def accept_all_within(self, connection, new):
            raise WorkerDied

    await slot_came(schedule)
    dying = DueRuns(
        audit=services.logs.audit,
        catalog=services.catalog,
        database=services.database,
        store=ScheduleStore(services.database, services.keys.vault),
        jobs=DyingJobs(),
        wakeup=services.jobs.wakeup,
    )
    with pytest.raises(WorkerDied):
        await dying.start()

    await services.operations.due_runs.start()

    assert len(await runs_of(schedule)) == 1


@pytest.mark.parametrize(("catch_up", "runs"), [("one", 1), ("none", 0)])
async def test_slots_missed_without_workers_are_one_run_or_none(
    api, front, sql, body, slot_came, runs_of, catch_up, runs
):
    schedule = (await api.post("/api/v1/schedules", {**body, "cron": "* * * * *", "catch_up": catch_up})).document(201)
    await slot_came(schedule, minutes=10)

    await front.services.operations.due_runs.start()

    assert len(await runs_of(schedule)) == runs
    [row] = await sql("SELECT organization_id FROM schedules WHERE id = $1", schedule["id"])
    page = await front.services.events.feed.read(
        row["organization_id"], EventFilter(types=[EventType.SCHEDULE_MISSED]), None, 10
    )
    assert [event.data["schedule_id"] for event in page.events] == [schedule["id"]] * (1 - runs)


@pytest.mark.parametrize(("overlap", "missed"), [("skip", 1), ("queue", 0)])
async def test_a_slot_during_a_run_is_skipped_or_queued(api, front, sql, body, slot_came, runs_of, overlap, missed):
    schedule = (await api.post("/api/v1/schedules", {**body, "overlap": overlap})).document(201)
    await slot_came(schedule, minutes=2)
    await front.services.operations.due_runs.start()
    await slot_came(schedule, minutes=1)

    await front.services.operations.due_runs.start()
    during = len(await runs_of(schedule))
    await sql("UPDATE jobs SET status = 'succeeded', finished_at = now() WHERE status = 'queued'")
    await front.services.operations.due_runs.start()

    assert during == 1
    assert len(await runs_of(schedule)) == 2 - missed
    read = (await api.get(url_of(schedule))).document()
    assert (read["last_missed"] is not None) == bool(missed)


async def test_a_disabled_connector_pauses_its_schedules_with_the_reason(
    api, front, support_desk, schedule, slot_came, runs_of
):
    await api.call("PATCH", support_desk.path, json={"status": "disabled"})
    await slot_came(schedule)

    await front.services.operations.due_runs.start()

    read = (await api.get(url_of(schedule))).document()
    assert await runs_of(schedule) == []
    assert read["paused_reason"] == read["last_missed"]["reason"] == "its connector is disabled"
    refused = (await api.post(f"{url_of(schedule)}/run")).document(409)
    assert refused["code"] == "connector_not_ready"


async def test_a_schedule_of_a_deleted_connector_is_paused_with_the_reason(api, support_desk, schedule):
    await api.call("DELETE", support_desk.path)

    assert (await api.get(url_of(schedule))).document()["paused_reason"] == "its connector was deleted"


async def test_a_schedule_runs_at_once_on_request(api, schedule):
    answer = await api.post(f"{url_of(schedule)}/run")

    job = answer.document(202)["job"]
    assert answer.headers["Location"] == f"/api/v1/jobs/{job['id']}"
    assert job["labels"] == {"schedule_id": schedule["id"]}
    assert (await api.get(url_of(schedule))).document()["job_ids"] == [job["id"]]


async def test_the_output_of_a_schedule_can_be_set_and_removed(api, front, body, slot_came, sql):
    output = {"output": {"file": "csv-bom"}, "select_fields": ["id"]}
    schedule = (await api.post("/api/v1/schedules", {**body, **output})).document(201)
    await slot_came(schedule)
    await front.services.operations.due_runs.start()
    changed = (await api.call("PATCH", url_of(schedule), json={"output": None})).document()

    [run] = await sql("SELECT task FROM jobs WHERE labels ->> 'schedule_id' = $1", schedule["id"])
    assert schedule["output"] == {"file": "csv-bom"}
    assert run["task"] == "export"
    assert changed["output"] is None


async def test_another_organizations_schedule_is_not_found(front, schedule):
    async with front.api() as other:
        for method, path in [("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/run")]:
            sent = {"json": {"name": "theirs"}} if method == "PATCH" else {}
            answer = await other.call(method, f"{url_of(schedule)}{path}", **sent)
            assert answer.status == 404
        assert (await other.get("/api/v1/schedules")).document()["data"] == []


@pytest.fixture
async def organization_id(schedule, sql):
    [row] = await sql("SELECT organization_id FROM schedules WHERE id = $1", schedule["id"])
    return row["organization_id"]


async def test_a_client_of_other_workspaces_finds_neither_schedule_nor_connector(front, schedule, organization_id):
    client = Client(
        id=uuid4(),
        name="test",
        organization_ids=frozenset({organization_id}),
        scopes=frozenset(EVERY_SCOPE),
        workspaces=frozenset({"elsewhere"}),
    )
    caller, schedules = Caller(client, organization_id), front.services.operations.schedules
    schedule_id, connector_id = UUID(schedule["id"]), UUID(schedule["connector_id"])

    assert (await schedules.find(caller, None, 10)).data == []
    for refused in (
        schedules.get(caller, schedule_id),
        schedules.change(caller, schedule_id, {"name": "mine"}),
        schedules.delete(caller, schedule_id),
        schedules.run(caller, schedule_id, "r-1"),
        schedules.create(
            caller,
            ScheduleDefinition(name="mine", connector_id=connector_id, entity="tickets", action="list", cron="@daily"),
        ),
    ):
        with pytest.raises(NotFound):
            await refused


async def test_a_client_with_the_scope_read_can_read_but_not_change_schedules(front, schedule, organization_id, body):
    async with front.api(organization_id, ["read"]) as reader:
        assert (await reader.get(url_of(schedule))).status == 200
        assert (await reader.post("/api/v1/schedules", body)).status == 403
        assert (await reader.call("DELETE", url_of(schedule))).status == 403
        assert (await reader.post(f"{url_of(schedule)}/run")).status == 403


async def test_creation_change_and_run_of_a_schedule_are_recorded(api, front, schedule, slot_came):
    await api.call("PATCH", url_of(schedule), json={"name": "Evenings"})
    await slot_came(schedule)
    await front.services.operations.due_runs.start()

    async def entries():
        found = (await api.get("/api/v1/audit")).document()["data"]
        return found if "tickets.list" in [entry["what"] for entry in found] else None

    [run, update, create, *_] = await eventually(entries)
    assert (update["what"], create["what"]) == ("schedule.update", "schedule.create")
    assert run["intent"] == "schedule Evenings"


async def test_params_are_stored_sealed(sql, schedule, api, body):
    secret = (await api.post("/api/v1/schedules", {**body, "params": {"external_id": "sesame"}})).document(201)

    [row] = await sql("SELECT schedules::text AS text FROM schedules WHERE id = $1", secret["id"])
    assert "sesame" not in row["text"]
    assert secret["params"]["external_id"] == "sesame"


async def test_a_person_disables_runs_and_deletes_a_schedule_in_the_console(front, api, schedule, organization_id):
    page = f"/console/schedules/{schedule['id']}"
    async with signed_in(front, *await front.client(organization_id)) as browser:
        csrf = await browser.csrf()
        await browser.send(page, csrf=csrf, enabled="no")
        disabled = (await api.get(url_of(schedule))).document()
        run = await browser.send(f"{page}/run", csrf=csrf)
        shown = await browser.get(page)
        deleted = await browser.send(f"{page}/delete", csrf=csrf)

    assert disabled["enabled"] is False
    assert run.headers["Location"].encode() in shown.body
    assert (deleted.status, deleted.headers["Location"]) == (303, "/console/schedules")
    assert (await api.get(url_of(schedule))).status == 404
