"""The gateway's tools as LlamaIndex tools; needs the extra `llama-index`.

agent = FunctionAgent(llm=llm, tools=llama_index_tools(await gateway.tools(kind="support-desk")))
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from llama_index.core.tools import FunctionTool, ToolMetadata

from gateway.client.tools import Tool
from gateway.errors import GatewayError


def llama_index_tools(tools: Iterable[Tool]) -> list[FunctionTool]:
    """A `FunctionTool` for each tool. Results are JSON; errors are returned to the model."""
    return [_function_tool(tool) for tool in tools]


@dataclass
class _Metadata(ToolMetadata):
    """Metadata with a JSON Schema, which LlamaIndex otherwise makes of a Pydantic model."""

    schema: dict[str, Any] = field(default_factory=dict)

    def get_parameters_dict(self) -> dict[str, Any]:
        return self.schema


def _function_tool(tool: Tool) -> FunctionTool:
    async def run(**arguments: Any) -> str:
        try:
            return msgspec.json.encode(await tool.call(arguments)).decode()
        except GatewayError as error:
            raise ValueError(f"{error.code}: {error}") from error

    metadata = _Metadata(tool.description, tool.name, fn_schema=None, schema=tool.schema)
    return FunctionTool(async_fn=run, metadata=metadata)
