"""The Python client with a gateway and the sandbox."""

import asyncio
import hashlib
from uuid import uuid4

import aiohttp
import pytest

from gateway import errors
from gateway.client import Gateway, SyncGateway

DESK = {"email": "agent@example.com", "api_token": "token"}
ENVIRONMENT = {"subdomain": "acme"}
#: kind → credentials, a list with small pages
LISTS = {
    "support-desk": (DESK, "tickets", {"per_page": 20}),
    "crm-records": ({"private_app_token": "t"}, "contacts", {"limit": 20}),
    "workspace-notes": ({"token": "t"}, "pages", {"page_size": 20}),
    "team-chat": ({"bot_key": "t"}, "users", {"limit": 20}),
    "work-management": ({"token": "t"}, "projects", {"limit": 20}),
    "incident-management": ({"api_key": "t"}, "incidents", {"page_size": 20}),
}


@pytest.fixture
def account(running):
    """What a client needs, with a workspace of its own."""
    return (running.base_url, running.client_id, running.client_secret, f"w-{uuid4().hex[:8]}")


@pytest.fixture
async def gateway(account):
    async with Gateway(*account) as opened:
        yield opened


@pytest.fixture
async def desk(gateway):
    return await gateway.connectors.create("support-desk", DESK, environment=ENVIRONMENT)


@pytest.mark.parametrize("kind", LISTS)
async def test_the_pages_of_every_kind_are_turned_to_the_end(gateway, kind):
    credentials, entity, params = LISTS[kind]
    environment = ENVIRONMENT if kind == "support-desk" else None
    connector = await gateway.connectors.create(kind, credentials, environment=environment)

    found = [record async for record in gateway.records(connector, entity, params=params, limit=100)]
    names = {record.get("id") or record.get("gid") for record in found}

    assert len(found) > 20
    assert len(names) == len(found)


async def test_of_many_connectors_of_one_name_made_at_once_one_is_made(gateway):
    made = await asyncio.gather(
        *(gateway.connectors.create("support-desk", DESK, environment=ENVIRONMENT, if_exists="fail") for _ in range(5)),
        return_exceptions=True,
    )

    [connector] = [each for each in made if not isinstance(each, errors.Conflict)]
    refused = [each for each in made if isinstance(each, errors.Conflict)]
    assert [each.extra["connector_id"] for each in refused] == [connector.id] * 4
    assert connector.id in refused[0].detail
    assert [each.id for each in await gateway.connectors.list()] == [connector.id]


async def test_a_connector_made_again_takes_the_credentials_and_keeps_its_id(gateway, desk):
    environment = {"subdomain": "other"}

    updated = await gateway.connectors.create(
        "support-desk", {**DESK, "api_token": "new"}, environment=environment, if_exists="update"
    )
    with pytest.raises(errors.InvalidCredentials):
        await gateway.connectors.create("support-desk", {"email": "a@example.com"}, if_exists="update")
    with pytest.raises(errors.Conflict, match=desk.id):
        await gateway.connectors.create("team-chat", {"bot_key": "t"}, name=desk.name, if_exists="update")
    other = await gateway.connectors.create("support-desk", DESK, environment=ENVIRONMENT)

    assert (updated.id, updated.environment["subdomain"]) == (desk.id, "other")
    assert (other.name, other.id != desk.id) == (desk.name, True)


async def test_a_write_tried_twice_under_one_key_is_one_ticket(gateway, desk):
    ticket = {"ticket": {"subject": "Once"}}

    first = await gateway.execute(desk, "tickets", "create", ticket, idempotency_key="k-1")
    second = await gateway.execute(desk, "tickets", "create", ticket, idempotency_key="k-1")

    assert first.result["id"] == second.result["id"]


async def test_a_bulk_update_is_followed_by_its_changes_and_by_its_events(gateway, desk):
    job = await gateway.submit(
        desk, "ticket_bulk_updates", "create", {"ids": ",".join(map(str, range(1, 151))), "ticket": {"status": "open"}}
    )
    seen = []

    events, done = await asyncio.gather(_names(job), job.wait(on_change=lambda view: seen.append(view.progress)))
    records = [record async for record in job.records()]

    assert done.status == "succeeded"
    assert seen == sorted(seen)
    assert events[0] == "status"
    assert events[-1] == "done"
    assert len(records) == 150
    assert (await job.result()).result["succeeded"] == 150


