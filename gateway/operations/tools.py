"""Operations as tools of agent frameworks: one definition, written as MCP, OpenAI and Anthropic have it."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.kinds.spec import Effect
from gateway.operations.entries import OperationEntry
from gateway.operations.schemas import constraint_sentences, tool_schema

#: what the strictest format allows for a name, and for a description
MAX_NAME, MAX_DESCRIPTION = 64, 1024
_DIGEST = 8


@dataclass(frozen=True)
class ToolDefinition:
    """A tool before any format: what a model reads of it, and which operation it runs."""

    name: str
    #: `kind.entity.action`
    operation: str
    title: str
    description: str
    #: JSON Schema 2020-12 of the params, an object without combinators at the top
    schema: Mapping[str, Any]
    effect: Effect


def tool_of(entry: OperationEntry) -> ToolDefinition:
    """The tool that runs an operation."""
    sentences = [f"{entry.title} ({entry.kind.spec.title}).", entry.description, *constraint_sentences(entry)]
    description = " ".join(sentences)
    return ToolDefinition(
        name=tool_name(entry),
        operation=entry.name,
        title=entry.title,
        description=description if len(description) <= MAX_DESCRIPTION else f"{description[: MAX_DESCRIPTION - 1]}…",
        schema=tool_schema(entry),
        effect=entry.effect,
    )


def tool_name(entry: OperationEntry) -> str:
    """`support-desk__tickets__list`: unique, at most 64 of `[a-zA-Z0-9_-]`; the end of a longer one is a digest."""
    name = "__".join((entry.kind.name, entry.entity_id, entry.action_id))
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: MAX_NAME - _DIGEST - 1]}_{digest}"


def as_mcp(tool: ToolDefinition) -> dict[str, Any]:
    """A `Tool` of the Model Context Protocol, with the hints that a host asks its user by."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": dict(tool.schema),
        "annotations": annotations_of(tool.effect),
    }


def as_openai(tool: ToolDefinition) -> dict[str, Any]:
    """A function tool of OpenAI's chat completions."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def as_anthropic(tool: ToolDefinition) -> dict[str, Any]:
    """A tool of Anthropic's messages."""
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}


def annotations_of(effect: Effect) -> dict[str, bool]:
    """MCP's hints; every operation reaches an application outside."""
    return {
        "readOnlyHint": effect is Effect.READ,
        "destructiveHint": effect is not Effect.READ,
        "idempotentHint": effect is not Effect.WRITE,
        "openWorldHint": True,
    }


def effect_of(annotations: Mapping[str, Any]) -> Effect:
    """The effect behind MCP's hints."""
    if annotations.get("readOnlyHint"):
        return Effect.READ
    return Effect.IDEMPOTENT if annotations.get("idempotentHint") else Effect.WRITE


FORMATS: Mapping[str, Callable[[ToolDefinition], dict[str, Any]]] = {
    "mcp": as_mcp,
    "openai": as_openai,
    "anthropic": as_anthropic,
}
