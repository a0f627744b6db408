"""The command line against a whole gateway and the sandbox, as a script would use it."""

import asyncio
import hashlib
import json
import random
import signal
from uuid import uuid4

import aiohttp
import pytest

from gateway.events.signing import new_secret
from tests.events.receiver import receiving
from tests.harness.command_line import invoked, started
from tests.harness.cut_connections import CutConnections


@pytest.fixture
def environment(running):
    """The caller's settings; each test has a workspace of its own."""
    return {
        **running.environment,
        "GATEWAY_URL": running.base_url,
        "GATEWAY_CLIENT_ID": running.client_id,
        "GATEWAY_CLIENT_SECRET": running.client_secret,
        "GATEWAY_WORKSPACE": f"w-{uuid4().hex[:8]}",
    }


@pytest.fixture
def command(environment, tmp_path):
    """`await command("call", …)`: exit code, stdout and stderr."""

    async def run(*words):
        ended = await invoked(*words, environment=environment, directory=tmp_path)
        return ended.code, ended.out, ended.err

    return run


@pytest.fixture
async def desk(command):
    """A support desk, connected by the command line itself."""
    code, out, err = await command(
        *("connect", "support-desk", "--env", "subdomain=acme"),
        *("--credential", "email=agent@example.com", "--credential", "api_token=token"),
    )
    assert code == 0, err
    return json.loads(out)["id"]


@pytest.mark.parametrize(
    ("words", "listing"),
    [
        (("jobs", "show", "nope"), "gateway jobs list"),
        (("jobs", "cancel", "nope"), "gateway jobs list"),
        (("schedules", "show", "nope"), "gateway schedules list"),
        (("grants", "revoke", "nope"), "gateway grants list"),
    ],
)
async def test_a_wrong_id_points_to_the_command_that_lists(command, words, listing):
    code, _, err = await command(*words)

    assert (code, f"; `{listing}` lists " in err) == (4, True), err


async def test_a_file_is_uploaded(command, tmp_path):
    (tmp_path / "report.txt").write_text("all is well")
    connected, *_ = await command(
        *("connect", "jira", "--env", "subdomain=acme"),
        *("--credential", "username=ada@example.com", "--credential", "password=token"),
    )

    code, out, err = await command(
        "upload", "jira", "issue_attachments", str(tmp_path / "report.txt"), "issueIdOrKey=ACME-7"
    )

    assert (connected, code) == (0, 0), err
    assert json.loads(out)["file"]["filename"] == "report.txt"


async def test_an_upload_continues_after_its_connection_broke_twice(command, environment, running, tmp_path):
    content = random.Random("film").randbytes(5 << 20)
    (tmp_path / "film.mp4").write_bytes(content)
    connected, *_ = await command(
        *("connect", "google-drive", "--credential", "access_token=token", "--credential", "refresh_token=refresh")
    )

    async with CutConnections(running.base_url, [3 << 20, 1 << 20]) as cut:
        uploading = {**environment, "GATEWAY_URL": cut.url}
        ended = await invoked(
            *("upload", "google-drive", "files_upload", str(tmp_path / "film.mp4")),
            environment=uploading,
            directory=tmp_path,
        )

    assert (connected, ended.code, cut.cuts) == (0, 0, []), ended.err
    assert json.loads(ended.out)["sha256Checksum"] == hashlib.sha256(content).hexdigest()


async def test_a_ticket_is_opened_found_and_refused(command, desk):
    code, opened, _ = await command(
        "call", "support-desk", "tickets", "create", "ticket.subject=Fire", "ticket.tags=a,b"
    )
    number = json.loads(opened)["id"]
    _, read, _ = await command("call", "support-desk", "tickets", "get", f"ticket_id={number}", "--select", "id,tags")
    refused = await command("call", "support-desk", "tickets", "get", "ticket_id=999999999")
    _, two, _ = await command("call", "support-desk", "tickets", "list", "limit=2", "--fields", "id")

    assert code == 0
    assert [list(record) for record in json.loads(two)] == [["id"], ["id"]]
    assert json.loads(read) == {"id": number, "tags": ["a", "b"]}
    assert refused[0] == 4


