"""Each command against a stub server that implements the contract."""

import asyncio
import hashlib
import signal
from asyncio.subprocess import DEVNULL, PIPE

import click
import pytest
from click.testing import CliRunner

from gateway.cli import main
from tests.client.stub import BLOB, CONNECTOR_ID, JOB_ID, TICKETS, problem
from tests.harness.command_line import GATEWAY
from tests.harness.waiting import eventually


async def test_a_list_is_json_when_piped(process):
    ended = await process("call", "support-desk", "tickets", "list", "per_page=2")

    assert ended.code == 0
    assert ended.json() == TICKETS[:2]
    assert ended.err == ""


async def test_words_are_typed_by_the_operations_schema(command, stub):
    await command("call", "support-desk", "tickets", "create", "ticket.subject=42", "ticket.requester_id=7")

    assert stub.bodies[-1]["params"] == {"ticket": {"subject": "42", "requester_id": 7}}


async def test_all_pages_are_fetched_and_printed_as_json_when_piped(command):
    piped = await command("call", "support-desk", "tickets", "list", "--all", "--select", "id")
    lines = await command("call", "support-desk", "tickets", "list", "--all", "-o", "ndjson")
    nothing = await command("call", "support-desk", "tickets", "list", "page=9", "--all")

    assert [record["id"] for record in piped.json()] == [1, 2, 3, 4, 5]
    assert [record["id"] for record in lines.lines()] == [1, 2, 3, 4, 5]
    assert nothing.json() == []


async def test_commands_print_only_the_fields_that_are_selected(command):
    listed = await command("connectors", "list", "--fields", "name,status")
    jobs = await command("jobs", "list", "--json", "--fields", "id")
    one = await command("jobs", "show", JOB_ID, "--fields", "status")
    wrong = await command("connectors", "list", "--fields", "nam")
    wrong_in_stream = await command("jobs", "list", "-o", "ndjson", "--fields", "statu")

    assert listed.json()[0] == {"name": "Help", "status": "active"}
    assert jobs.json() == [{"id": JOB_ID}]
    assert one.json() == {"status": "succeeded"}
    assert (wrong.code, "did you mean name" in wrong.err) == (2, True)
    assert (wrong_in_stream.code, "did you mean status" in wrong_in_stream.err) == (2, True)


@pytest.mark.parametrize("columns", ["80", "60"])
async def test_a_table_on_a_narrow_terminal_keeps_the_status_and_names_the_columns_left_out(command, columns):
    ended = await command("connectors", "list", "-o", "table", COLUMNS=columns)

    assert CONNECTOR_ID in ended.out
    assert "active" in ended.out
    assert max(map(len, ended.out.splitlines())) <= int(columns)
    assert "no room for " in ended.err
    assert "created_at" in ended.err


async def test_a_table_is_followed_by_a_note_about_more_records(command):
    ended = await command("call", "support-desk", "tickets", "list", "-o", "table")

    assert "Ticket 1" in ended.out
    assert "there are more records: --all" in ended.err


async def test_a_connector_is_named_by_its_name(command):
    right = await command("call", "support-desk", "tickets", "list", "-c", "Help")
    wrong = await command("call", "support-desk", "tickets", "list", "-c", "Chat")

    assert right.code == 0
    assert wrong.code == 2
    assert "is of the kind team-chat, not support-desk" in wrong.err


async def test_a_dry_run_shows_the_request(command):
    ended = await command("call", "support-desk", "tickets", "list", "--dry-run")

    shown = await command("call", "support-desk", "tickets", "list", "--dry-run", "-o", "table", COLUMNS="40")

    assert ended.json()[0]["method"] == "GET"
    assert shown.out.splitlines() == [
        "GET https://acme.example/api/v2/tickets.json?per_page=2&sort_by=created_at",
        "Authorization: ***",
        "",
        "{",
        '  "reason": "none"',
        "}",
        "",
    ]


async def test_async_prints_the_job_and_how_to_follow_it(command):
    ended = await command("call", "support-desk", "ticket_bulk_updates", "create", "ids=1,2", "--async")

    assert ended.json()["id"] == JOB_ID
    assert f"gateway jobs watch {JOB_ID}" in ended.err


async def test_a_job_is_followed_to_its_result(command, stub):
    stub.job_states += [{"status": "running"}, {"status": "succeeded", "done": True}]
    stub.job_records = [{"id": 1, "success": True}]

    ended = await command("call", "support-desk", "ticket_bulk_updates", "create", "ids=1")

    assert ended.json()["results"] == [{"id": 1, "success": True}]


