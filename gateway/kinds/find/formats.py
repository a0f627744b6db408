"""Tool definitions in the formats of MCP, OpenAI and Anthropic. Imports little, because the client imports it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ToolDefinition:
    """A tool, independent of a format: its description for a model, and the operation that it runs."""

    #: at most 50 characters of `[a-zA-Z0-9_-]`
    name: str
    #: `kind.entity.action`
    operation: str
    title: str
    description: str
    #: JSON Schema 2020-12 of the params: an object without combinators at the top level
    schema: Mapping[str, Any]
    #: `read`, `idempotent` or `write`
    effect: str
    #: whether it may change or delete existing data
    is_destructive: bool


def as_mcp(tool: ToolDefinition) -> dict[str, Any]:
    """A `Tool` of the Model Context Protocol, with annotations for hosts that ask their users."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": dict(tool.schema),
        "annotations": annotations_of(tool),
    }


def as_openai(tool: ToolDefinition) -> dict[str, Any]:
    """A function tool of OpenAI's chat completions."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def as_anthropic(tool: ToolDefinition) -> dict[str, Any]:
    """A tool of Anthropic's messages."""
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}


def annotations_of(tool: ToolDefinition) -> dict[str, bool]:
    """The annotations of MCP; `openWorldHint` is always true, because every operation calls an application."""
    return {
        "readOnlyHint": tool.effect == "read",
        "destructiveHint": tool.is_destructive,
        "idempotentHint": tool.effect != "write",
        "openWorldHint": True,
    }


def effect_of(annotations: Mapping[str, Any]) -> str:
    """The effect for annotations of MCP."""
    if annotations.get("readOnlyHint"):
        return "read"
    return "idempotent" if annotations.get("idempotentHint") else "write"


def from_mcp(document: Mapping[str, Any], operation: str) -> ToolDefinition:
    """The definition for a tool that `as_mcp` returned."""
    return ToolDefinition(
        name=document["name"],
        operation=operation,
        title=document["title"],
        description=document["description"],
        schema=document["inputSchema"],
        effect=effect_of(document["annotations"]),
        is_destructive=bool(document["annotations"].get("destructiveHint", True)),
    )


FORMATS: Mapping[str, Callable[[ToolDefinition], dict[str, Any]]] = {
    "mcp": as_mcp,
    "openai": as_openai,
    "anthropic": as_anthropic,
}
