"""A server with tools for tests; the conformance suite calls the tools by their names.

Run it: `python -m tests.agents.mcp.fixture_server PORT`. Its tasks are in memory.
"""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from aiohttp import web

from gateway.agents.mcp import http
from gateway.agents.mcp.context import Context
from gateway.agents.mcp.features import Call, ListPage, ServerTool, StaticTools
from gateway.agents.mcp.messages import TASKS, RpcError, invalid_params, missing_capability
from gateway.agents.mcp.origins import is_origin_allowed, origins_of
from gateway.agents.mcp.request_state import RequestStates
from gateway.agents.mcp.results import Result, elicitation, input_required, page, text, tool_result
from gateway.agents.mcp.server import Server
from gateway.foundation.vault.sealed_text import SealedText

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
STRING = {"type": "string"}
NAME = elicitation("What is your name?", {"name": STRING})
SAMPLING = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}],
        "maxTokens": 100,
    },
}
ROOTS = {"method": "roots/list", "params": {}}
CALLER = "anybody"


def answered(context: Context, key: str, member: str) -> str | None:
    """The text that the user entered for a question; None if there is none."""
    given = context.input_responses.get(key)
    content = given.get("content") if isinstance(given, Mapping) and given.get("action") == "accept" else None
    value = content.get(member) if isinstance(content, Mapping) else None
    return value if isinstance(value, str) else None


# --- content ---


def fixed(*content: dict[str, Any]) -> Call:
    async def call(context: Context, arguments: Mapping[str, Any]) -> Result:
        return tool_result(*content)

    return call


def embedded(uri: str, media_type: str, content: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "text": content}}


async def fail(context: Context, arguments: Mapping[str, Any]) -> Result:
    return tool_result(text("This tool intentionally returns an error for testing"), is_error=True)


async def send_progress(context: Context, arguments: Mapping[str, Any]) -> Result:
    for progress in (0, 50, 100):
        await context.progress(progress, 100, f"Completed step {progress} of 100")
    return tool_result(text("done"))


async def write_log(context: Context, arguments: Mapping[str, Any]) -> Result:
    await context.log("info", "Tool execution started")
    return tool_result(text("logged"))


async def need_sampling(context: Context, arguments: Mapping[str, Any]) -> Result:
    context.require(sampling={})
    return tool_result(text("sampled"))


async def wait_until_canceled(context: Context, arguments: Mapping[str, Any]) -> Result:
    """Sends progress and then waits; sets `CANCELED` when it is canceled."""
    await context.progress(0)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        CANCELED.set()
        raise
    raise AssertionError


CANCELED = asyncio.Event()


# --- questions to the user ---


async def ask_name(context: Context, arguments: Mapping[str, Any]) -> Result:
    name = answered(context, "user_name", "name")
    return tool_result(text(f"Hello, {name}!")) if name else input_required({"user_name": NAME})


async def ask_model(context: Context, arguments: Mapping[str, Any]) -> Result:
    given = context.input_responses.get("capital_question")
    return tool_result(text(given["content"]["text"])) if given else input_required({"capital_question": SAMPLING})


async def ask_roots(context: Context, arguments: Mapping[str, Any]) -> Result:
    given = context.input_responses.get("client_roots")
    return tool_result(text(json.dumps(given["roots"]))) if given else input_required({"client_roots": ROOTS})


def confirming(states: RequestStates) -> Call:
    async def call(context: Context, arguments: Mapping[str, Any]) -> Result:
        state = states.opened(context.message, CALLER)
        if state and "confirm" in context.input_responses:
            return tool_result(text(f"state-ok {state['round']}"))
        question = elicitation("Please confirm", {"ok": {"type": "boolean"}})
        return input_required({"confirm": question}, states.sealed(context.message, CALLER, {"round": 1}))

    return call


def asking_three(states: RequestStates) -> Call:
    asked = {"user_name": NAME, "greeting": SAMPLING, "client_roots": ROOTS}

    async def call(context: Context, arguments: Mapping[str, Any]) -> Result:
        if states.opened(context.message, CALLER) is not None and asked.keys() <= context.input_responses.keys():
            return tool_result(text("all answered"))
        return input_required(asked, states.sealed(context.message, CALLER, {}))

    return call


