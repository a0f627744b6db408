"""Schedules in the console: the choice of an operation, the form, its next times, and changes."""

import re
from uuid import UUID

import pytest

from tests.harness.caller import Api
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.in_process import FrontEnd
from tests.web.console.test_people import sent, shown

NEW = "/console/schedules/new"


@pytest.fixture
async def fields(api: Api) -> dict[str, str]:
    """The fields of a valid form."""
    return {
        "connector": (await api.connector()).record["id"],
        "operation": "support-desk.tickets.list",
        "name": "Open tickets",
        "cron": "30 6 * * 1-5",
        "timezone": "Europe/Berlin",
        "overlap": "skip",
        "catch_up": "one",
        "p.per_page": "100",
    }


def key_in(page: str) -> str:
    """The key of a form, with which it creates one thing."""
    [key] = re.findall(r'name="key" value="([^"]+)"', page)
    return key


async def stored(api: Api) -> list[dict]:
    return (await api.get("/api/v1/schedules")).document()["data"]


async def test_an_operation_is_chosen_and_run_at_an_interval(browser: ConsoleBrowser, api: Api, fields: dict[str, str]):
    connectors = await shown(browser, NEW)
    operations = await shown(browser, f"{NEW}?connector={fields['connector']}")
    form = await shown(browser, f"{NEW}?connector={fields['connector']}&operation={fields['operation']}")

    made = await sent(browser, NEW, **fields, every="@hourly")

    [schedule] = await stored(api)
    assert f'<option value="{fields["connector"]}"' in connectors
    assert f'<option value="{fields["operation"]}"' in operations
    assert 'name="p.per_page"' in form
    assert (made.status, made.headers["Location"]) == (303, f"/console/schedules/{schedule['id']}")
    assert (schedule["cron"], schedule["timezone"], schedule["params"]) == (
        "@hourly",
        "Europe/Berlin",
        {"per_page": 100},
    )


async def test_a_form_that_is_sent_twice_creates_one_schedule(
    browser: ConsoleBrowser, api: Api, fields: dict[str, str]
):
    form = await shown(browser, f"{NEW}?connector={fields['connector']}&operation={fields['operation']}")
    once = {**fields, "key": key_in(form), "output": "ndjson", "select_fields": "id\nsubject"}

    made = [await sent(browser, NEW, **once) for _ in range(2)]
    other = await sent(browser, NEW, **{**once, "name": "Another"})
    again = await sent(browser, NEW, **{**once, "name": "Another", "key": key_in(other.body.decode())})

    assert [each.status for each in (*made, other, again)] == [303, 303, 422, 303]
    assert made[0].headers["Location"] == made[1].headers["Location"]
    assert [each["name"] for each in await stored(api)] == ["Open tickets", "Another"]


async def test_the_next_times_are_shown_before_anything_is_stored(
    browser: ConsoleBrowser, api: Api, fields: dict[str, str]
):
    page = (await sent(browser, NEW, **fields, do="times")).body.decode()

    assert page.count(":30:00 UTC</span>") == 5
    assert 'value="Open tickets"' in page
    assert await stored(api) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"cron": "61 * * * *"}, "cron is &#39;61 * * * *&#39;"),
        ({"timezone": "Europe/Berln"}, "Europe/Berlin"),
        ({"p.per_page": "many"}, "it is a whole number"),
        ({"p.per_page": "0"}, "per_page"),
        ({"operation": "support-desk.tickets.nothing"}, "choose a connector and an operation"),
        ({"operation": "support-desk.tickets.context_store_search"}, "needs output"),
    ],
)
async def test_errors_stay_in_the_form_with_what_was_typed(
    browser: ConsoleBrowser, api: Api, fields: dict[str, str], wrong: dict[str, str], told: str
):
    answer = await sent(browser, NEW, **{**fields, **wrong})

    assert answer.status == 422
    assert told in answer.body.decode()
    assert "nothing" in wrong.get("operation", "") or b'value="Open tickets"' in answer.body
    assert await stored(api) == []


async def test_a_schedule_is_changed_and_keeps_what_the_form_does_not_have(
    browser: ConsoleBrowser, api: Api, fields: dict[str, str]
):
    members = {"entity": "tickets", "action": "list", "connector_id": fields["connector"], "labels": {"team": "a"}}
    body = {"name": "Mornings", "cron": "0 7 * * *", "params": {"per_page": 5}, **members}
    schedule = (await api.post("/api/v1/schedules", body)).document(201)
    address = f"/console/schedules/{schedule['id']}/change"

    form = await shown(browser, address)
    await sent(browser, address, **{**fields, "name": "Evenings", "cron": "0 18 * * *", "output": "ndjson"})

    [changed] = await stored(api)
    assert 'name="p.per_page" type="text" value="5"' in form
    assert (changed["name"], changed["cron"], changed["output"]) == ("Evenings", "0 18 * * *", {"file": "ndjson"})
    assert (changed["params"], changed["labels"]) == ({"per_page": 100}, {"team": "a"})


async def test_a_client_that_only_reads_is_offered_no_changes(
    front: FrontEnd, api: Api, organization_id: UUID, fields: dict[str, str]
):
    async with signed_in(front, *await front.client(organization_id, ["read"])) as reader:
        pages = [await shown(reader, each) for each in ("/console/schedules", "/console/webhooks", "/console/jobs")]
        forms = [await reader.get(NEW), await reader.get("/console/batches")]
        csrf = await reader.csrf()
        made = [
            await reader.send(NEW, csrf=csrf, **fields),
            await reader.upload("/console/batches", csrf=csrf, connector=fields["connector"], lines="{}"),
            await reader.send(
                "/console/webhooks", csrf=csrf, url="https://app.example.com", **{"type:job.failed": "on"}
            ),
        ]

    assert [text for page in pages for text in ("Create a", "Start a batch") if text in page] == []
    assert {answer.status for answer in (*forms, *made)} == {403}
