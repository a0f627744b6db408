"""One tool for each operation, for hosts with a tool search of their own; the searches of a kind share a tool."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any

import msgspec

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.features import Call, ListedTool, ListPage, ServerTool
from gateway.agents.mcp.results import Result
from gateway.agents.tools import descriptions
from gateway.agents.tools.backend import Backend
from gateway.agents.tools.general_tools import GeneralTools, errors_as_results
from gateway.agents.tools.stored_results import StoredResults
from gateway.foundation.aio.turns import in_thread
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.find.entries import OperationEntry, kept_with_kind
from gateway.kinds.find.formats import ToolDefinition, annotations_of
from gateway.kinds.find.schemas import portable_schema
from gateway.kinds.find.tools import name_of_operation_tool, tool_of
from gateway.kinds.search_schema import search_params_schema

#: operations that are compared with the patterns, and whose tools are made, on the event loop
_MANY = 50
#: the argument with the connector, if there are several; no operation has a param with this name
_CONNECTOR = "connector_name"
_CONNECTOR_SCHEMA = {"type": "string", "description": "if several fit"}
#: the argument of a search that selects the copy
_ENTITY = "entity"


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern matches the whole name, where `*` matches any text. Takes linear time and caches nothing."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *middle, last = rest
    position, end = len(first), len(name) - len(last)
    if not name.startswith(first) or not name.endswith(last) or position > end:
        return False
    for part in middle:
        found = name.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True


#: JSON of a tool, and the operations that it runs; none for the tool that reads results
_Listed = tuple[Sequence[OperationEntry], msgspec.Raw]


class OperationTools:
    """The operations whose names match a pattern, each as a tool."""

    def __init__(self, backend: Backend, general_tools: GeneralTools, patterns: tuple[str, ...]) -> None:
        self._backend = backend
        self._general_tools = general_tools
        self._patterns = patterns

    async def listed(self, context: Context) -> ListPage:
        """The tools, without those that the policies never allow to the caller."""
        known = (await self._backend.index()).entries
        # A catalog may have thousands of operations.
        tools = await in_thread(self._listed, known) if len(known) > _MANY else self._listed(known)
        entries = [entry for of_tool, _ in tools for entry in of_tool]
        offered = {entry.name for entry in await self._backend.offered(context.caller, entries)}
        shown = [tool for of_tool, tool in tools if not of_tool or any(entry.name in offered for entry in of_tool)]
        return ListPage(shown, scope="public" if len(shown) == len(tools) else "private")

    def _listed(self, known: Sequence[OperationEntry]) -> list[_Listed]:
        entries = self._matching(known)
        searches = [entry for entry in entries if entry.action_id == SEARCH_ACTION]
        return [
            *(((entry,), _encoded(entry)) for entry in entries if entry.action_id != SEARCH_ACTION),
            *((of_kind, _as_json(_search_tool(of_kind))) for of_kind in _by_kind(searches)),
            ((), _as_json(self._read_result())),
        ]

    def _matching(self, entries: Sequence[OperationEntry]) -> list[OperationEntry]:
        return [entry for entry in entries if any(matches(entry.name, pattern) for pattern in self._patterns)]

    async def named(self, context: Context, name: str) -> ServerTool | None:
        """The tool with this name; no other one is made."""
        read_result = self._read_result()
        if name == read_result.name:
            return read_result
        entries = self._matching((await self._backend.index()).by_tool.get(name, ()))
        if not entries:
            return None
        if entries[0].action_id == SEARCH_ACTION:
            return _runs(_search_tool(entries), self._search({entry.entity_id: entry for entry in entries}))
        return _runs(_tool(entries[0]), self._call(entries[0]))

    def _read_result(self) -> ServerTool:
        """The tool `read`, limited to stored results, for the hints in long answers."""
        return ServerTool(
            name="read",
            description="Read a long answer in parts, by its gateway:// URI.",
            call=errors_as_results(StoredResults(self._backend).read),
            input_schema=descriptions.RESULT_INPUT,
            annotations=descriptions.ANNOTATIONS["read"],
        )

    def _call(self, entry: OperationEntry) -> Call:
        async def call(context: Context, arguments: Mapping[str, Any]) -> Result:
            return await self._run(context, entry, arguments)

        return call

    def _search(self, searches: Mapping[str, OperationEntry]) -> Call:
        async def call(context: Context, arguments: Mapping[str, Any]) -> Result:
            params = {name: value for name, value in arguments.items() if name != _ENTITY}
            return await self._run(context, searches[arguments[_ENTITY]], params)

        return call

    async def _run(self, context: Context, entry: OperationEntry, arguments: Mapping[str, Any]) -> Result:
        params = {name: value for name, value in arguments.items() if name != _CONNECTOR}
        return await self._general_tools.run(context, entry, {"params": params, "connector": arguments.get(_CONNECTOR)})


def _tool(entry: OperationEntry) -> ListedTool:
    tool = tool_of(entry)
    properties = {**tool.schema["properties"], _CONNECTOR: _CONNECTOR_SCHEMA}
    return ListedTool(
        name=tool.name,
        description=tool.description,
        input_schema={**tool.schema, "properties": properties},
        annotations=_annotations(tool),
        title=tool.title,
    )


@kept_with_kind
def _encoded(entry: OperationEntry) -> msgspec.Raw:
    """JSON of the tool of an operation; a list of 5,000 tools would take half of a second otherwise."""
    return _as_json(_tool(entry))


def _as_json(tool: ListedTool) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(tool.as_document()))


def _by_kind(entries: Sequence[OperationEntry]) -> Iterator[Sequence[OperationEntry]]:
    for _, of_kind in groupby(entries, key=lambda entry: entry.kind.name):
        yield tuple(of_kind)


def _search_tool(searches: Sequence[OperationEntry]) -> ListedTool:
    """One tool for each kind: a tool for each search would be more than half of a list."""
    first = searches[0]
    return ListedTool(
        name=name_of_operation_tool(first),
        description=f"Filter and sort the synchronized copies of {first.kind.spec.application}.",
        input_schema=_search_schema(searches),
        annotations=_annotations(tool_of(first)),
        title=f"Search the copies of {first.kind.spec.application}",
    )


def _runs(tool: ListedTool, call: Call) -> ServerTool:
    members = {each.name: getattr(tool, each.name) for each in fields(tool)}
    return ServerTool(call=errors_as_results(call), **members)


def _annotations(tool: ToolDefinition) -> dict[str, bool]:
    """The annotations without those that mean nothing beside `readOnlyHint`, and without defaults: a list is long."""
    annotations = annotations_of(tool)
    if annotations["readOnlyHint"]:
        return {"readOnlyHint": True}
    return {name: annotations[name] for name in ("destructiveHint", "idempotentHint")}


def _search_schema(searches: Sequence[OperationEntry]) -> dict[str, Any]:
    """The arguments of a search: the copy, its connector, and the query language with the fields of each copy."""
    schema = search_params_schema(None)
    names = [entry.entity_id for entry in searches]
    of_each = "; ".join(
        f"{entry.entity_id}: {', '.join(entry.entity.search.fields)}" for entry in searches if entry.entity.search
    )
    entity = {"type": "string", "enum": names, "description": f"the copy, with the fields of each: {of_each}"}
    properties = {_ENTITY: entity, **schema["properties"], _CONNECTOR: _CONNECTOR_SCHEMA}
    required = [_ENTITY, *schema["required"]]
    return portable_schema(
        {"type": "object", "properties": properties, "required": required, "additionalProperties": False},
        schema["$defs"],
    )