async def _names(job):
    return [event.name async for event in job.events()]


async def test_a_failed_job_is_the_error_that_ended_it(gateway, desk):
    job = await gateway.submit(desk, "tickets", "get", {"ticket_id": 999999999})

    with pytest.raises(errors.UpstreamNotFound) as raised:
        await job.result()

    assert raised.value.extra["job_id"] == job.id


async def test_a_job_that_has_ended_cannot_be_canceled_but_tried_again(gateway, desk):
    job = await (await gateway.submit(desk, "tickets", "get", {"ticket_id": 999999999})).wait()

    with pytest.raises(errors.JobNotCancelable):
        await job.cancel()
    again = await (await job.retry()).wait()

    assert again.id != job.id
    assert again.status == "failed"


async def test_a_file_is_downloaded_checked_and_gone_on_with(gateway, desk, running, tmp_path):
    size = 3_000_000
    async with aiohttp.ClientSession(running.sandbox_url) as sandbox, sandbox.get(f"/_sandbox/files/{size}") as answer:
        sha256 = (await answer.json())["sha256"]
    entity = ("attachments", {"attachment_id": size})
    with pytest.raises(_Enough):
        await gateway.download(desk, *entity, tmp_path / "a.bin", on_progress=_stop_after(1_000_000))
    kept = (tmp_path / "a.bin.part").stat().st_size

    found = await gateway.download(desk, *entity, tmp_path / "a.bin", sha256=sha256)

    assert found.resumed_from == kept
    assert hashlib.sha256(found.path.read_bytes()).hexdigest() == sha256


class _Enough(Exception):
    """Stops a download in the middle."""


def _stop_after(size):
    def progress(at, _of):
        if at >= size:
            raise _Enough

    return progress


async def test_a_stored_file_is_the_result_of_a_job(gateway, desk, tmp_path):
    job = await gateway.submit(desk, "attachments", "download", {"attachment_id": 200_000})

    found = await job.download(tmp_path / "a.bin")

    assert found.size == 200_000


async def test_the_copy_is_synchronized_and_searched_through_all_pages(gateway, desk):
    await (await gateway.connectors.sync(desk, ["tickets"])).result()

    found = [
        ticket async for ticket in gateway.search(desk, "tickets", {"eq": {"status": "solved"}}, fields=["status"])
    ]
    copies = await gateway.connectors.copies(desk)

    assert found
    assert {ticket["status"] for ticket in found} == {"solved"}
    assert copies["tickets"].records > 0


async def test_consent_makes_a_connector(gateway):
    await gateway.apps.set("work-management", "own-app", "own-secret")
    consent = await gateway.connectors.connect("work-management", "http://127.0.0.1:5999/redirected")
    await _given(consent.url)

    made = await asyncio.wait_for(consent.wait(every=0.05), 30)
    await gateway.apps.delete("work-management")

    assert made.kind == "work-management"
    assert (await gateway.connectors.check(made)).is_healthy