async def test_a_job_that_failed_is_exit_code_6(command, stub):
    stub.job_error = problem(502, "upstream_error", "the application failed")

    ended = await command("call", "support-desk", "ticket_bulk_updates", "create", "ids=1")

    assert ended.code == 6
    assert ended.err == f"Error: the application failed (job {JOB_ID})\n"


async def test_after_ctrl_c_the_job_continues_and_a_note_says_how_to_watch_it(start, stub):
    stub.job_states += [{"status": "running"}]
    process = await start("jobs", "watch", JOB_ID)
    await stub.wait_for_requests("GET", f"/api/v1/jobs/{JOB_ID}", times=3)

    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()

    assert process.returncode == 130
    assert f"the job continues; see it with: gateway jobs watch {JOB_ID}" in err.decode()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("call", "support-desk", "tikets", "list"), 1, "support-desk has no entity 'tikets'; did you mean tickets?"),
        (("call", "crm-query", "accounts", "list"), 4, "Create one with `gateway connect KIND`"),
        (("call", "support-desk", "attachments", "download"), 2, "gateway download support-desk attachments"),
        (("call", "support-desk", "tickets", "list", "per_page"), 2, "write key=value, key:=json or @file"),
        (("cal",), 2, "did you mean call?"),
        (("types", "support-desk", "tikets"), 1, "did you mean tickets?"),
    ],
)  # fmt: skip
async def test_errors_say_how_to_fix_them(command, words, code, message):
    ended = await command(*words)

    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err


async def test_a_wrong_secret_is_exit_code_3(command):
    ended = await command("connectors", "list", GATEWAY_CLIENT_SECRET="wrong")

    assert ended.code == 3
    assert ended.err.count("\n") == 1
    assert "GATEWAY_CLIENT_SECRET" in ended.err


async def test_a_gateway_that_cannot_be_reached_is_exit_code_5(command, unused_tcp_port):
    ended = await command("connectors", "list", GATEWAY_URL=f"http://127.0.0.1:{unused_tcp_port}")

    assert ended.code == 5
    assert "Connection refused; start it with `gateway up` or set GATEWAY_URL" in ended.err


async def test_search_conditions_are_sent_as_a_query(command, stub):
    ended = await command("search", "support-desk", "tickets", "status=open", "--sort", "id:desc", "--limit", "3")

    assert ended.json() == TICKETS[:3]
    assert stub.bodies[-1]["params"]["query"] == {"filter": {"eq": {"status": "open"}}, "sort": [{"id": "desc"}]}


async def test_a_saved_file_is_reported_with_its_checksum(command, tmp_path):
    ended = await command("download", "support-desk", "attachments", "attachment_id=7", "-o", "a.bin")

    assert (tmp_path / "a.bin").read_bytes() == BLOB
    assert hashlib.sha256(BLOB).hexdigest() in ended.err
    assert ended.out == "a.bin\n"


async def test_after_ctrl_c_the_same_command_resumes_the_download(start, command, stub, tmp_path):
    stub.cuts.append(500_000)
    words = ("download", "support-desk", "attachments", "attachment_id=7", "-o", "a.bin")
    process = await start(*words)
    part = tmp_path / "a.bin.part"
    await eventually(lambda: part.exists() and part.stat().st_size >= 500_000)
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    stub.progress(500_000, None)

    ended = await command(*words)

    assert process.returncode == 130
    assert "500.0 kB are kept; the same command continues from there" in err.decode()
    assert "resumed after 500.0 kB" in ended.err
    assert (tmp_path / "a.bin").read_bytes() == BLOB


async def test_a_file_is_written_to_a_pipe(start):
    process = await start("download", "support-desk", "attachments", "attachment_id=7", "-o", "-")

    out, _ = await process.communicate()

    assert out == BLOB


async def test_a_pipe_closed_early_is_exit_code_141_without_a_message(start):
    process = await start("download", "support-desk", "attachments", "attachment_id=7", "-o", "-")
    await process.stdout.read(10)
    process.stdout._transport.close()

    assert await process.wait() == 141
    assert (await process.stderr.read()) == b""


async def test_a_connector_is_created_with_a_secret_from_a_file(command, stub, tmp_path):
    (tmp_path / "token").write_text("s3cret-token\n")

    ended = await command(
        *("connect", "support-desk", "--env", "subdomain=acme"),
        *("--credential", "email=a@b.example", "--credential", "api_token=@token"),
    )

    assert ended.json()["id"] == CONNECTOR_ID
    assert stub.bodies[-1]["credentials"] == {"email": "a@b.example", "api_token": "s3cret-token"}


