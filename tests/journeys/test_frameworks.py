"""The gateway's tools in agent frameworks: the framework itself, a scripted model, and a gateway.

A framework is imported in its test: that takes a second, and every process of the tests collects this file.
"""

import asyncio
import base64
import json
from uuid import uuid4

import pytest

from gateway.client import Gateway, SyncGateway
from gateway.errors import InvalidParams
from gateway.sandbox.files import number_for

CREDENTIALS = {"email": "agent@example.com", "api_token": "token"}
GET, UPDATE = "support-desk__tickets__get", "support-desk__tickets__update"
#: what the model asks for: a call that is refused, the same corrected, and what it says in the end
CALLS = [(GET, {"ticket_id": "first"}), (UPDATE, {"ticket_id": 1, "ticket": {"priority": "urgent"}})]
FINAL = "It is urgent now."


@pytest.fixture
def account(running):
    return (running.base_url, running.client_id, running.client_secret, f"w-{uuid4().hex[:8]}")


@pytest.fixture
async def gateway(account):
    async with Gateway(*account) as opened:
        await opened.connectors.create("support-desk", CREDENTIALS, environment={"subdomain": "acme"})
        yield opened


async def test_a_tool_runs_its_operation_on_the_only_connector_of_its_kind(gateway):
    [tool] = await gateway.tools(operations=["support-desk.tickets.list"])

    found = await tool(per_page=2)

    assert (tool.name, tool.operation, tool.effect) == (
        "support-desk__tickets__list",
        "support-desk.tickets.list",
        "read",
    )
    assert len(found) == 2
    assert tool.definition("openai")["function"]["parameters"] == tool.schema


@pytest.mark.parametrize(
    ("size", "range_header", "answered", "complete"),
    [(100, None, 100, True), (100, "bytes=0-9", 10, True), (200_000, None, 64 * 1024, False)],
)
async def test_a_file_comes_with_its_bytes_as_far_as_a_model_may_want_them(
    gateway, size, range_header, answered, complete
):
    [tool] = await gateway.tools(operations=["support-desk.attachments.download"])
    params = {"attachment_id": number_for(size), **({"range_header": range_header} if range_header else {})}

    file = await tool.call(params)

    assert (file["bytes"], file["complete"]) == (answered, complete)
    content = base64.b64decode(file["content"]) if file["encoding"] == "base64" else file["content"].encode()
    assert len(content) == answered


async def test_a_refused_call_is_an_error_with_its_fault(gateway):
    [tool] = await gateway.tools(operations=[f"{GET.replace('__', '.')}"])

    with pytest.raises(InvalidParams, match="ticket_id"):
        await tool.call({})


async def test_tools_without_a_loop(account, gateway):
    def journey():
        with SyncGateway(*account) as synchronous:
            [tool] = synchronous.tools(operations=["support-desk.tickets.get"])
            return tool.name, tool(ticket_id=1)["id"], synchronous.find_operations("close a ticket").data[0].operation

    assert await asyncio.to_thread(journey) == (GET, 1, "support-desk.tickets.update")


async def test_langchain_runs_the_tools_and_tells_the_model_what_is_wrong(gateway):
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, ToolMessage

    from gateway.client.langchain import langchain_tools

    class ScriptedChat(GenericFakeChatModel):
        """LangChain's own scripted model, which takes tools and keeps to its script."""

        def bind_tools(self, tools, **options):
            return self

    tools = langchain_tools(await gateway.tools(kind="support-desk"))
    script = [
        *(AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"c{name}"}]) for name, args in CALLS),
        AIMessage(FINAL),
    ]
    agent = create_agent(ScriptedChat(messages=iter(script)), tools)

    ended = await agent.ainvoke({"messages": [("user", "Make ticket 1 urgent")]})

    refused, done = [message for message in ended["messages"] if isinstance(message, ToolMessage)]
    assert refused.status == "error"
    assert "ticket_id" in refused.content
    assert json.loads(done.content)["priority"] == "urgent"
    assert ended["messages"][-1].content == FINAL


