"""The gateway's tools as tools of OpenAI Agents; needs the extra `openai-agents`.

agent = Agent("Support", tools=openai_agents_tools(await gateway.tools(kind="support-desk")))
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from agents import FunctionTool
from agents.tool_context import ToolContext

from gateway.client.tools import Tool
from gateway.errors import GatewayError


def openai_agents_tools(tools: Iterable[Tool]) -> list[FunctionTool]:
    """A `FunctionTool` for each tool. Results are JSON; errors are returned to the model.

    Schemas are not in the strict mode, because in it a model has to give every param, also the optional ones.
    """
    return [_function_tool(tool) for tool in tools]


def _function_tool(tool: Tool) -> FunctionTool:
    async def run(_context: ToolContext[Any], arguments: str) -> str:
        try:
            params = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
        except msgspec.MsgspecError as error:
            return f"invalid_params: the arguments are not a JSON object: {error}"
        try:
            return msgspec.json.encode(await tool.call(params)).decode()
        except GatewayError as error:
            return f"{error.code}: {error}"

    return FunctionTool(tool.name, tool.description, tool.schema, run, strict_json_schema=False)