async def test_a_connector_that_is_not_there_cannot_be_renewed_and_those_that_are_there_are_named(command, desk):
    code, _, err = await command("connect", "zendesk", "--renew", "Help dsk")

    assert (code, "Traceback" in err) == (4, False)
    assert "no connector 'Help dsk'" in err
    assert "Support desk" in err


async def test_a_connector_is_named_beside_its_application(command, desk):
    code, out, err = await command("call", "zendesk", "tickets", "list", "per_page=1", "-c", desk, "-o", "json")

    assert (code, len(json.loads(out))) == (0, 1), err


async def test_a_bulk_update_is_followed(command, desk):
    ids = ",".join(map(str, range(1, 121)))

    code, out, err = await command(
        "call", "support-desk", "ticket_bulk_updates", "create", f"ids={ids}", "ticket.status=open"
    )

    assert code == 0, err
    assert json.loads(out)["succeeded"] == 120


async def test_a_job_is_watched_and_its_result_printed(command, desk):
    _, out, _ = await command("call", "support-desk", "tickets", "list", "per_page=3", "--async")
    job = json.loads(out)["id"]

    watched = await command("jobs", "watch", job, "-o", "ndjson")
    result = await command("jobs", "result", job, "-o", "ndjson")
    listed = await command("jobs", "list", "--limit", "5", "-o", "ndjson")

    assert watched[0] == 0
    assert json.loads(watched[1].splitlines()[-1])["event"] == "done"
    assert len(result[1].splitlines()) == 3
    assert job in listed[1]


async def test_a_file_is_saved(command, desk, tmp_path):
    code, out, _ = await command("download", "support-desk", "attachments", "attachment_id=100000", "-o", "a.bin")

    assert (code, out) == (0, "a.bin\n")
    assert (tmp_path / "a.bin").stat().st_size == 100_000


async def test_records_are_synchronized_and_searched(command, desk):
    synchronized = await command("connectors", "sync", "support-desk", "tickets")
    code, out, err = await command("search", "support-desk", "tickets", "status=open,solved", "--limit", "5")

    assert synchronized[0] == 0, synchronized[2]
    assert code == 0, err
    assert {record["status"] for record in json.loads(out)} <= {"open", "solved"}


async def test_a_connector_is_made_by_consent(command, environment, tmp_path):
    await command("apps", "set", "team-chat", "--client-id", "own", "--client-secret", "secret")
    process = await started("connect", "team-chat", "--no-browser", environment=environment, directory=tmp_path)
    lines = [(await process.stderr.readline()).decode() for _ in range(2)]
    allow = {"decision": "allow"}
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.get(lines[1].strip()) as consent:
            asked = consent.url
        async with browser.post(asked, data=allow) as answer:
            page = await answer.text()

    out, _ = await asyncio.wait_for(process.communicate(), 30)
    await command("apps", "delete", "team-chat")

    assert "You may close this page" in page
    assert json.loads(out)["kind"] == "team-chat"


async def test_a_connector_is_checked_and_deleted(command, desk):
    checked = await command("connectors", "check", desk)
    deleted = await command("connectors", "delete", desk, "--yes")
    left = await command("connectors", "list")

    assert checked == (0, "healthy\n", "")
    assert deleted[0] == 0
    assert json.loads(left[1]) == []


async def test_the_gateway_says_what_there_is_to_call(command):
    code, out, _ = await command("types", "support-desk", "tickets", "list")

    assert code == 0
    assert json.loads(out)["paging"]["param"] == "page"


