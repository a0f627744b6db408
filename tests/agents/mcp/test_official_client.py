"""The official Python client in each of its modes, with the fixture server."""

import json

import pytest
from mcp.client import Client
from mcp_types import CallToolResult, ElicitResult, TextContent


def text_of(result: CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
async def test_a_client_in_each_mode_lists_calls_and_reads(fixture_url, mode):
    async with Client(fixture_url, mode=mode) as client:
        tools = await client.list_tools()
        greeted = await client.call_tool("greet", {"name": "World"})
        resource = await client.read_resource("test://template/7/data")
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})

    assert "greet" in {tool.name for tool in tools.tools}
    assert text_of(greeted) == "Hello, World!"
    assert json.loads(resource.contents[0].text)["id"] == "7"
    assert prompt.messages[0].content.text == "Prompt with arguments: a, b"


async def test_a_question_reaches_the_user_and_the_answer_the_tool(fixture_url):
    async def answer(context, params):
        return ElicitResult(action="accept", content={"name": "Alice", "color": "green"})

    async with Client(fixture_url, mode="2026-07-28", elicitation_callback=answer) as client:
        result = await client.call_tool("test_input_required_result_multi_round", {})

    assert text_of(result) == "Alice likes green"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_progress_is_reported_during_the_call(fixture_url, mode):
    reported = []

    async def report(progress, total, message):
        reported.append(progress)

    async with Client(fixture_url, mode=mode) as client:
        await client.call_tool("test_tool_with_progress", {}, progress_callback=report)

    assert reported == [0, 50, 100]