def asking_twice(states: RequestStates) -> Call:
    async def call(context: Context, arguments: Mapping[str, Any]) -> Result:
        state = states.opened(context.message, CALLER) or {}
        name = state.get("name") or answered(context, "step1", "name")
        color = answered(context, "step2", "color")
        if name and color:
            return tool_result(text(f"{name} likes {color}"))
        question = ("step2", "Step 2: What is your favorite color?", "color")
        if not name:
            question = ("step1", "Step 1: What is your name?", "name")
        key, words, member = question
        sealed = states.sealed(context.message, CALLER, {"name": name})
        return input_required({key: elicitation(words, {member: STRING})}, sealed)

    return call


async def ask_what_client_can(context: Context, arguments: Mapping[str, Any]) -> Result:
    possible = {"elicitation": ("user_name", NAME), "sampling": ("capital_question", SAMPLING)}
    asked = dict(question for capability, question in possible.items() if context.can(capability))
    return input_required(asked) if asked else tool_result(text("nothing can be asked"))


# --- tasks ---


@dataclass
class MemoryTask:
    """A task that runs in this process."""

    id: str = field(default_factory=lambda: str(uuid4()))
    status: str = "working"
    questions: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    outcome: dict[str, Any] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    running: asyncio.Task[None] | None = None
    created_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat())

    def seed(self) -> dict[str, Any]:
        return {
            "taskId": self.id,
            "status": self.status,
            "createdAt": self.created_at,
            "lastUpdatedAt": datetime.now(UTC).isoformat(),
            "ttlMs": 600_000,
            "pollIntervalMs": 100,
        }

    async def ask(self, questions: dict[str, Any]) -> dict[str, Any]:
        """Ask questions and wait until the client has answered all of them."""
        self.questions, self.status = questions, "input_required"
        while self.questions:
            self.changed.clear()
            await self.changed.wait()
        self.status = "working"
        return self.answers


class MemoryTasks:
    """Tasks by their ids."""

    def __init__(self) -> None:
        self._tasks: dict[str, MemoryTask] = {}

    def started(self, work: Any) -> Result:
        task = MemoryTask()
        self._tasks[task.id] = task
        task.running = asyncio.create_task(self._run(task, work))
        return {"resultType": "task", **task.seed()}

    async def _run(self, task: MemoryTask, work: Any) -> None:
        try:
            result = await work(task)
        except RpcError as error:
            task.status, task.outcome = "failed", {"error": error.as_document()}
        except asyncio.CancelledError:
            task.status = "cancelled"
        else:
            task.status, task.outcome = "completed", {"result": result}

    def _named(self, task_id: str) -> MemoryTask:
        if task_id not in self._tasks:
            raise invalid_params("there is no such task")
        return self._tasks[task_id]

    async def get(self, context: Context, task_id: str) -> Result:
        task = self._named(task_id)
        questions = {"inputRequests": task.questions} if task.status == "input_required" else {}
        return {**task.seed(), **task.outcome, **questions}

    async def update(self, context: Context, task_id: str, responses: Mapping[str, Any]) -> None:
        task = self._named(task_id)
        for key in set(responses) & set(task.questions):
            task.answers[key] = responses[key]
            task.questions = {each: question for each, question in task.questions.items() if each != key}
        task.changed.set()

    async def cancel(self, context: Context, task_id: str) -> None:
        task = self._named(task_id)
        if task.running and task.status in ("working", "input_required"):
            task.status = "cancelled"
            task.running.cancel()


def tasked(tasks: MemoryTasks, work: Any) -> Call:
    """A tool that runs as a task if the client has tasks, else inline."""

    async def call(context: Context, arguments: Mapping[str, Any]) -> Result:
        async def bound(task: MemoryTask | None) -> Result:
            return await work(task, arguments)

        return tasks.started(bound) if context.message.has_tasks else await bound(None)

    return call


async def greet(context: Context, arguments: Mapping[str, Any]) -> Result:
    return tool_result(text(f"Hello, {arguments['name']}!"))


async def compute(task: MemoryTask | None, arguments: Mapping[str, Any]) -> Result:
    await asyncio.sleep(arguments.get("seconds", 0))
    return tool_result(text(f"computed {arguments.get('label')}"))


async def fail_later(task: MemoryTask | None, arguments: Mapping[str, Any]) -> Result:
    return tool_result(text("the job failed"), is_error=True)


async def break_protocol(task: MemoryTask | None, arguments: Mapping[str, Any]) -> Result:
    raise RpcError(-32603, "internal error")