async def test_the_secret_of_an_app_is_read_from_a_file_or_a_prompt(command, stub, tmp_path):
    (tmp_path / "secret").write_text("from-a-file\n")
    words = ("apps", "set", "team-chat", "--client-id", "acme-agents")

    from_file = await command(*words, "--client-secret", "@secret")
    prompted = await command(*words, stdin=b"@typed\n")

    assert (from_file.code, prompted.code) == (0, 0)
    assert [body["configuration"]["client_secret"] for body in stub.bodies] == ["from-a-file", "@typed"]


async def test_a_second_connector_of_one_name_needs_if_exists(command, stub):
    words = ("connect", "support-desk", "--name", "Help", "--env", "subdomain=acme")
    credentials = ("--credential", "email=a@b.example", "--credential", "api_token=t")

    refused = await command(*words)
    updated = await command(*words, *credentials, "--if-exists", "update")

    assert refused.code == 1
    assert f"{CONNECTOR_ID}; --if-exists update authorizes it again" in refused.err
    assert updated.code == 0
    assert stub.bodies[-1]["if_exists"] == "update"


async def test_a_reference_to_a_secret_is_sent_as_one_and_needs_a_name(command, stub):
    words = ("connect", "support-desk", "--env", "subdomain=acme", "--credential", "email=a@b.example")
    url = "vault://vault.example.com/secret/acme/desk#key=1"

    nameless = await command(*words, "--secret", url)
    of_server = await command("connect", "tracker", "--mcp", "https://mcp.example/", "--secret", f"access_token={url}")
    created = await command(*words, "--secret", f"api_token={url}")

    assert (nameless.code, of_server.code, created.code) == (2, 2, 0)
    assert stub.bodies[-1]["credentials"] == {"email": "a@b.example", "api_token": {"$secret": url}}


async def test_missing_credentials_are_named_with_their_options(command):
    ended = await command("connect", "support-desk")

    assert ended.code == 2
    assert "--env subdomain=…" in ended.err


async def test_a_private_key_is_given_as_a_file_and_never_repeated(command, stub, tmp_path):
    stub.kind["auth_methods"][0]["fields"]["api_token"]["format"] = "private_key"
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----\n"
    (tmp_path / "key.pem").write_text(key)
    words = ("connect", "support-desk", "--env", "subdomain=acme", "--credential", "email=a@b.example")

    without = await command(*words)
    unnamed = await command(*words, "--credential", f"{key}=")
    given = await command(*words, "--credential", "api_token=@key.pem")

    assert "--credential api_token=@FILE (API token)" in without.err
    assert (unnamed.code, "NAME=@FILE" in unnamed.err, "MIIEvQIBADANBgkq" in unnamed.err) == (2, True, False)
    assert given.code == 0
    assert stub.bodies[-1]["credentials"]["api_token"] == key.rstrip("\n")


async def test_a_misspelt_credential_is_named_instead_of_another_method(command):
    words = ("connect", "support-desk", "--env", "subdomain=acme")

    ended = await command(*words, "--credential", "emial=a@example.com", "--credential", "api_token=t")

    assert (ended.code, "did you mean email?" in ended.err) == (2, True)


async def test_the_consent_url_is_printed_and_the_connector_awaited(command, stub):
    stub.flow += [{"status": "pending"}, {"status": "completed", "connector_id": CONNECTOR_ID}]
    stub.kind["oauth"] = True

    ended = await command("connect", "support-desk", "--env", "subdomain=acme", "--no-browser")

    assert "http://app.test/consent" in ended.err
    assert ended.json()["id"] == CONNECTOR_ID
    assert stub.bodies[-1]["redirect_url"].startswith("http://127.0.0.1:")


async def test_a_connector_is_checked_and_deleted(command):
    checked = await command("connectors", "check", "Help")
    deleted = await command("connectors", "delete", "Help", "--yes")

    assert (checked.code, checked.out) == (0, "healthy\n")
    assert (deleted.code, deleted.err) == (0, f"deleted Help ({CONNECTOR_ID})\n")


async def test_a_deletion_needs_confirmation(command, stub):
    ended = await command("connectors", "delete", "Help", stdin=b"n\n")

    assert ended.code == 1
    assert ("DELETE", f"/api/v1/integrations/connectors/{CONNECTOR_ID}") not in stub.requests


