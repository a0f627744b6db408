"""The gateway's tools as Pydantic AI tools; needs the extra `pydantic-ai`.

agent = Agent(model, tools=pydantic_ai_tools(await gateway.tools(kind="support-desk")))
"""

from collections.abc import Iterable
from typing import Any

import pydantic_ai

from gateway.client.tools import Tool
from gateway.errors import RequestError


def pydantic_ai_tools(tools: Iterable[Tool]) -> list[pydantic_ai.Tool[Any]]:
    """A Pydantic AI tool for each tool. Errors that the model can correct are returned to it, others are raised."""
    return [_pydantic_ai_tool(tool) for tool in tools]


def _pydantic_ai_tool(tool: Tool) -> pydantic_ai.Tool[Any]:
    async def run(**arguments: Any) -> Any:
        try:
            return await tool.call(arguments)
        except RequestError as error:
            raise pydantic_ai.ModelRetry(f"{error.code}: {error}") from error

    return pydantic_ai.Tool.from_schema(run, tool.name, tool.description, tool.schema)
