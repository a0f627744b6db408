"""Operations as tools for agent frameworks: names and descriptions for models."""

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache

import msgspec

from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.find.entries import OperationEntry, kept_with_kind
from gateway.kinds.find.formats import FORMATS, ToolDefinition
from gateway.kinds.find.schemas import compact_schema, constraint_sentences, tool_schema

#: maximum characters of a name: APIs of models take 64, of which hosts use up to 14, as in `mcp__gateway__`
MAX_NAME = 50
#: maximum characters of a description in the strictest format
MAX_DESCRIPTION = 1024
_DIGEST = 8
#: operations that are called often, and whose definitions are kept
_CALLED = 1024


@lru_cache(_CALLED)
def tool_of(entry: OperationEntry) -> ToolDefinition:
    """The tool that runs an operation."""
    sentences = [f"{entry.title} ({entry.kind.spec.application}).", entry.description, *constraint_sentences(entry)]
    description = " ".join(sentences)
    return ToolDefinition(
        name=tool_name(entry),
        operation=entry.name,
        title=entry.title,
        description=description if len(description) <= MAX_DESCRIPTION else f"{description[: MAX_DESCRIPTION - 1]}…",
        schema=compact_schema(tool_schema(entry)),
        effect=entry.effect.value,
        is_destructive=entry.is_destructive,
    )


def _encoded_as(format_: str) -> Callable[[OperationEntry], msgspec.Raw]:
    @kept_with_kind
    def encoded(entry: OperationEntry) -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(FORMATS[format_](tool_of(entry))))

    return encoded


#: format → JSON of the tool of an operation
ENCODED: Mapping[str, Callable[[OperationEntry], msgspec.Raw]] = {name: _encoded_as(name) for name in FORMATS}


def tool_name(entry: OperationEntry) -> str:
    """`support-desk__tickets__list`, shortened."""
    return short_name(entry.kind.name, entry.entity_id, entry.action_id)


def name_of_operation_tool(entry: OperationEntry) -> str:
    """The name of the tool of a server with a tool for each operation; the searches of a kind share one."""
    return short_name(entry.kind.name, "search") if entry.action_id == SEARCH_ACTION else tool_name(entry)


def short_name(*parts: str) -> str:
    """The parts as one name: unique, at most 50 of `[a-zA-Z0-9_-]`; the end of a longer name is a digest."""
    name = "__".join(parts)
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: MAX_NAME - _DIGEST - 1]}_{digest}"