async def test_jobs_are_listed_watched_and_read(command, stub):
    stub.events = [("status", {"status": "running"}), ("done", {"status": "succeeded", "done": True})]
    stub.job_records = [{"id": 1}, {"id": 2}]

    listed = await command("jobs", "list", "-o", "ndjson")
    watched = await command("jobs", "watch", JOB_ID, "-o", "ndjson")
    result = await command("jobs", "result", JOB_ID, "-o", "ndjson")

    assert listed.lines()[0]["id"] == JOB_ID
    assert [event["event"] for event in watched.lines()] == ["status", "done"]
    assert result.lines() == [{"id": 1}, {"id": 2}]


async def test_a_watched_job_with_failed_items_is_exit_code_6_if_asked(command, stub):
    stub.job_states.append({"status": "succeeded", "done": True, "message": "1 of 2 tickets updated, 1 failed"})
    stub.job_records = [{"id": 1, "success": True}, {"id": 2, "success": False}]

    lenient = await command("jobs", "watch", JOB_ID)
    strict = await command("jobs", "watch", JOB_ID, "--fail-on-partial")

    assert (lenient.code, strict.code) == (0, 6)
    assert strict.err == "Error: the job succeeded, but 1 of its items failed\n"


async def test_a_bulk_call_with_failed_items_is_exit_code_6_if_asked(command, stub):
    stub.job_records = [{"id": 1, "success": True}, {"id": 2, "success": False}]
    call = ("call", "support-desk", "ticket_bulk_updates", "create", "ids=1,2")

    lenient, strict = await command(*call), await command(*call, "--fail-on-partial")
    complete = await command("call", "support-desk", "tickets", "list", "--fail-on-partial")

    assert (lenient.code, strict.code, complete.code) == (0, 6, 0)
    assert strict.out == lenient.out
    assert strict.err.endswith("Error: the job succeeded, but 1 of its items failed\n")


async def test_a_connector_that_needs_a_new_sign_in_is_shown_with_the_command(command, stub):
    stub.connector_status = "needs_reauth"

    ended = await command("connectors", "show", "support-desk")

    assert f"connect it again: gateway connect support-desk --renew {CONNECTOR_ID}" in ended.err


async def test_a_misspelt_connector_is_named(command):
    for name, meant in (("suport-desk", "support-desk"), ("Hepl", "Help")):
        ended = await command("call", name, "tickets", "list")
        assert f"has no connector '{name}'; did you mean {meant}?" in ended.err


async def test_help_and_version_are_commands_too(command):
    for words, option in ((("help",), ("--help",)), (("help", "jobs", "watch"), ("jobs", "watch", "--help"))):
        assert (await command(*words)).out == (await command(*option)).out
    assert (await command("version")).out == (await command("--version")).out
    unknown = await command("help", "jbos")
    assert (unknown.code, "did you mean jobs" in unknown.err) == (2, True)
    assert (await command("help", "call", "x")).code == 2


async def test_a_watched_job_that_fails_is_exit_code_6(command, stub):
    stub.job_states.append(
        {"status": "failed", "done": True, "error": {"code": "upstream_not_found", "detail": "no such ticket"}}
    )

    ended = await command("jobs", "watch", JOB_ID)

    assert ended.code == 6
    assert ended.err == "Error: the job is failed: no such ticket\n"


async def test_a_job_is_canceled_and_retried(command):
    canceled = await command("jobs", "cancel", JOB_ID)
    again = await command("jobs", "retry", JOB_ID)

    assert canceled.code == 0
    assert again.out == f"{JOB_ID}\n"


async def test_types_show_a_call_for_each_operation(command):
    ended = await command("types", "support-desk", "tickets", "-o", "table")

    assert "gateway call support-desk tickets list per_page=2" in ended.out
    assert "gateway call support-desk tickets create ticket.subject=Fire" in ended.out


async def test_types_need_no_gateway(command):
    ended = await command("types", "team-chat", "messages", "create", "--offline", "-o", "table")

    assert ended.code == 0
    assert "gateway call team-chat messages create" in ended.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_a_completion_script_is_printed_for_each_shell(process, shell):
    ended = await process("completion", shell, PATH="/usr/bin:/bin")

    assert "_GATEWAY_COMPLETE" in ended.out