async def confirm_delete(task: MemoryTask | None, arguments: Mapping[str, Any]) -> Result:
    assert task
    await task.ask({"confirm": elicitation(f"Delete {arguments['filename']}?", {"confirm": {"type": "boolean"}})})
    return tool_result(text(f"deleted {arguments['filename']}"))


async def ask_two(task: MemoryTask | None, arguments: Mapping[str, Any]) -> Result:
    assert task
    await task.ask({"first": NAME, "second": elicitation("Sure?", {"confirm": {"type": "boolean"}})})
    return tool_result(text("both answered"))


def asking_then_tasked(tasks: MemoryTasks) -> Call:
    async def call(context: Context, arguments: Mapping[str, Any]) -> Result:
        name = answered(context, "user_name", "name")
        if name is None:
            return input_required({"user_name": NAME})

        async def work(task: MemoryTask) -> Result:
            return tool_result(text(f"Hello, {name}!"))

        return tasks.started(work)

    return call


# --- resources, prompts, completions, subscriptions ---

STATIC = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
}
PROMPT_ARGUMENTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
LIST_CHANGES = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
}


class FixtureResources:
    """Two resources and a template."""

    async def listed(self, context: Context) -> ListPage:
        return ListPage(
            [
                {"uri": uri, "name": uri.removeprefix("test://"), "mimeType": content["mimeType"]}
                for uri, content in STATIC.items()
            ]
        )

    async def templates(self, context: Context) -> ListPage:
        template = {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}
        return ListPage([template])

    async def read(self, context: Context, uri: str) -> Result:
        match = re.fullmatch(r"test://template/([^/]+)/data", uri)
        if match:
            document = {"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"}
            content = {"mimeType": "application/json", "text": json.dumps(document)}
        elif uri in STATIC:
            content = STATIC[uri]
        else:
            raise RpcError(-32602, f"there is no resource {uri}", {"uri": uri})
        return page("contents", [{"uri": uri, **content}], ttl_ms=1000, scope="private")


class FixturePrompts:
    """Prompts with each type of content."""

    async def listed(self, context: Context) -> ListPage:
        return ListPage(
            [
                {
                    "name": name,
                    "description": f"The prompt {name}",
                    "arguments": [{"name": each, "description": each, "required": True} for each in names],
                }
                for name, names in PROMPT_ARGUMENTS.items()
            ]
        )

    async def get(self, context: Context, name: str, arguments: Mapping[str, str]) -> Result:
        match name:
            case "test_simple_prompt":
                return self._messages(text("This is a simple prompt for testing."))
            case "test_prompt_with_arguments":
                return self._messages(text(f"Prompt with arguments: {arguments['arg1']}, {arguments['arg2']}"))
            case "test_prompt_with_embedded_resource":
                resource = embedded(arguments["resourceUri"], "text/plain", "Embedded resource content for testing.")
                return self._messages(resource, text("Please process the embedded resource above."))
            case "test_prompt_with_image":
                image = {"type": "image", "data": PNG, "mimeType": "image/png"}
                return self._messages(image, text("Please analyze the image above."))
            case "test_input_required_result_prompt":
                about = answered(context, "user_context", "context")
                if about is None:
                    question = elicitation("What context should the prompt use?", {"context": STRING})
                    return input_required({"user_context": question})
                return self._messages(text(f"Context: {about}"))
        raise invalid_params(f"there is no prompt {name!r}")

    def _messages(self, *content: dict[str, Any]) -> Result:
        return {"messages": [{"role": "user", "content": each} for each in content]}


class FixtureCompletions:
    """The same suggestions for every argument."""

    async def complete(self, context: Context, params: Mapping[str, Any]) -> Result:
        begun = params["argument"]["value"]
        values = [each for each in ("paris", "park", "party") if each.startswith(begun)]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}