async def _given(consent_url):
    """The user clicks, and the browser goes to the gateway's callback."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.get(consent_url, allow_redirects=False) as answer:
            page = answer.headers["Location"]
        async with browser.post(page, data={"decision": "allow"}, allow_redirects=False) as answer:
            callback = answer.headers["Location"]
        async with browser.get(callback, allow_redirects=False) as answer:
            assert answer.status == 303


async def test_a_connector_is_renamed_disabled_and_dropped(gateway, desk):
    renamed = await gateway.connectors.update(desk, name="Desk", status="disabled")
    with pytest.raises(errors.ConnectorNotReady) as raised:
        await gateway.execute(renamed, "tickets", "list")
    await (await gateway.connectors.delete(renamed)).wait()

    assert renamed.name == "Desk"
    assert raised.value.extra["http_status"] == 409
    assert await gateway.connectors.list() == []


async def test_errors_name_all_that_is_wrong(gateway, desk):
    with pytest.raises(errors.InvalidParams) as raised:
        await gateway.execute(desk, "tickets", "list", {"sort_order": "up", "per_page": 1000})

    assert {fault.field for fault in raised.value.faults} == {"sort_order", "per_page"}


async def test_a_program_without_a_loop_does_the_same(account):
    def journey():
        with SyncGateway(*account) as gateway:
            desk = gateway.connectors.create("support-desk", DESK, environment=ENVIRONMENT)
            tickets = list(gateway.records(desk, "tickets", params={"per_page": 30}, limit=50))
            job = gateway.submit(desk, "tickets", "list", {"per_page": 5}).wait()
            return len(tickets), len(list(job.records()))

    assert await asyncio.to_thread(journey) == (50, 5)


def reads(*ticket_ids: int) -> list[dict[str, object]]:
    return [{"id": f"t{number}", "entity": "tickets", "action": "get", "params": {"ticket_id": number}}
            for number in ticket_ids]  # fmt: skip


async def test_a_batch_is_a_job_whose_records_are_the_results(gateway, desk):
    key = uuid4().hex
    job = await gateway.batch(desk, reads(1, 999_999_999, 2), concurrency=2, idempotency_key=key)
    results = [each async for each in job.records()]
    again = await gateway.batch(desk, reads(1, 999_999_999, 2), concurrency=2, idempotency_key=key)
    with pytest.raises(errors.InvalidParams, match=r"line 2: tickets\.get: ticket_id is 'x'"):
        await gateway.batch(desk, [*reads(1), *reads("x")])  # type: ignore[arg-type]

    assert [(each["id"], each["status"]) for each in results] == [
        ("t1", "succeeded"), ("t999999999", "failed"), ("t2", "succeeded"),
    ]  # fmt: skip
    assert (again.id, again.is_done) == (job.id, True)


async def test_steps_of_a_batch_refer_to_each_other(gateway, desk):
    steps = [*reads(3), {"entity": "tickets", "action": "get", "params": {"ticket_id": {"$from": "t3.id"}}}]

    answer = await (await gateway.batch(desk, steps, steps=True)).result()

    assert [each["result"]["id"] for each in answer.result["results"]] == [3, 3]


async def test_an_export_is_followed_and_saved(gateway, desk, tmp_path):
    job = await gateway.export(desk, "tickets", params={"per_page": 50}, select=["id"])

    saved = await job.download(tmp_path / "tickets.ndjson")
    records = [record async for record in job.records()]
    with pytest.raises(errors.InvalidParams, match="the job's result is a file"):
        await job.result()

    assert saved.size == (tmp_path / "tickets.ndjson").stat().st_size
    assert len(records) == job.view.progress > 100


async def test_schedules_are_kept_by_the_client(gateway, desk):
    schedule = await gateway.schedules.create("Daily", "@daily", desk, "tickets", "list", {"per_page": 100}, file="csv")
    job = await (await gateway.schedules.run(schedule.id)).wait()
    changed = await gateway.schedules.update(schedule.id, output=None, cron="0 7 * * *")
    listed = [each.id async for each in gateway.schedules.list(desk)]
    await gateway.schedules.delete(schedule.id)

    assert job.status == "succeeded"
    assert (changed.output, changed.cron, listed) == (None, "0 7 * * *", [schedule.id])
    with pytest.raises(errors.NotFound):
        await gateway.schedules.get(schedule.id)


async def test_a_hook_is_kept_by_the_client(gateway, desk):
    created = await gateway.hooks.create(desk)
    signed = await gateway.hooks.create(desk.id, "signing secret")
    seen = await gateway.hooks.get("support-desk")
    await gateway.hooks.delete(desk)

    assert (created.connector_id, created.has_secret) == (desk.id, False)
    assert (seen, seen.has_secret, seen.url) == (signed, True, created.url)
    with pytest.raises(errors.NotFound):
        await gateway.hooks.get(desk)


async def test_events_are_followed_from_a_cursor(gateway, desk):
    before = await gateway.latest_event()
    job = await (await gateway.submit(desk, "tickets", "list")).wait()

    events = gateway.events(before, types=["job.*"], connector=desk)
    event = await anext(events)
    await events.aclose()

    assert (event.type, event.data["job_id"], event.id > before) == ("job.succeeded", job.id, True)
