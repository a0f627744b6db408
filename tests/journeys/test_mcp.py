"""The Model Context Protocol of a gateway, by the official client and by raw requests."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.agents.mcp.conftest import Raw
from tests.harness.waiting import eventually

#: a file of the sandbox, which makes one of any number
ATTACHMENT = 24
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@asynccontextmanager
async def official(api, path: str = "/mcp", **options: Any) -> AsyncIterator[Client]:
    """The official client with the caller's token."""
    async with httpx2.AsyncClient(headers=api.headers, timeout=60) as http:
        url = str(api.session._build_url(path))
        async with Client(streamable_http_client(url, http_client=http), **options) as client:
            yield client


@pytest.fixture
async def mcp(api) -> AsyncIterator[Raw]:
    async with aiohttp.ClientSession(headers=api.headers) as session:
        yield Raw(session, str(api.session._build_url("/mcp")))


async def call(mcp: Raw, name: str, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
    return (await mcp("tools/call", {"name": name, "arguments": arguments}, **options)).result


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_agent_finds_describes_and_reads(api, support_desk, mode):
    async with official(api, mode=mode) as client:
        found = await client.call_tool("find_operations", {"task": "list support tickets", "kind": "support-desk"})
        described = await client.call_tool("describe_operation", {"operation": "support-desk.tickets.list"})
        read = await client.call_tool(
            "read",
            {
                "operation": "support-desk.tickets.list",
                "params": {"per_page": 2},
                "connector": support_desk.record["id"],
                "fields": ["id", "subject"],
            },
        )

    assert found.structured_content["data"][0]["operation"] == "support-desk.tickets.list"
    assert "per_page" in described.structured_content["params"]["properties"]
    assert [set(ticket) for ticket in read.structured_content["result"]] == [{"id", "subject"}] * 2
    assert read.structured_content["next"]["page"] == 2


async def test_a_page_leads_to_the_next_and_all_pages_are_one_answer(mcp, support_desk):
    arguments = {
        "operation": "support-desk.tickets.list",
        "params": {"per_page": 2},
        "connector": support_desk.record["id"],
        "fields": ["id"],
    }
    first = await call(mcp, "read", arguments)
    second = await call(mcp, "read", {**arguments, "params": first["structuredContent"]["next"]})
    long = {"operation": arguments["operation"], "connector": arguments["connector"], "fields": ["id"]}
    every = await call(mcp, "read", {**long, "all_pages": True, "max_bytes": 200_000})

    begun = first["structuredContent"]["result"] + second["structuredContent"]["result"]
    assert every["structuredContent"]["result"][:4] == begun
    assert "next" not in every["structuredContent"]


async def test_a_long_answer_is_a_preview_and_a_link_that_is_read_in_parts(mcp, support_desk):
    arguments = {
        "operation": "support-desk.tickets.list",
        "params": {"per_page": 20},
        "connector": support_desk.record["id"],
    }
    result = await call(mcp, "read", {**arguments, "max_bytes": 500})

    link = next(block for block in result["content"] if block["type"] == "resource_link")
    records, uri = [], f"{link['uri']}?limit=7"
    while uri:
        content = (await mcp("resources/read", {"uri": uri})).result["contents"][0]
        records += [json.loads(line) for line in content["text"].splitlines()]
        uri = content["_meta"]["gateway/range"].get("next")
    whole = await support_desk.execute("tickets", "list", {"per_page": 20})
    assert records == whole["result"]
    assert 0 < len(result["structuredContent"]["preview"]) < result["structuredContent"]["records"] == 20


def call_in(hint: str) -> dict[str, Any]:
    """The arguments of the call of `read` that a hint ends with."""
    arguments: dict[str, Any] = json.JSONDecoder().raw_decode(hint[hint.index("{") :])[0]
    return arguments


async def test_the_hints_of_a_long_answer_lead_a_model_to_every_record(mcp, support_desk):
    arguments = {
        "operation": "support-desk.tickets.list",
        "params": {"per_page": 20},
        "connector": support_desk.record["id"],
        "fields": ["id", "subject", "description"],
        "max_bytes": 500,
    }
    answer = (await call(mcp, "read", arguments))["structuredContent"]
    records = answer["preview"]
    while hint := answer.get("hint"):
        answer = (await call(mcp, "read", {**call_in(hint), "fields": ["id", "subject"]}))["structuredContent"]
        records += answer["result"]

    whole = await support_desk.execute("tickets", "list", {"per_page": 20})
    assert [record["id"] for record in records] == [ticket["id"] for ticket in whole["result"]]
    assert answer["result"][0].keys() == {"id", "subject"}


async def test_a_file_is_opened_by_its_hint(mcp, support_desk):
    arguments = {
        "operation": "support-desk.attachments.download",
        "params": {"attachment_id": ATTACHMENT},
        "connector": support_desk.record["id"],
    }
    answer = (await call(mcp, "read", arguments))["structuredContent"]
    opened = (await call(mcp, "read", {**call_in(answer["hint"]), "limit": 5}))["structuredContent"]
    async with aiohttp.ClientSession() as person, person.get(answer["link_for_person"]) as response:
        assert (response.status, len(await response.read())) == (200, answer["bytes"])

    assert opened["bytes"] == answer["bytes"]
    assert opened.keys() & {"text", "base64"}
    assert call_in(opened["hint"])["offset"] == 5


async def test_a_file_is_a_link_that_is_read_in_ranges(mcp, support_desk):
    arguments = {
        "operation": "support-desk.attachments.download",
        "params": {"attachment_id": ATTACHMENT},
        "connector": support_desk.record["id"],
    }
    result = await call(mcp, "read", arguments)

    uri = result["structuredContent"]["resource"]
    head = (await mcp("resources/read", {"uri": f"{uri}?offset=0&limit=5"})).result["contents"][0]
    assert head["_meta"]["gateway/range"]["count"] == 5
    assert head["_meta"]["gateway/range"]["total"] == result["structuredContent"]["bytes"]


async def test_a_write_is_shown_by_a_dry_run_and_done_once_under_its_key(mcp, support_desk, upstream_requests):
    arguments = {
        "operation": "support-desk.tickets.create",
        "params": {"ticket": {"subject": "by an agent", "comment": {"body": "hello"}}},
        "connector": support_desk.record["id"],
    }
    shown = await call(mcp, "write", {**arguments, "dry_run": True})
    first = await call(mcp, "write", {**arguments, "idempotency_key": f"k-{support_desk.record['id']}"})
    again = await call(mcp, "write", {**arguments, "idempotency_key": f"k-{support_desk.record['id']}"})

    assert shown["structuredContent"]["requests"][0]["method"] == "POST"
    assert first["structuredContent"]["result"]["subject"] == "by an agent"
    assert first["structuredContent"]["result"].keys() == {"id", "url", "subject"}
    assert again["structuredContent"] == first["structuredContent"]


@pytest.mark.parametrize(
    ("tool", "argument", "hint"),
    [
        ("write", "dryRun", "did you mean dry_run?"),
        ("read", "ticket_id", "an operation's own params belong in params"),
        ("find_operations", "query", "known: effect, kind, limit, task"),
    ],
)
async def test_a_tool_refuses_an_argument_that_it_does_not_have_before_anything_is_sent(
    mcp, support_desk, upstream_requests, tool, argument, hint
):
    arguments = {
        "write": {"operation": "support-desk.tickets.create", "params": {"ticket": {"comment": {"body": "hello"}}}},
        "read": {"operation": "support-desk.tickets.list"},
        "find_operations": {"task": "list tickets"},
    }[tool]
    before = await upstream_requests()

    result = await call(mcp, tool, {**arguments, argument: True})

    assert result["isError"] is True
    assert f"{tool} has no argument {argument!r}; " in result["structuredContent"]["message"]
    assert hint in result["structuredContent"]["message"]
    assert await upstream_requests() == before


async def test_a_write_answers_the_fields_that_are_named(mcp, support_desk):
    ticket = {"subject": "by an agent", "comment": {"body": "hello"}}
    arguments = {"operation": "support-desk.tickets.create", "params": {"ticket": ticket}, "fields": ["id", "status"]}

    result = await call(mcp, "write", {**arguments, "connector": support_desk.record["id"]})

    assert result["structuredContent"]["result"].keys() == {"id", "status"}


async def test_the_query_language_is_described_once_for_all_searches(mcp):
    search = await call(mcp, "describe_operation", {"operation": "support-desk.tickets.context_store_search"})
    language = await call(mcp, "describe_operation", {"operation": "query-language"})

    assert 'describe_operation("query-language")' in json.dumps(search["structuredContent"]["params"]).replace("\\", "")
    assert "subject" in search["structuredContent"]["fields"]["string"]
    assert language["structuredContent"]["operators"].keys() >= {"eq", "gte", "fuzzy"}


async def test_a_part_of_a_long_description_is_described_by_itself(mcp):
    operation = "workspace-notes.pages.create"
    page = await call(mcp, "describe_operation", {"operation": operation})
    block = await call(mcp, "describe_operation", {"operation": f"{operation}#block"})

    assert f"{operation}#block" in json.dumps(page["structuredContent"]["params"]["$defs"]["block"])
    assert "paragraph" in block["structuredContent"]["schema"]["properties"]


async def test_a_client_that_reads_structured_content_gets_no_copy_of_it_as_text(mcp):
    arguments = {"operation": "query-language"}
    both = await call(mcp, "describe_operation", arguments)
    once = await call(mcp, "describe_operation", arguments, capabilities={"experimental": {"structuredContent": {}}})

    assert json.loads(both["content"][0]["text"]) == both["structuredContent"] == once["structuredContent"]
    assert once["content"] == [{"type": "text", "text": "see structuredContent"}]


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("read", {"operation": "support-desk.tickets.list", "params": {"sort_order": "up", "page": 0}}, "sort_order"),
        ("read", {"operation": "support-desk.tickets.lst"}, "tickets has no action 'lst'"),
        ("read", {"operation": "support-desk.tickets.create"}, "use write"),
        ("write", {"operation": "support-desk.tickets.list", "params": {}}, "use read"),
        ("read", {}, '"operation" is a required property'),
        ("describe_operation", {"operation": "tickets"}, "kind.entity.action"),
        ("job", {"job_id": "7"}, "UUID"),
        ("read", {"operation": "gateway://results/7"}, "there is no such result"),
        ("read", {"operation": "support-desk.tickets.list", "limit": 3}, "limit cannot be used with an operation"),
    ],
)
async def test_an_error_tells_the_model_how_to_correct_its_call(mcp, support_desk, tool, arguments, words):
    if tool in ("read", "write") and arguments:
        arguments = {**arguments, "connector": support_desk.record["id"]}

    result = await call(mcp, tool, arguments)

    assert result["isError"]
    assert words in json.dumps(result["content"][0]["text"]).replace('\\"', '"').replace("\\\\", "")