async def test_a_shell_is_offered_kinds_entities_and_actions(process):
    kinds = await process(_GATEWAY_COMPLETE="bash_complete", COMP_WORDS="gateway call support", COMP_CWORD="2")
    actions = await process(
        _GATEWAY_COMPLETE="bash_complete", COMP_WORDS="gateway call support-desk tickets ", COMP_CWORD="4"
    )

    assert kinds.out.splitlines() == ["plain,support-desk"]
    assert "plain,context_store_search" in actions.out.splitlines()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("gateway call support-desk tickets list per", ["per_page="]),
        ("gateway call support-desk tickets list sort_order=", ["sort_order=asc", "sort_order=desc"]),
        ("gateway call support-desk tickets create ticket.comment.pu", ["ticket.comment.public="]),
        ("gateway call support-desk tickets list --select id,subj", ["id,subject"]),
        ("gateway search support-desk tickets subj", ["subject"]),
        ("gateway connectors check H", ["Help"]),
        ("gateway jobs watch 0b6f", [JOB_ID]),
    ],
)
async def test_a_shell_is_offered_params_fields_connectors_and_jobs(command, words, offered, unused_tcp_port):
    ask = {"_GATEWAY_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}

    found = await command(**ask)
    unreachable = await command(**ask, GATEWAY_URL=f"http://127.0.0.1:{unused_tcp_port}")

    invalid = await command(**ask, GATEWAY_SPECS="/not/there")

    assert [line.partition(",")[2] for line in found.out.splitlines()] == offered
    assert (unreachable.code, unreachable.err) == (invalid.code, invalid.err) == (0, "")


async def test_a_file_missing_at_the_application_is_exit_code_4(command, stub, tmp_path):
    stub.missing_file = "the application has no file 7"

    into = await command("download", "support-desk", "attachments", "attachment_id=7", "-o", str(tmp_path))

    assert into.code == 4
    assert into.err == "Error: the application has no file 7\n"


async def test_examples_to_copy_are_never_wrapped(command):
    ended = await command("types", "support-desk", "tickets", "--offline", "-o", "table", COLUMNS="40")

    lines = [line.strip() for line in ended.out.splitlines()]
    assert any(line.startswith("gateway call support-desk tickets create ") and len(line) > 60 for line in lines)


async def test_output_that_is_piped_has_no_colour(command):
    ended = await command("call", "support-desk", "tickets", "list", "-o", "table")

    assert "\x1b" not in ended.out + ended.err


async def test_help_names_the_exit_codes(command):
    ended = await command("call", "--help")

    assert "130  interrupted" in ended.out


async def test_calling_loads_no_server_code(start, environment):
    import sys

    heavy = ("asyncpg", "arq", "redis", "pydantic", "pydantic_settings", "yaml", "jsonschema_rs", "gateway.settings")
    program = f"""
import sys
from gateway.cli import main
main(["call", "support-desk", "tickets", "list"], standalone_mode=False)
print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )

    _, err = await process.communicate()

    assert err.decode().strip() == "[]"


async def test_a_short_id_of_a_job_is_accepted(command, stub):
    shown = await command("jobs", "show", JOB_ID[:8])

    assert shown.json()["id"] == JOB_ID


@pytest.mark.processes
async def test_mcp_without_a_pipe_says_that_a_host_starts_it(environment, tmp_path):
    process = await asyncio.create_subprocess_exec(
        *GATEWAY, "mcp", env=environment, cwd=tmp_path, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    _, err = await process.communicate()

    assert process.returncode == 2
    assert b"standard input is not a pipe. An MCP host starts this command" in err
    assert b"Traceback" not in err


def commands(command, *names):
    """Every command below this one, with the words that name it."""
    if not isinstance(command, click.Group):
        return [(" ".join(names), command)]
    context = click.Context(command)
    children = ((name, command.get_command(context, name)) for name in command.list_commands(context))
    return [found for name, child in children for found in commands(child, *names, name)]


def test_no_option_overwrites_an_argument():
    for words, found in commands(main):
        arguments = {each.name for each in found.params if isinstance(each, click.Argument)}
        options = {each.name for each in found.params if isinstance(each, click.Option)}
        assert arguments & options == set(), words


def test_help_has_no_line_wider_than_a_terminal_but_examples_to_copy(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    wide = {
        words: [line for line in runner.invoke(main, [*words.split(), "--help"]).output.splitlines() if len(line) > 80]
        for runner, words in ((CliRunner(), words) for words in ["", *(words for words, _ in commands(main))])
    }

    prose = [line for lines in wide.values() for line in lines if not line.lstrip().startswith(("gateway ", "{"))]
    assert prose == []


def test_every_option_has_a_help_text():
    for words, found in commands(main):
        assert [each.name for each in found.params if isinstance(each, click.Option) and not each.help] == [], words