class ListChanges:
    """Notifies subscribers that a list has changed, when a tool is called."""

    capabilities: Mapping[str, Mapping[str, Any]] = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}}

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[str]] = set()

    def honored(self, context: Context, wanted: Mapping[str, Any]) -> dict[str, Any]:
        if "taskIds" in wanted and not context.message.has_tasks:
            raise missing_capability({"extensions": {TASKS: {}}})
        return {name: True for name in LIST_CHANGES if wanted.get(name)}

    async def notifications(self, context: Context, honored: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        listener: asyncio.Queue[str] = asyncio.Queue()
        self._listeners.add(listener)
        try:
            while True:
                name = await listener.get()
                if name in honored:
                    yield {"jsonrpc": "2.0", "method": LIST_CHANGES[name], "params": {}}
        finally:
            self._listeners.discard(listener)

    def changing(self, name: str) -> Call:
        async def call(context: Context, arguments: Mapping[str, Any]) -> Result:
            for listener in self._listeners:
                listener.put_nowait(name)
            return tool_result(text("changed"))

        return call


def fixture_server() -> Server:
    """The server with all features."""
    states, tasks, changes = RequestStates(SealedText(bytes(32))), MemoryTasks(), ListChanges()
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    mixed = embedded("test://mixed-content-resource", "application/json", '{"test": "data", "value": 123}')
    calls: dict[str, Call] = {
        "test_simple_text": fixed(text("This is a simple text response for testing.")),
        "test_image_content": fixed(image),
        "test_audio_content": fixed({"type": "audio", "data": WAV, "mimeType": "audio/wav"}),
        "test_embedded_resource": fixed(
            embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
        ),
        "test_multiple_content_types": fixed(text("Multiple content types test:"), image, mixed),
        "test_error_handling": fail,
        "test_tool_with_progress": send_progress,
        "test_logging_tool": write_log,
        "test_tool_with_logging": write_log,
        "test_missing_capability": need_sampling,
        "test_streaming_elicitation": ask_name,
        "test_trigger_tool_change": changes.changing("toolsListChanged"),
        "test_trigger_prompt_change": changes.changing("promptsListChanged"),
        "test_input_required_result_elicitation": ask_name,
        "test_input_required_result_sampling": ask_model,
        "test_input_required_result_list_roots": ask_roots,
        "test_input_required_result_request_state": confirming(states),
        "test_input_required_result_tampered_state": confirming(states),
        "test_input_required_result_multiple_inputs": asking_three(states),
        "test_input_required_result_multi_round": asking_twice(states),
        "test_input_required_result_capabilities": ask_what_client_can,
        "slow_compute": tasked(tasks, compute),
        "protocol_error_job": tasked(tasks, break_protocol),
        "confirm_delete": tasked(tasks, confirm_delete),
        "multi_input": tasked(tasks, ask_two),
        "wait_until_canceled": wait_until_canceled,
    }
    tools = [ServerTool(name=name, description=f"The fixture {name}", call=call) for name, call in calls.items()]
    named = {"type": "object", "properties": {"name": STRING}, "required": ["name"]}
    routed = {"type": "object", "properties": {"region": {**STRING, "x-mcp-header": "Region"}}}
    schema_words = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"city": STRING}}},
        "properties": {"name": STRING, "address": {"$ref": "#/$defs/address"}, "phone": STRING, "email": STRING},
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"required": ["phone"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }
    tools += [
        ServerTool(
            name="json_schema_2020_12_tool",
            description="Has many schema keywords",
            call=fixed(text("ok")),
            input_schema=schema_words,
        ),
        ServerTool(name="greet", description="Says hello", call=greet, input_schema=named),
        ServerTool(
            name="routed", description="Has a param with a header", call=fixed(text("routed")), input_schema=routed
        ),
        ServerTool(name="failing_job", description="Always fails", call=tasked(tasks, fail_later), needs_tasks=True),
        ServerTool(
            name="test_tool_with_task", description="Asks, then works", call=asking_then_tasked(tasks), needs_tasks=True
        ),
    ]
    return Server(
        "fixture",
        "1.0.0",
        tools=StaticTools(tools),
        resources=FixtureResources(),
        prompts=FixturePrompts(),
        completions=FixtureCompletions(),
        tasks=tasks,
        subscriptions=changes,
    )


def fixture_app(port: int) -> web.Application:
    """The server over HTTP; of pages, only those of its own origin are allowed."""
    server, origins = fixture_server(), origins_of(f"http://127.0.0.1:{port}")

    async def post(request: web.Request) -> web.StreamResponse:
        if not is_origin_allowed(request, origins):
            return web.Response(status=403)
        try:
            document = json.loads(await request.read())
        except ValueError:
            return await http.parse_error()
        return await http.handle(request, server, document, caller=CALLER)

    async def refuse(request: web.Request) -> web.StreamResponse:
        return web.Response(status=405, headers={"Allow": "POST"})

    app = web.Application()
    app.router.add_post("/mcp", post)
    app.router.add_get("/mcp", refuse)
    app.router.add_delete("/mcp", refuse)
    return app


if __name__ == "__main__":
    web.run_app(fixture_app(int(sys.argv[1])), host="127.0.0.1", port=int(sys.argv[1]))
