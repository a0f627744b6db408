"""One tool for each operation, for hosts with a tool search of their own; the searches of a kind share a tool."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.features import Call, ListPage, ServerTool
from gateway.agents.mcp.results import Result
from gateway.agents.tools import descriptions
from gateway.agents.tools.backend import Backend
from gateway.agents.tools.general_tools import GeneralTools, errors_as_results
from gateway.agents.tools.stored_results import StoredResults
from gateway.foundation.aio.turns import in_thread
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.find.entries import OperationEntry
from gateway.kinds.find.formats import ToolDefinition, annotations_of
from gateway.kinds.find.schemas import portable_schema
from gateway.kinds.find.tools import short_name, tool_name, tool_of
from gateway.kinds.search_schema import search_params_schema

#: operations whose tools are made in a thread
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


#: a tool, and the operations that it runs; none for the tool that reads results
_Made = tuple[Sequence[OperationEntry], ServerTool]


class OperationTools:
    """The operations whose names match a pattern, each as a tool, which is made when it is listed or called."""

    def __init__(self, backend: Backend, general_tools: GeneralTools, patterns: tuple[str, ...]) -> None:
        self._backend = backend
        self._general_tools = general_tools
        self._patterns = patterns

    async def _entries(self) -> Sequence[OperationEntry]:
        known = (await self._backend.index()).entries
        return [entry for entry in known if any(matches(entry.name, pattern) for pattern in self._patterns)]

    def _tools_of(self, entries: Sequence[OperationEntry]) -> list[_Made]:
        searches = [entry for entry in entries if entry.action_id == SEARCH_ACTION]
        return [
            *(((entry,), self._tool(entry)) for entry in entries if entry.action_id != SEARCH_ACTION),
            *self._searches(searches),
            ((), self._read_result()),
        ]

    def _searches(self, entries: Sequence[OperationEntry]) -> Iterator[_Made]:
        """One tool for each kind: a tool for each search would be more than half of a list."""
        for kind, of_kind in groupby(entries, key=lambda entry: entry.kind):
            searches = {entry.entity_id: entry for entry in of_kind}
            first = next(iter(searches.values()))
            tool = ServerTool(
                name=_tool_name(first),
                description=f"Filter and sort the synchronized copies of {kind.spec.application}.",
                call=errors_as_results(self._search(searches)),
                input_schema=_search_schema(searches),
                annotations=_annotations(tool_of(first)),
                title=f"Search the copies of {kind.spec.application}",
            )
            yield tuple(searches.values()), tool

    async def listed(self, context: Context) -> ListPage:
        """The tools, without those that the policies never allow to the caller."""
        entries = await self._entries()
        # A kind may have thousands of operations.
        is_long = len(entries) > _MANY
        tools = await in_thread(self._tools_of, entries) if is_long else self._tools_of(entries)
        offered = {entry.name for entry in await self._backend.offered(context.caller, entries)}
        shown = [tool for of_tool, tool in tools if not of_tool or any(entry.name in offered for entry in of_tool)]
        documents = [tool.as_document() for tool in shown]
        return ListPage(documents, scope="public" if len(shown) == len(tools) else "private")

    async def named(self, context: Context, name: str) -> ServerTool | None:
        """The tool with this name; no other one is made."""
        entries = [entry for entry in await self._entries() if _tool_name(entry) == name]
        return next((tool for _, tool in self._tools_of(entries) if tool.name == name), None)

    def _read_result(self) -> ServerTool:
        """The tool `read`, limited to stored results, for the hints in long answers."""
        return ServerTool(
            name="read",
            description="Read a long answer in parts, by its gateway:// URI.",
            call=errors_as_results(StoredResults(self._backend).read),
            input_schema=descriptions.RESULT_INPUT,
            annotations=descriptions.ANNOTATIONS["read"],
        )

    def _tool(self, entry: OperationEntry) -> ServerTool:
        tool = tool_of(entry)
        properties = {**tool.schema["properties"], _CONNECTOR: _CONNECTOR_SCHEMA}
        return ServerTool(
            name=tool.name,
            description=tool.description,
            call=errors_as_results(self._call(entry)),
            input_schema={**tool.schema, "properties": properties},
            annotations=_annotations(tool),
            title=tool.title,
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


def _tool_name(entry: OperationEntry) -> str:
    """The name of the tool that runs the operation; the searches of a kind have one."""
    return short_name(entry.kind.name, "search") if entry.action_id == SEARCH_ACTION else tool_name(entry)


def _annotations(tool: ToolDefinition) -> dict[str, bool]:
    """The annotations without those that mean nothing beside `readOnlyHint`, and without defaults: a list is long."""
    annotations = annotations_of(tool)
    if annotations["readOnlyHint"]:
        return {"readOnlyHint": True}
    return {name: annotations[name] for name in ("destructiveHint", "idempotentHint")}


def _search_schema(searches: Mapping[str, OperationEntry]) -> dict[str, Any]:
    """The arguments of a search: the copy, its connector, and the query language with the fields of each copy."""
    schema = search_params_schema(None)
    fields = "; ".join(
        f"{name}: {', '.join(entry.entity.search.fields)}" for name, entry in searches.items() if entry.entity.search
    )
    entity = {"type": "string", "enum": [*searches], "description": f"the copy, with the fields of each: {fields}"}
    properties = {_ENTITY: entity, **schema["properties"], _CONNECTOR: _CONNECTOR_SCHEMA}
    required = [_ENTITY, *schema["required"]]
    return portable_schema(
        {"type": "object", "properties": properties, "required": required, "additionalProperties": False},
        schema["$defs"],
    )
