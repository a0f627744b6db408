"""`gateway sandbox …` against a running sandbox: faults, the requests that it received, a reset."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner, Result
from yarl import URL

from gateway.cli.sandbox import sandbox
from gateway.sandbox.app import create_sandbox
from tests.harness.catalog import shipped_catalog

AUTH = {"Authorization": "Bearer token"}
TICKETS = "/api/v2/tickets.json"
NEW = {"ticket": {"subject": "printer", "comment": {"body": "on fire"}}}

Command = Callable[..., Awaitable[Result]]


@pytest.fixture(scope="module")
async def origin() -> AsyncIterator[URL]:
    async with TestServer(create_sandbox(shipped_catalog(), scale=0.02)) as server:
        yield server.make_url("/").origin()


@pytest.fixture
async def http(origin: URL) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(base_url=origin, headers=AUTH) as session:
        async with session.delete("/_sandbox/state"):
            pass
        yield session


@pytest.fixture
def command(origin: URL) -> Command:
    async def run(*arguments: str) -> Result:
        return await asyncio.to_thread(CliRunner().invoke, sandbox, [*arguments, "--url", str(origin)])

    return run


async def test_a_fault_holds_for_its_times_and_is_listed_with_the_calls_that_are_left(http, command):
    added = await command("fault", "add", "--entity", "tickets", "--status", "503", "--times", "2")
    async with http.get(TICKETS) as refused:
        pass
    listed = await command("fault", "list")
    await command("fault", "clear")
    async with http.get(TICKETS) as answered:
        pass

    assert (added.exit_code, json.loads(added.output)) == (0, {"faults": 1})
    assert [json.loads(line) for line in listed.output.splitlines()] == [
        {"entity": "tickets", "status": 503, "times": 1}
    ]
    assert (refused.status, answered.status) == (503, 200)


async def test_a_lost_answer_is_the_answer_to_something_that_was_done(http, command):
    async with http.get(TICKETS) as listed:
        before = (await listed.json())["count"]
    await command("fault", "add", "--kind", "support-desk", "--method", "POST", "--reset", "--times", "1")

    with pytest.raises(aiohttp.ClientError):
        await http.post(TICKETS, json=NEW)

    async with http.get(TICKETS) as listed:
        assert (await listed.json())["count"] == before + 1


async def test_a_body_may_be_cut_after_no_byte(http, command):
    await command("fault", "add", "--entity", "tickets", "--truncate-after-bytes", "0", "--times", "1")

    async with http.get(TICKETS) as answer:
        assert answer.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()


async def test_headers_of_a_fault_are_sent(http, command):
    await command("fault", "add", "--status", "429", "--header", "Retry-After=7")

    async with http.get(TICKETS) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "7")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fault", "add", "--kind", "support-desk"), "a fault needs one of"),
        (("fault", "add", "--kind", "suport-desk", "--reset"), "did you mean support-desk?"),
        (("fault", "add", "--header", "Retry-After"), "is not NAME=VALUE"),
        (("fault", "add", "--status", "99"), "200<=x<=599"),
    ],
)
async def test_a_bad_fault_is_refused_with_the_reason(http, command, arguments, words):
    refused = await command(*arguments)

    assert refused.exit_code != 0
    assert words in refused.output
    assert (await command("fault", "list")).output == ""


async def test_requests_are_listed_with_status_method_kind_and_path(http, command):
    async with http.get(TICKETS):
        pass
    async with http.get("/nowhere/\x1b[31m"):
        pass

    desk = await command("requests", "--kind", "support-desk")
    last = await command("requests", "--limit", "1")

    assert desk.output.split(maxsplit=1)[1] == f"200 GET    support-desk {TICKETS}\n"
    assert len(last.output.splitlines()) == 1
    assert "404 GET    - /nowhere/" in last.output
    assert "\x1b" not in last.output


async def test_a_reset_ends_faults_and_forgets_requests(http, command):
    await command("fault", "add", "--status", "500")
    async with http.get(TICKETS):
        pass

    await command("reset")

    assert (await command("fault", "list")).output == (await command("requests")).output == ""


async def test_without_a_sandbox_the_address_is_named():
    refused = await asyncio.to_thread(
        CliRunner().invoke, sandbox, ["fault", "list", "--url", "http://127.0.0.1:9"], standalone_mode=True
    )

    assert refused.exit_code == 1
    assert "there is no sandbox at http://127.0.0.1:9" in refused.output


async def test_a_server_that_is_no_sandbox_is_named():
    app = web.Application()
    async with TestServer(app) as server:
        url = str(server.make_url("/").origin())
        refused = await asyncio.to_thread(CliRunner().invoke, sandbox, ["reset", "--url", url])

    assert refused.exit_code == 1
    assert f"{url} is not a sandbox" in refused.output