async def test_all_faults_are_reported_at_once_with_an_example(mcp, support_desk):
    arguments = {
        "operation": "support-desk.tickets.list",
        "params": {"sort_order": "up", "page": 0},
        "connector": support_desk.record["id"],
    }

    result = await call(mcp, "read", arguments)

    assert len(result["structuredContent"]["faults"]) == 2
    assert result["structuredContent"]["example"]["operation"] == "support-desk.tickets.list"


BULK = {"ticket": {"status": "solved"}}


async def bulk(mcp: Raw, desk: Any, **options: Any) -> dict[str, Any]:
    listed = await desk.execute("tickets", "list", {"per_page": 3})
    arguments = {
        "operation": "support-desk.ticket_bulk_updates.create",
        "params": {"ids": ",".join(str(ticket["id"]) for ticket in listed["result"]), **BULK},
        "connector": desk.record["id"],
    }
    return await call(mcp, "write", arguments, **options)


async def test_long_work_is_a_task_for_a_client_that_takes_tasks(api, mcp, support_desk):
    created = await bulk(mcp, support_desk, capabilities=TASKS)
    task_id = created["taskId"]
    job = await api.get(f"/api/v1/jobs/{task_id}")
    await api.get(f"/api/v1/jobs/{task_id}/result?wait=60")
    task = (await mcp("tasks/get", {"taskId": task_id}, capabilities=TASKS)).result

    assert (created["resultType"], created["status"], job.status) == ("task", "working", 200)
    assert task["status"] == "completed"
    assert task["result"]["structuredContent"]["result"]["succeeded"] == 3


