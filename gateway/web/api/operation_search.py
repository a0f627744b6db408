"""Operations: search by plain words, and definitions as tools of agent frameworks."""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from uuid import UUID

import msgspec
from aiohttp import web
from pydantic import Field

from gateway.access.identity.model import Scope
from gateway.contract.connectors import Connector
from gateway.contract.kinds import Effect, MatchedConnectorView, OperationMatch, OperationMatches, ToolsView
from gateway.foundation.aio.turns import in_thread
from gateway.kinds.find.descriptions import summary
from gateway.kinds.find.entries import DEFAULT_LIMIT, OperationEntry, entry_of, passes
from gateway.kinds.find.findings import Findings, Match
from gateway.kinds.find.tools import ENCODED, tool_name
from gateway.run.services import Services
from gateway.web.bodies import QueryString, read_query
from gateway.web.keys import CALLER, INDEX, SERVICES
from gateway.web.route import Route

if TYPE_CHECKING:
    from gateway.kinds.find.index import OperationIndex

#: maximum connectors of an operation in a response
_CONNECTORS_SHOWN = 20
#: operations that are encoded on the event loop; each takes a tenth of a millisecond
_MANY = 50


class OperationQuery(QueryString):
    """The task, and the filter of operations."""

    EXAMPLE: ClassVar = {"query": "close a ticket"}

    query: str | None = Field(
        None, max_length=1000, description="the task in plain words; all operations when left out"
    )
    kind: str | None = Field(
        None, max_length=100, description="only operations of this kind or application, such as support-desk or Zendesk"
    )
    effect: Effect | None = Field(None, description="only operations of this effect")
    connector_id: UUID | None = Field(None, description="only operations of this connector")
    limit: int | None = Field(
        None, ge=1, le=1000, description="maximum operations; by default 6 with a query, else all"
    )


class ToolQuery(QueryString):
    """The filter of operations, and the format of the tools."""

    EXAMPLE: ClassVar = {"format": "openai", "kind": "support-desk", "effect": "read"}

    format: Literal["mcp", "openai", "anthropic"] = Field("mcp", description="the format of the definitions")
    kind: str | None = Field(
        None, max_length=100, description="only operations of this kind or application, such as support-desk or Zendesk"
    )
    effect: Effect | None = Field(None, description="only operations of this effect")
    connector_id: UUID | None = Field(None, description="only operations of this connector")
    operations: str | None = Field(
        None, max_length=10_000, description="only these: kind.entity.action, separated by commas"
    )


async def search_operations(request: web.Request) -> web.Response:
    """The operations for a task in plain words, the best first, with the connectors that can run them; without `query`
    all operations in a fixed order. If no operation does the task, `data` is empty, `closest` has the operations that
    come closest, and `message` says what is missing.
    """
    query, services = read_query(request, OperationQuery), request.app[SERVICES]
    connectors = await _connectors(request, query.connector_id)
    kind = _kind(services, query.kind)
    index = await request.app[INDEX]()
    started = time.perf_counter()
    found = _found(index, query, kind, connectors)
    took_ms = round((time.perf_counter() - started) * 1000)
    matched = (match.entry for match in (*found.data, *found.closest))
    offered = {entry.name for entry in await services.operations.offers.among(request[CALLER], matched)}
    found = replace(
        found,
        data=[match for match in found.data if match.entry.name in offered],
        closest=[match for match in found.closest if match.entry.name in offered],
    )
    encode = partial(_matches, connectors=connectors, took_ms=took_ms)
    body = await in_thread(encode, found) if len(found.data) > _MANY else encode(found)
    return web.Response(body=body, content_type="application/json")


def _matches(found: Findings, connectors: Mapping[str, Sequence[Connector]], took_ms: int) -> bytes:
    """JSON of the operations; the first time takes half of a second for 5,000."""
    data, closest = ([_view(match, connectors) for match in matches] for matches in (found.data, found.closest))
    return msgspec.json.encode(OperationMatches(data=data, closest=closest, message=found.message, took_ms=took_ms))


