"""The gateway's tools as LangChain tools; needs the extra `langchain`.

tools = langchain_tools(await gateway.tools(kind="support-desk"))
agent = create_agent(model, tools)
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from gateway.client.tools import Tool
from gateway.errors import GatewayError


def langchain_tools(tools: Iterable[Tool]) -> list[BaseTool]:
    """A LangChain tool for each tool. Results are JSON; errors are returned to the model."""
    return [_langchain_tool(tool) for tool in tools]


def _langchain_tool(tool: Tool) -> BaseTool:
    async def run(**arguments: Any) -> str:
        try:
            return msgspec.json.encode(await tool.call(arguments)).decode()
        except GatewayError as error:
            raise ToolException(f"{error.code}: {error}") from error

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.schema,
        coroutine=run,
        handle_tool_error=True,
        metadata={"operation": tool.operation, "effect": tool.effect},
    )