async def test_a_client_without_tasks_gets_the_answer_itself(mcp, support_desk):
    done = await bulk(mcp, support_desk)
    followed = await call(mcp, "job", {"job_id": done["structuredContent"]["job_id"]})

    assert done["structuredContent"]["result"]["succeeded"] == 3
    assert followed["structuredContent"] == done["structuredContent"]


async def test_the_progress_of_a_task_is_heard_on_a_subscription(mcp, support_desk):
    created = await bulk(mcp, support_desk, capabilities=TASKS)
    wanted = {"notifications": {"taskIds": [created["taskId"]]}}
    async with asyncio.timeout(60):
        stream = await mcp("subscriptions/listen", wanted, capabilities=TASKS)

    frames = [json.loads(line[6:]) for line in stream.document.splitlines() if line.startswith("data: ")]
    assert frames[0]["method"] == "notifications/subscriptions/acknowledged"
    assert [each["params"]["status"] for each in frames if each.get("method") == "notifications/tasks"][
        -1
    ] == "completed"


async def test_a_stranger_sees_neither_tasks_nor_results_nor_connectors(running, mcp, support_desk, stranger):
    created = await bulk(mcp, support_desk, capabilities=TASKS)
    async with aiohttp.ClientSession(headers=stranger.headers) as session:
        theirs = Raw(session, mcp.url)
        task = await theirs("tasks/get", {"taskId": created["taskId"]}, capabilities=TASKS)
        canceled = await theirs("tasks/cancel", {"taskId": created["taskId"]}, capabilities=TASKS)
        result = await theirs("resources/read", {"uri": f"gateway://results/{created['taskId']}"})
        connectors = await call(theirs, "connect", {})

    assert (task.code, canceled.code, result.code) == (-32602, -32602, -32602)
    assert connectors["structuredContent"]["connectors"] == []


