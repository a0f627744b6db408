"""Twelve tasks as a model does them through the six tools, with the calls and the tokens that each takes.

A task begins without knowledge of the gateway: operations are found by plain words, ids are read from answers. Tokens
are those of the arguments that the model writes and of the text that it reads, a common tokenizer's four characters
each.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import aiohttp

from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Api, ConnectorApi
from tests.harness.waiting import PATIENCE
from tests.kinds.find.evaluation import CHARACTERS_OF_A_TOKEN

#: the kinds that are connected, with credentials that the sandbox takes
CONNECTED = {
    "support-desk": None,
    "workspace-notes": {"token": "token"},
    "team-chat": {"bot_key": "token"},
    "work-management": {"token": "token"},
    "incident-management": {"api_key": "token"},
    "crm-records": {"private_app_token": "token"},
}
#: tickets that are not closed, and not changed since
OLD = {"filter": {"lt": {"updated_at": "2026-06-01"}, "in": {"status": ["new", "open", "pending"]}}}


class Model:
    """Calls tools, and counts what it costs."""

    def __init__(self, mcp: Raw) -> None:
        self.mcp = mcp
        self.calls = 0
        self._characters = 0
        self._shown: set[str] = set()

    @property
    def tokens(self) -> int:
        return round(self._characters / CHARACTERS_OF_A_TOKEN)

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        """The document that the tool answers, also where it is an error; names no operation that was not shown."""
        named = [arguments.get("operation"), *(step["operation"] for step in arguments.get("steps", ()))]
        assert {name for name in named if name and not name.startswith("gateway://")} <= self._shown, named
        result = (await self.mcp("tools/call", {"name": tool, "arguments": arguments})).result
        text = result["content"][0]["text"]
        self.calls += 1
        self._characters += len(json.dumps(arguments, ensure_ascii=False)) + len(text)
        return json.loads(text)

    async def found(self, task: str, operation: str) -> str:
        """The operation, which must be among the first three that are found."""
        answer = await self("find_operations", task=task)
        names = [each["operation"] for each in answer["data"]]
        assert operation in names[:3], (task, names, answer["message"])
        self._shown.update(names)
        return operation


@dataclass(frozen=True)
class World:
    """What a task acts on: the model, the connectors by kind, and the caller to look past the tools with."""

    model: Model
    connectors: dict[str, ConnectorApi]
    api: Api

    def with_another_model(self) -> "World":
        """The same with a model that has called nothing."""
        return replace(self, model=Model(self.model.mcp))

    async def record(self, kind: str, entity: str, **params: Any) -> Any:
        return (await self.connectors[kind].execute(entity, "get", params))["result"]


@asynccontextmanager
async def world_of(api: Api) -> AsyncIterator[World]:
    """Six applications connected, the tickets of one synchronized."""
    connectors = {kind: await api.connector(kind, credentials) for kind, credentials in CONNECTED.items()}
    path = f"{connectors['support-desk'].path}/context-store/sync"
    job = (await api.post(path, {"entities": ["tickets"]})).document(202)["job"]
    (await api.get(f"/api/v1/jobs/{job['id']}/result?wait={PATIENCE}")).document()
    async with aiohttp.ClientSession(headers=api.headers) as session:
        yield World(Model(Raw(session, str(api.session._build_url("/mcp")))), connectors, api)


async def close_old_tickets(world: World) -> None:
    model = world.model
    search = await model.found("search tickets by date in Zendesk", "support-desk.tickets.context_store_search")
    old = await model("read", operation=search, params={"query": OLD, "limit": 20, "fields": ["id"]})
    update = await model.found("close a ticket with a comment in Zendesk", "support-desk.tickets.update")
    ticket = {"status": "solved", "comment": {"body": "Closed, as nothing has happened since June."}}
    each = [{"ticket_id": found["id"], "ticket": ticket} for found in old["result"]["data"]]
    done = await model("write", operation=update, each=each, fields=["id"])

    assert done["message"] == "20 of 20 operations done"
    assert (await world.record("support-desk", "tickets", ticket_id=each[0]["ticket_id"]))["status"] == "solved"


async def report_into_a_page(world: World) -> None:
    model = world.model
    search = await model.found("search tickets by date in Zendesk", "support-desk.tickets.context_store_search")
    query = {"filter": {"gte": {"updated_at": "2025-03-10"}}, "sort": [{"updated_at": "desc"}]}
    params = {"query": query, "limit": 15, "fields": ["id", "status", "priority", "subject"]}
    week = (await model("read", operation=search, params=params))["result"]["data"]
    create = await model.found("create a page in Notion", "workspace-notes.pages.create")
    listed = await model("read", operation="workspace-notes.pages.list", params={"page_size": 1}, fields=["id"])
    lines = [f"{each['status']}, {each['priority']}: {each['subject']} ({each['id']})" for each in week]
    page = {
        "parent": {"page_id": listed["result"][0]["id"]},
        "properties": {"title": {"title": [{"text": {"content": "Tickets of the week"}}]}},
        "children": [
            {"type": "paragraph", "paragraph": {"rich_text": [{"type": "text", "text": {"content": "\n".join(lines)}}]}}
        ],
    }
    written = await model("write", operation=create, params=page, fields=["id", "url"])

    blocks = await world.connectors["workspace-notes"].execute("blocks", "list", {"block_id": written["result"]["id"]})
    assert blocks["result"][0]["paragraph"]["rich_text"][0]["text"]["content"] == "\n".join(lines)


async def who_is_on_call(world: World) -> None:
    operation = await world.model.found("who is on call", "incident-management.schedules.list")
    answer = await world.model("read", operation=operation, fields=["name", "current_shifts"])

    assert answer["result"][0].keys() == {"name", "current_shifts"}


async def message_to_a_channel(world: World) -> None:
    model = world.model
    create = await model.found("post a message in a Slack channel", "team-chat.messages.create")
    channel_list = await model.found("list channels in Slack", "team-chat.channels.list")
    channels = await model("read", operation=channel_list, params={"limit": 50}, fields=["id", "name"])
    general = next(each["id"] for each in channels["result"] if each["name"] == "general")
    sent = await model("write", operation=create, params={"channel": general, "text": "Lunch is ready."})

    assert sent["result"]["text"] == "Lunch is ready."


async def long_list_in_parts(world: World) -> None:
    model = world.model
    operation = await model.found("list all tickets in Zendesk", "support-desk.tickets.list")
    fields = ["id", "subject"]
    answer = await model("read", operation=operation, params={"per_page": 100}, fields=fields, max_bytes=2000)
    shown = answer["preview"]
    address = json.loads(answer["hint"].partition("read ")[2])
    rest = await model("read", **address, limit=100 - len(shown))

    assert len(shown) + len(rest["result"]) == answer["records"] == 100


async def file_for_a_person(world: World) -> None:
    operation = await world.model.found("download a ticket attachment", "support-desk.attachments.download")
    answer = await world.model("read", operation=operation, params={"attachment_id": 3})

    async with aiohttp.ClientSession() as person, person.get(answer["link_for_person"]) as response:
        assert (response.status, len(await response.read())) == (200, answer["bytes"])


async def company_by_its_website(world: World) -> None:
    model = world.model
    operation = await model.found("find a company by its website in HubSpot", "crm-records.companies.api_search")
    known = await world.connectors["crm-records"].execute("companies", "list", {"limit": 1, "properties": "domain"})
    domain = known["result"][0]["properties"]["domain"]
    where = [{"filters": [{"propertyName": "domain", "operator": "EQ", "value": domain}]}]
    answer = await model(
        "read", operation=operation, params={"filterGroups": where}, fields=["id", "properties.domain"]
    )

    assert known["result"][0]["id"] in [each["id"] for each in answer["result"]]


async def task_with_a_comment_in_steps(world: World) -> None:
    model = world.model
    create = await model.found("create a task in Asana", "work-management.tasks.create")
    story = await model.found("comment on a task in Asana", "work-management.task_stories.create")
    workspaces = await model.found("list workspaces in Asana", "work-management.workspaces.list")
    places = await model("read", operation=workspaces, fields=["gid"])
    data = {"name": "Order chairs", "workspace": places["result"][0]["gid"]}
    steps = [
        {"id": "new", "operation": create, "params": {"data": data}},
        {
            "operation": story,
            "params": {"task_gid": {"$from": "new.gid"}, "data": {"text": "Ten of them."}},
        },
    ]
    done = await model("write", steps=steps)

    created, told = (each["result"] for each in done["result"]["results"])
    assert (created["name"], told["text"]) == ("Order chairs", "Ten of them.")


async def what_cannot_be_done(world: World) -> None:
    answer = await world.model("find_operations", task="create an incident in incident.io")

    assert answer["data"] == []
    assert "no operation that creates incidents" in answer["message"]


async def application_that_is_not_connected(world: World) -> None:
    model = world.model
    operation = await model.found("sum of open opportunities per stage in Salesforce", "crm-query.query.list")
    question = "SELECT StageName, SUM(Amount) FROM Opportunity GROUP BY StageName"
    refused = await model("read", operation=operation, params={"q": question})
    link = await model("connect", kind="Salesforce")

    assert refused["error"] == "connector_not_ready"
    assert "/connect/" in link["connect_url"]


async def ticket_that_is_looked_at_first(world: World) -> None:
    model = world.model
    create = await model.found("create a ticket in Zendesk", "support-desk.tickets.create")
    described = await model("describe_operation", operation=create)
    params = {"ticket": {"subject": "The lift is stuck", "comment": {"body": "Between floors 2 and 3."}}}
    shown = await model("write", operation=create, params=params, dry_run=True)
    made = [await model("write", operation=create, params=params, idempotency_key="lift") for _ in range(2)]

    assert "ticket" in described["params"]["properties"]
    assert shown["requests"][0]["method"] == "POST"
    assert made[0]["result"] == made[1]["result"]


async def job_that_is_followed(world: World) -> None:
    model = world.model
    update = await model.found("update many tickets at once in Zendesk", "support-desk.ticket_bulk_updates.create")
    search = await model.found("search tickets by priority in Zendesk", "support-desk.tickets.context_store_search")
    query = {"filter": {"eq": {"priority": "low"}}}
    low = await model("read", operation=search, params={"query": query, "limit": 50, "fields": ["id"]})
    ids = ",".join(str(each["id"]) for each in low["result"]["data"])
    done = await model("write", operation=update, params={"ids": ids, "ticket": {"priority": "normal"}})
    followed = await model("job", job_id=done["job_id"], wait_seconds=10)

    assert followed["status"] == "succeeded"
    assert followed["result"]["succeeded"] == ids.count(",") + 1


@dataclass(frozen=True)
class Task:
    """A task, and the most that it may take."""

    name: str
    do: Callable[[World], Awaitable[None]]
    calls: int
    tokens: int
    #: calls and tokens before long answers, batches and short descriptions, where they were counted
    before: tuple[int, int | None] | None = None


TASKS = (
    # before: nine calls, and one more for each of the 20 tickets
    Task("close old tickets with a comment", close_old_tickets, 4, 2500, (29, None)),
    Task("report of a week into a page", report_into_a_page, 5, 3500, (8, 7400)),
    Task("who is on call", who_is_on_call, 2, 600),
    Task("message to a channel", message_to_a_channel, 4, 1500),
    Task("long list in parts", long_list_in_parts, 3, 2500),
    Task("file for a person", file_for_a_person, 2, 600),
    Task("company by its website", company_by_its_website, 2, 600),
    Task("task with a comment, in steps", task_with_a_comment_in_steps, 5, 1500),
    Task("what cannot be done", what_cannot_be_done, 1, 300),
    Task("application that is not connected", application_that_is_not_connected, 3, 600),
    Task("ticket that is looked at first", ticket_that_is_looked_at_first, 5, 2000),
    Task("job that is followed", job_that_is_followed, 5, 2500),
)
