"""One tool for each operation, for hosts with a tool search of their own."""

from collections.abc import Mapping
from typing import Any

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.features import Call, ListPage, ServerTool
from gateway.agents.mcp.results import Result
from gateway.agents.tools import descriptions
from gateway.agents.tools.backend import Backend
from gateway.agents.tools.general_tools import GeneralTools, errors_as_results
from gateway.agents.tools.stored_results import StoredResults
from gateway.kinds.find.entries import OperationEntry
from gateway.kinds.find.formats import annotations_of
from gateway.kinds.find.tools import tool_of

#: the argument with the connector, if there are several; no operation has a param with this name
_CONNECTOR = "connector_name"
_CONNECTOR_SCHEMA = {"type": "string", "description": "name or id of the connector, if several fit"}


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


class OperationTools:
    """The operations whose names match a pattern, each as a tool; created at the first request."""

    def __init__(self, backend: Backend, general_tools: GeneralTools, patterns: tuple[str, ...]) -> None:
        self._backend = backend
        self._general_tools = general_tools
        self._patterns = patterns
        self._made: Mapping[str, tuple[OperationEntry | None, ServerTool]] | None = None

    async def _tools(self) -> Mapping[str, tuple[OperationEntry | None, ServerTool]]:
        """The tools by name, each with its operation; `read` has none."""
        if self._made is None:
            known = (await self._backend.index()).entries
            entries = [entry for entry in known if any(matches(entry.name, pattern) for pattern in self._patterns)]
            made: list[tuple[OperationEntry | None, ServerTool]] = [(entry, self._tool(entry)) for entry in entries]
            self._made = {tool.name: (entry, tool) for entry, tool in [*made, (None, self._read_result())]}
        return self._made

    async def listed(self, context: Context) -> ListPage:
        """The tools, without those that the policies never allow to the caller."""
        tools = (await self._tools()).values()
        entries = [entry for entry, _ in tools if entry is not None]
        offered = {entry.name for entry in await self._backend.offered(context.caller, entries)}
        shown = [tool.as_document() for entry, tool in tools if entry is None or entry.name in offered]
        return ListPage(shown, scope="public" if len(shown) == len(tools) else "private")

    async def named(self, context: Context, name: str) -> ServerTool | None:
        found = (await self._tools()).get(name)
        return None if found is None else found[1]

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
            output_schema={"type": "object"},
            annotations=annotations_of(tool),
            title=tool.title,
        )

    def _call(self, entry: OperationEntry) -> Call:
        async def call(context: Context, arguments: Mapping[str, Any]) -> Result:
            params = {name: value for name, value in arguments.items() if name != _CONNECTOR}
            return await self._general_tools.run(
                context, entry, {"params": params, "connector": arguments.get(_CONNECTOR)}
            )

        return call