async def list_tools(request: web.Request) -> web.Response:
    """Operations as tool definitions in the format of `format`. `operations` in the response maps each tool's name to
    its operation.
    """
    query, services = read_query(request, ToolQuery), request.app[SERVICES]
    among = await _connectors(request, query.connector_id) if query.connector_id else None
    entries = _only(await _named(request, query.operations), _kind(services, query.kind), query.effect, among)
    offered = await services.operations.offers.among(request[CALLER], entries)
    body = await in_thread(partial(_tools, format_=query.format), offered)
    return web.Response(body=body, content_type="application/json")


def _tools(entries: Sequence[OperationEntry], format_: str) -> bytes:
    """JSON of the tool definitions of the operations; the first time takes a third of a second for 5,000."""
    data = [ENCODED[format_](entry) for entry in entries]
    # The members of ToolsView.
    return msgspec.json.encode({"data": data, "operations": {tool_name(entry): entry.name for entry in entries}})


def _kind(services: Services, name: str | None) -> str | None:
    """The name of a kind from any of its spellings; raises UnknownConnectorType."""
    return None if name is None else services.catalog.kind(name).name


async def _connectors(request: web.Request, connector_id: UUID | None) -> Mapping[str, Sequence[Connector]]:
    """The caller's connectors by kind, or the requested one; raises NotFound."""
    caller, known = request[CALLER], request.app[SERVICES].connectors.change
    if connector_id is not None:
        record = await known.get(caller, connector_id)
        return {record.kind: [record]}
    by_kind: dict[str, list[Connector]] = defaultdict(list)
    for record in await known.latest_of_each_kind(caller, _CONNECTORS_SHOWN):
        by_kind[record.kind].append(record)
    return by_kind


def _found(
    index: "OperationIndex",
    query: OperationQuery,
    kind: str | None,
    connectors: Mapping[str, Sequence[Connector]],
) -> Findings:
    among = None if query.connector_id is None else connectors
    if query.query is None:
        entries = _only(index.entries, kind, query.effect, among)
        return Findings([Match(entry, None) for entry in entries[: query.limit]])
    limit = query.limit or DEFAULT_LIMIT
    return index.search(query.query, kind, query.effect, limit, connected=connectors, among=among)


async def _named(request: web.Request, names: str | None) -> Sequence[OperationEntry]:
    """The operations with these names, in their order and without repetitions; all if None. Raises InvalidParams."""
    if names is None:
        return (await request.app[INDEX]()).entries
    unique_names = dict.fromkeys(name.strip() for name in names.split(",") if name.strip())
    return [entry_of(request.app[SERVICES].catalog, name) for name in unique_names]


def _only(
    entries: Iterable[OperationEntry], kind: str | None, effect: Effect | None, among: Mapping[str, Any] | None
) -> list[OperationEntry]:
    return [entry for entry in entries if passes(entry, kind, effect, among)]


def _view(match: Match, connectors: Mapping[str, Sequence[Connector]]) -> OperationMatch:
    return OperationMatch(
        **summary(match.entry),
        score=match.score,
        connectors=[
            MatchedConnectorView(record.id, record.name, record.workspace_name, record.status)
            for record in connectors.get(match.entry.kind.name, ())
        ],
    )


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/operations",
        search_operations,
        "Find operations for a task in plain words",
        "Discovery",
        query=OperationQuery,
        response=OperationMatches,
        scope=Scope.READ,
        command="gateway find close a ticket",
        python='print((await gateway.find_operations("close a ticket")).data)',
        in_session=True,
    ),
    Route(
        "GET",
        "/api/v1/tools",
        list_tools,
        "List operations as tool definitions for agent frameworks",
        "Discovery",
        query=ToolQuery,
        response=ToolsView,
        scope=Scope.READ,
        command="gateway tools --format openai --kind support-desk --effect read",
        python='print(await gateway.tools(kind="support-desk", effect="read"))',
        in_session=True,
    ),
)