async def test_an_operation_is_found_by_plain_words(command, desk):
    code, found, _ = await command("find", "close", "a", "zendesk", "ticket", "-n", "2")
    _, of_desk, _ = await command("find", "close a zendesk ticket", "-c", desk)
    _, table, _ = await command("find", "close a zendesk ticket", "-c", desk, "-o", "table")
    _, offline, _ = await command("find", "--offline", "close a zendesk ticket")

    assert code == 0
    assert json.loads(found)["data"][0]["operation"] == "support-desk.tickets.update"
    assert len(json.loads(found)["data"]) == 2
    assert [connector["id"] for connector in json.loads(of_desk)["data"][0]["connectors"]] == [desk]
    assert table.startswith("Zendesk support-desk tickets.update(ticket_id*, ")
    assert json.loads(offline)["data"][0]["operation"] == "support-desk.tickets.update"


async def test_the_message_for_a_task_without_an_operation_says_what_is_missing(command):
    code, found, _ = await command("find", "create a deal", "--kind", "HubSpot")
    _, table, told = await command("find", "create a deal", "--kind", "HubSpot", "-o", "table")

    missing = "HubSpot: crm-records has no operation that creates deals; deals: list, get, api_search"
    assert code == 0
    assert (json.loads(found)["data"], json.loads(found)["message"]) == ([], missing)
    assert told.strip().splitlines() == [missing, "Closest:"]
    assert table.startswith("HubSpot crm-records deals.")


async def test_tools_are_printed_in_the_format_that_is_asked_for(command, desk):
    words = ("tools", "--format", "anthropic", "--operations", "support-desk.tickets.get,team-chat.channels.list")
    code, asked, _ = await command(*words, "-c", desk)
    _, offline, _ = await command(*words, "--offline")

    assert code == 0
    assert [tool["name"] for tool in json.loads(asked)] == ["support-desk__tickets__get"]
    assert json.loads(offline)[0] == json.loads(asked)[0]
    assert set(json.loads(asked)[0]) == {"name", "description", "input_schema"}


def written(folder, *ticket_ids):
    """A file with a read of each ticket on a line."""
    file = folder / "batch.ndjson"
    lines = [
        json.dumps({"entity": "tickets", "action": "get", "params": {"ticket_id": number}}) for number in ticket_ids
    ]
    file.write_text("\n".join(lines), "utf-8-sig")  # with a byte order mark, as some editors save it
    return str(file)


async def test_a_batch_runs_a_file_of_operations(command, desk, tmp_path):
    code, out, err = await command("batch", written(tmp_path, 1, 2), "-o", "ndjson", "--fail-on-partial")
    table = await command("batch", written(tmp_path, 1, 999_999_999), "-c", "support-desk", "-o", "table")
    partial = await command("batch", written(tmp_path, 1, 999_999_999), "--fail-on-partial")
    faulty = await command("batch", written(tmp_path, 1, "x"))
    (tmp_path / "none.json").write_text("[]")
    empty = await command("batch", str(tmp_path / "none.json"))

    assert code == 0, err
    assert [json.loads(line)["result"]["id"] for line in out.splitlines()] == [1, 2]
    assert (table[0], partial[0]) == (0, 6)
    assert "failed" in table[1]
    assert "1 of 2 operations done, 1 failed" in partial[2]
    assert faulty[0] == 1
    assert "line 2" in faulty[2]
    assert empty[0] == 2
    assert "has no operations" in empty[2]


async def test_an_export_writes_every_record_into_a_file(command, desk, tmp_path):
    code, _, err = await command(
        "export", "support-desk", "tickets", "per_page=100", "-o", "tickets.csv", "--select", "id,subject"
    )
    _, listed, _ = await command("call", "support-desk", "tickets", "list", "per_page=100", "--all", "--fields", "id")
    for_excel = await command(
        "export", "support-desk", "tickets", "--format", "csv-bom", "-o", "excel.csv", "--select", "id"
    )
    wrong = await command("export", "support-desk", "tickets", "--action", "get", "ticket_id=1")

    header, *rows = (tmp_path / "tickets.csv").read_text("utf-8").splitlines()
    assert code == 0, err
    assert header == "id,subject"
    assert for_excel[0] == 0
    assert (tmp_path / "excel.csv").read_bytes().startswith(b"\xef\xbb\xbfid\r\n")
    assert [row.split(",")[0] for row in rows] == [str(record["id"]) for record in json.loads(listed)]
    assert (wrong[0], "output is for list" in wrong[2]) == (1, True)