async def test_what_is_not_connected_is_requested_where_the_client_can_open_a_page(stranger, mcp):
    arguments = {"operation": "team-chat.channels.list"}
    async with aiohttp.ClientSession(headers=stranger.headers) as session:
        theirs = Raw(session, mcp.url)
        asked = await call(theirs, "read", arguments, capabilities={"elicitation": {"url": {}}})
        told = await call(theirs, "read", arguments)

    question = asked["inputRequests"]["connect"]["params"]
    assert (asked["resultType"], question["mode"]) == ("input_required", "url")
    assert question["url"].startswith("http")
    assert told["isError"]
    assert told["structuredContent"]["connect_url"].startswith("http")


async def test_a_connected_kind_is_a_skill_whose_file_has_the_digest_of_its_entry(mcp, support_desk):
    described = (await mcp("server/discover")).result
    listed = (await mcp("skills/list")).result
    uri = "skill://support-desk/SKILL.md"
    entry = (await mcp("skills/get", {"uri": uri})).result["skill"]
    content = (await mcp("resources/read", {"uri": uri})).result["contents"][0]
    missing = await mcp("skills/get", {"uri": "skill://nothing/SKILL.md"})

    assert described["capabilities"]["extensions"]["io.modelcontextprotocol/skills"] == {}
    assert entry in listed["skills"]
    assert listed["ttlMs"] > 0
    digest = hashlib.sha256(content["text"].encode()).hexdigest()
    assert entry["resources"] == [{"uri": uri, "digest": f"sha256:{digest}"}]
    assert missing.code == -32602


async def test_a_kind_has_a_flat_list_with_what_each_operation_does(api, support_desk):
    async with official(api, "/mcp/support-desk") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        result = await client.call_tool(
            "support-desk__tickets__list", {"per_page": 1, "connector_name": support_desk.record["id"]}
        )

    assert tools["support-desk__tickets__list"].annotations.read_only_hint
    assert not tools["support-desk__tickets__create"].annotations.destructive_hint
    assert tools["support-desk__tickets__update"].annotations.destructive_hint
    assert len(result.structured_content["result"]) == 1


async def test_a_flat_list_holds_the_operations_that_were_requested(api):
    async with official(api, "/mcp?tools=team-chat.channels.*,support-desk.tickets.get") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]

    assert "support-desk__tickets__get" in names
    others = {"support-desk__tickets__get", "team-chat__search", "read"}
    assert all(name.startswith("team-chat__channels__") for name in names if name not in others)


async def test_without_a_good_token_there_is_nothing(running):
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{running.base_url}/mcp", json={}) as nobody:
            assert nobody.status == 401
        async with session.get(f"{running.base_url}/mcp") as stream:
            assert (stream.status, stream.headers["Allow"]) == (405, "POST")


async def test_a_call_is_in_the_audit_log_and_a_search_for_tools_is_not(api, mcp, support_desk):
    await call(mcp, "find_operations", {"task": "tickets"})
    arguments = {"operation": "support-desk.tickets.get", "params": {"ticket_id": 1}}
    await call(mcp, "read", {**arguments, "connector": support_desk.record["id"]})

    path = f"/api/v1/audit?connector_id={support_desk.record['id']}"

    async def is_told():
        return "tickets.get" in json.dumps((await api.get(path)).json()["data"])

    await eventually(is_told)


async def test_a_call_continues_when_the_person_has_connected_what_it_lacked(stranger, mcp):
    elicits = {"elicitation": {"url": {}}}
    arguments = {"operation": "support-desk.tickets.list", "params": {"per_page": 1}}
    async with aiohttp.ClientSession(headers=stranger.headers) as session:
        theirs = Raw(session, mcp.url)
        asked = await call(theirs, "read", arguments, capabilities=elicits)
        await stranger.connector()
        again = {"name": "read", "arguments": arguments, "requestState": asked["requestState"]}
        accepted = {"connect": {"action": "accept"}}
        done = (await theirs("tools/call", {**again, "inputResponses": accepted}, capabilities=elicits)).result

    assert len(done["structuredContent"]["result"]) == 1


