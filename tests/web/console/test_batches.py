"""Batches in the console: from typed lines, from a file, and refused."""

import io
import json
import re

import aiohttp
import pytest

from tests.harness.caller import Api
from tests.harness.console import ConsoleBrowser
from tests.harness.in_process import FrontEnd
from tests.web.console.test_people import shown
from tests.web.console.test_schedules import key_in

PAGE = "/console/batches"


@pytest.fixture
async def connector(api: Api) -> str:
    return (await api.connector()).record["id"]


async def total(browser: ConsoleBrowser, location: str) -> int:
    """The number of operations of the batch to whose job the browser is sent."""
    [found] = re.findall(r"&#34;total&#34;: (\d+)", await shown(browser, location))
    return int(found)


async def test_each_typed_line_has_the_params_of_the_chosen_operation(
    browser: ConsoleBrowser, api: Api, connector: str
):
    fields = {"connector": connector, "operation": "support-desk.tickets.get", "concurrency": "2"}
    lines = '{"ticket_id": 1}\r\n\r\n{"ticket_id": 2}'

    form = await shown(browser, f"{PAGE}?connector={connector}&operation=support-desk.tickets.get")
    started = await browser.upload(PAGE, csrf=await browser.csrf(), **fields, lines=lines)

    assert 'value="support-desk.tickets.get" selected' in form
    assert started.status == 303
    assert await total(browser, started.headers["Location"]) == 2


async def test_a_file_names_the_operation_of_each_line(browser: ConsoleBrowser, api: Api, connector: str):
    line = json.dumps({"entity": "tickets", "action": "get", "params": {"ticket_id": 1}}) + "\n"

    started = await browser.upload(PAGE, line.encode() * 3000, csrf=await browser.csrf(), connector=connector, lines="")

    assert started.status == 303
    assert await total(browser, started.headers["Location"]) == 3000


async def test_a_form_that_is_sent_twice_starts_one_batch(browser: ConsoleBrowser, api: Api, connector: str):
    form = await shown(browser, f"{PAGE}?connector={connector}&operation=support-desk.tickets.get")
    fields = {"connector": connector, "operation": "support-desk.tickets.get", "key": key_in(form)}

    async def start(line: str, **other: str):
        return await browser.upload(PAGE, csrf=await browser.csrf(), **{**fields, "lines": line, **other})

    started = [await start('{"ticket_id": 1}') for _ in range(2)]
    other = await start('{"ticket_id": 2}')
    again = await start('{"ticket_id": 2}', key=key_in(other.body.decode()))

    assert [each.status for each in (*started, other, again)] == [303, 303, 422, 303]
    assert started[0].headers["Location"] == started[1].headers["Location"]
    assert len((await api.get("/api/v1/jobs")).document()["data"]) == 2


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"lines": '{"ticket_id": 1}\n{"ticket_id": "x"}'}, "line 2: "),
        ({"lines": "{"}, "line 1: not JSON"),
        ({"lines": "[1]"}, "line 1: "),
        ({"lines": ""}, "the batch has no operations"),
        ({"lines": '{"ticket_id": 1}', "concurrency": "1000"}, "concurrency"),
        ({"lines": '{"ticket_id": 1}', "connector": ""}, "choose a connector"),
    ],
)
async def test_errors_stay_in_the_form_with_what_was_typed(
    browser: ConsoleBrowser, api: Api, connector: str, fields: dict[str, str], told: str
):
    sent = {"connector": connector, "operation": "support-desk.tickets.get", **fields}

    answer = await browser.upload(PAGE, csrf=await browser.csrf(), **sent)

    page = answer.body.decode()
    assert answer.status == 422
    assert told in page
    assert not fields.get("connector", connector) or fields["lines"].replace('"', "&#34;") in page
    assert (await api.get("/api/v1/jobs")).document()["data"] == []


async def test_a_form_of_another_site_starts_nothing(browser: ConsoleBrowser, api: Api, connector: str):
    fields = {"connector": connector, "operation": "support-desk.tickets.get", "lines": '{"ticket_id": 1}'}

    answers = [
        await browser.upload(PAGE, **fields),
        await browser.upload(PAGE, csrf="other", **fields),
        await browser.upload(PAGE, **fields, csrf=await browser.csrf()),
        await browser.upload(PAGE),
    ]
    unreadable = [
        await browser.send(PAGE, csrf="other", **fields),
        await browser.get(PAGE, data=b"x", headers={"Content-Type": "multipart/form-data"}),
    ]

    assert [answer.status for answer in answers] == [403] * 4
    assert [answer.status for answer in unreadable] == [403, 200]
    assert (await api.get("/api/v1/jobs")).document()["data"] == []


async def test_a_body_that_is_no_form_is_refused_like_other_invalid_input(browser: ConsoleBrowser):
    bodies = [
        b"",
        b"--x",
        b"--x\r\n\r\n\r\n--x--",
        b'--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n\xff\r\n--x--',
    ]
    statuses = []
    for body in bodies:
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        async with browser.session.post(PAGE, data=body, headers=headers) as response:
            statuses.append(response.status)

    assert set(statuses) <= {400, 403}


async def test_lines_before_a_form_are_refused(browser: ConsoleBrowser):
    form = '--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n%s\r\n--x--\r\n' % await browser.csrf()
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    statuses = []
    for lines in (0, 1000):
        body = io.BytesIO(b"\r\n" * lines + form.encode())
        async with browser.session.post(PAGE, data=body, headers=headers) as response:
            statuses.append(response.status)

    assert statuses == [422, 400]


async def test_a_form_with_a_field_twice_or_with_large_fields_is_refused_before_its_end(
    front: FrontEnd, browser: ConsoleBrowser
):
    async def start(size: int, *names: str) -> int:
        form = aiohttp.FormData(default_to_multipart=True)
        form.add_field("csrf", await browser.csrf())
        for name in names:
            form.add_field(name, "x" * size)
        async with browser.session.post(PAGE, data=form) as response:
            return response.status

    large = front.services.settings.max_body_bytes * 2 // 3
    statuses = [await start(1, "a", "a"), await start(large, "a", "b"), await start(large, "a")]

    assert statuses == [400, 413, 422]