async def test_a_schedule_is_created_run_changed_and_deleted(command, desk):
    _, created, err = await command(
        *("schedules", "create", "Mornings", "30 6 * * 1-5", "support-desk", "tickets", "list", "per_page=2"),
        *("--timezone", "Europe/Berlin"),
    )
    schedule = json.loads(created)
    code, job_id, _ = await command("schedules", "run", schedule["id"], "--watch")
    _, updated, _ = await command("schedules", "update", schedule["id"], "--disable")
    _, shown, _ = await command("schedules", "show", schedule["id"])
    _, listed, _ = await command("schedules", "list", "-c", desk)
    deleted = await command("schedules", "delete", schedule["id"])
    wrong = await command("schedules", "create", "x", "61 * * * *", "support-desk", "tickets", "list")

    assert (schedule["params"], schedule["timezone"], len(schedule["next_runs"])) == (
        {"per_page": 2},
        "Europe/Berlin",
        3,
    ), err
    assert code == 0
    assert json.loads(shown)["job_ids"] == [job_id.strip()]
    assert (json.loads(updated)["enabled"], json.loads(updated)["next_runs"]) == (False, [])
    assert [each["id"] for each in json.loads(listed)] == [schedule["id"]]
    assert deleted[0] == 0
    assert (wrong[0], "invalid minute" in wrong[2]) == (1, True)


async def test_a_hook_is_created_shown_and_deleted(command, desk, tmp_path):
    (tmp_path / "secret.txt").write_text("signing secret\n")

    _, created, err = await command("hooks", "create", "support-desk")
    _, signed, _ = await command("hooks", "create", desk, "--secret", "@secret.txt")
    shown = await command("hooks", "show", "support-desk")
    deleted = await command("hooks", "delete", "support-desk")
    gone = await command("hooks", "show", "support-desk")

    hook = json.loads(created)
    assert hook["url"].endswith(f"/hooks/{hook['id']}"), err
    assert (hook["has_secret"], json.loads(signed)["has_secret"]) == (False, True)
    assert json.loads(shown[1]) == json.loads(signed)
    assert (deleted[0], gone[0], "has no hook" in gone[2]) == (0, 4, True)


async def test_events_are_followed_and_forwarded_to_a_local_url(command, environment, desk, tmp_path):
    secret = new_secret()
    async with receiving() as receiver:
        receiver.secrets["/local"] = secret
        listening = ("webhooks", "listen", f"{receiver.url}/local", "--type", "job.*", "--secret", secret)
        listener, follower = [
            await started(*words, "-c", desk, "--after", "0", environment=environment, directory=tmp_path)
            for words in (listening, ("events", "--follow", "-o", "ndjson"))
        ]
        _, job, _ = await command("call", "support-desk", "tickets", "list", "--async")
        lines = [json.loads(await asyncio.wait_for(follower.stdout.readline(), 30)) for _ in range(2)]
        forwarded = (await asyncio.wait_for(listener.stdout.readline(), 30)).decode()
        for process in (listener, follower):
            process.send_signal(signal.SIGINT)
            await process.communicate()

    [event] = receiver.received["/local"]
    _, listed, _ = await command("events", "-c", desk)
    assert [each["type"] for each in lines] == ["connector.created", "job.succeeded"]
    assert lines == json.loads(listed)
    assert event["data"]["job_id"] == lines[1]["data"]["job_id"] == json.loads(job)["id"]
    assert ("job.succeeded" in forwarded, forwarded.endswith("204\n")) == (True, True)
    assert (listener.returncode, follower.returncode) == (130, 130)