@pytest.mark.parametrize("state", ["tampered", "another call's"])
async def test_a_state_that_is_not_of_this_call_is_refused(stranger, mcp, state):
    elicits = {"elicitation": {"url": {}}}
    arguments = {"operation": "team-chat.channels.list"}
    async with aiohttp.ClientSession(headers=stranger.headers) as session:
        theirs = Raw(session, mcp.url)
        asked = await call(theirs, "read", arguments, capabilities=elicits)
        sealed = asked["requestState"] + ("AAAA" if state == "tampered" else "")
        other = arguments if state == "tampered" else {"operation": "team-chat.users.list"}
        params = {
            "name": "read",
            "arguments": other,
            "requestState": sealed,
            "inputResponses": {"connect": {"action": "accept"}},
        }
        refused = await theirs("tools/call", params, capabilities=elicits)

    assert (refused.status, refused.code) == (400, -32602)


async def test_a_person_who_says_no_is_not_asked_again(stranger, mcp):
    elicits = {"elicitation": {"url": {}}}
    arguments = {"operation": "team-chat.channels.list"}
    async with aiohttp.ClientSession(headers=stranger.headers) as session:
        theirs = Raw(session, mcp.url)
        asked = await call(theirs, "read", arguments, capabilities=elicits)
        params = {
            "name": "read",
            "arguments": arguments,
            "requestState": asked["requestState"],
            "inputResponses": {"connect": {"action": "decline"}},
        }
        told = (await theirs("tools/call", params, capabilities=elicits)).result

    assert told["isError"]
    assert told["resultType"] == "complete"


async def test_one_write_runs_an_operation_for_each_of_many_params(mcp, support_desk):
    changes = [{"ticket_id": number, "ticket": {"priority": "low"}} for number in (11, 12, 999_999_999)]
    arguments = {
        "operation": "support-desk.tickets.update", "each": changes, "connector": support_desk.record["id"],
    }  # fmt: skip

    result = (await call(mcp, "write", arguments))["structuredContent"]

    assert (result["operation"], result["status"]) == ("batch", "succeeded")
    assert result["message"] == "2 of 3 operations done, 1 failed"
    assert [each["status"] for each in result["result"]["results"]] == ["succeeded", "succeeded", "failed"]
    assert result["result"]["results"][0]["result"].keys() == {"id", "url", "priority"}


async def test_steps_of_one_write_take_values_of_earlier_ones(mcp, support_desk):
    steps = [
        {"id": "new", "operation": "support-desk.tickets.create", "params": {"ticket": {"subject": "by steps"}}},
        {
            "operation": "support-desk.tickets.update",
            "params": {"ticket_id": {"$from": "new.id"}, "ticket": {"status": "solved"}},
        },
    ]

    arguments = {"steps": steps, "connector": support_desk.record["id"], "fields": ["id", "subject", "status"]}
    result = (await call(mcp, "write", arguments))["structuredContent"]

    created, updated = (each["result"] for each in result["result"]["results"])
    assert updated == {"id": created["id"], "subject": "by steps", "status": "solved"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "operation is missing"),
        ({"each": [{}]}, "operation is missing"),
        ({"operation": "support-desk.tickets.create", "each": []}, "each is empty"),
        ({"operation": "support-desk.tickets.create", "each": [{}], "params": {}}, "send one of params"),
        ({"operation": "support-desk.tickets.create", "each": [{}], "dry_run": True}, "dry_run"),
        ({"operation": "support-desk.tickets.create", "each": [{"tikcet": {}}]}, "each[0]: tickets.create"),
        ({"steps": [{"id": "a"}]}, "{id, operation, params}"),
        ({"steps": [{"operation": "support-desk.tickets.get", "params": {"ticket_id": {"$from": "a.id"}}}]}, "'a'"),
        (
            {"steps": [{"operation": name} for name in ("support-desk.tickets.list", "team-chat.users.list")]},
            "are of support-desk and team-chat",
        ),
    ],
)
async def test_a_batch_that_cannot_be_run_says_why(mcp, support_desk, arguments, text):
    result = await call(mcp, "write", {**arguments, "connector": support_desk.record["id"]})

    assert result["isError"] is True
    assert text in result["structuredContent"]["message"]