async def test_pydantic_ai_runs_the_tools_and_tells_the_model_what_is_wrong(gateway):
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    from gateway.client.pydantic_ai import pydantic_ai_tools

    tools = pydantic_ai_tools(await gateway.tools(kind="support-desk"))
    script = iter([*(ModelResponse([ToolCallPart(*call)]) for call in CALLS), ModelResponse([TextPart(FINAL)])])
    agent = Agent(FunctionModel(lambda messages, info: next(script)), tools=tools)

    ended = await agent.run("Make ticket 1 urgent")

    parts = [part for message in ended.all_messages() if isinstance(message, ModelRequest) for part in message.parts]
    refused, done = [part for part in parts if isinstance(part, ToolReturnPart)]
    assert refused.outcome == "retried"
    assert "ticket_id" in refused.content
    assert done.content["priority"] == "urgent"
    assert ended.output == FINAL


async def test_openai_agents_run_the_tools_and_tell_the_model_what_is_wrong(gateway):
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, ToolCallOutputItem, Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from gateway.client.openai_agents import openai_agents_tools

    def called(number: int, name: str, arguments: str) -> ResponseFunctionToolCall:
        return ResponseFunctionToolCall(arguments=arguments, call_id=f"c{number}", name=name, type="function_call")

    said = ResponseOutputText(annotations=[], text=FINAL, type="output_text")
    calls = [(GET, "[1]"), *((name, json.dumps(arguments)) for name, arguments in CALLS)]
    script = iter(
        [
            *(called(number, *call) for number, call in enumerate(calls)),
            ResponseOutputMessage(id="m", content=[said], role="assistant", status="completed", type="message"),
        ]
    )

    class ScriptedModel(Model):
        """A model that keeps to its script."""

        async def get_response(self, *request, **options):
            return ModelResponse(output=[next(script)], usage=Usage(), response_id=None)

        def stream_response(self, *request, **options):
            raise AssertionError("this run does not stream")

    tools = openai_agents_tools(await gateway.tools(kind="support-desk"))
    agent = Agent("Support", model=ScriptedModel(), tools=tools)

    ended = await Runner.run(agent, "Make ticket 1 urgent", run_config=RunConfig(tracing_disabled=True))

    no_object, refused, done = [item.output for item in ended.new_items if isinstance(item, ToolCallOutputItem)]
    assert "not a JSON object" in no_object
    assert refused.startswith("invalid_params: ")
    assert "ticket_id" in refused
    assert json.loads(done)["priority"] == "urgent"
    assert ended.final_output == FINAL


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # LlamaIndex reads deprecated members of Pydantic
async def test_llama_index_runs_the_tools_and_tells_the_model_what_is_wrong(gateway):
    from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
    from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
    from llama_index.core.llms.mock import MockFunctionCallingLLM

    from gateway.client.llama_index import llama_index_tools

    script = iter(
        [
            *(
                ChatMessage(
                    role="assistant", blocks=[ToolCallBlock(tool_call_id=name, tool_name=name, tool_kwargs=args)]
                )
                for name, args in CALLS
            ),
            ChatMessage(FINAL, role="assistant"),
        ]
    )
    model = MockFunctionCallingLLM(response_generator=lambda messages, **options: next(script), is_chat_model=True)
    tools = llama_index_tools(await gateway.tools(kind="support-desk"))

    run = FunctionAgent(llm=model, tools=tools, streaming=False).run("Make ticket 1 urgent")
    results = [event.tool_output async for event in run.stream_events() if isinstance(event, ToolCallResult)]

    refused, done = results
    assert (refused.is_error, "ticket_id" in refused.content) == (True, True)
    assert json.loads(done.content)["priority"] == "urgent"
    assert str(await run) == FINAL
    assert (
        "ticket_id"
        in next(tool for tool in tools if tool.metadata.name == GET).metadata.get_parameters_dict()["required"]
    )
