"""Flat lists: the tool of each operation, and patterns of `?tools=`."""

import json
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from gateway.agents.tools.operation_tools import OperationTools, matches
from gateway.errors import InvalidParams
from gateway.kinds.find.entries import OperationEntry
from gateway.kinds.find.index import OperationIndex
from gateway.kinds.find.tools import MAX_NAME, tool_of
from gateway.web.api.mcp import MAX_PATTERNS, patterns_of
from tests.kinds.find.evaluation import index_of_words
from tests.kinds.find.test_schemas import recursive, without_items

#: the kinds of the product documents
SEVEN = (
    "support-desk",
    "crm-records",
    "crm-query",
    "workspace-notes",
    "team-chat",
    "work-management",
    "incident-management",
)


class NoTools:
    """Records the calls of operations instead of running them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def run(self, context: Any, entry: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((entry.name, arguments))
        return {}


async def flat_list(*patterns: str) -> list[dict[str, Any]]:
    listed = await flat(NoTools(), *patterns).listed(SimpleNamespace(caller=None))
    return [msgspec.json.decode(tool) for tool in listed.items]


def flat(tools: NoTools, *patterns: str) -> OperationTools:
    async def index() -> OperationIndex:
        return index_of_words()

    async def offered(caller: object, entries: list[OperationEntry]) -> list[OperationEntry]:
        return entries

    return OperationTools(SimpleNamespace(index=index, offered=offered), tools, patterns)


@pytest.mark.parametrize("kind", SEVEN)
async def test_a_flat_list_has_at_most_sixty_kilobytes(kind):
    assert len(json.dumps(await flat_list(f"{kind}.*"), separators=(",", ":"))) <= 60_000


async def test_every_host_takes_every_tool_of_a_flat_list():
    tools = await flat_list("*")

    assert [tool["name"] for tool in tools if len(tool["name"]) > MAX_NAME] == []
    assert [tool["name"] for tool in tools if recursive(tool["inputSchema"])] == []
    assert [tool["name"] for tool in tools if without_items(tool["inputSchema"])] == []
    assert len({tool["name"] for tool in tools}) == len(tools)


async def test_the_searches_of_a_kind_are_one_tool_with_the_fields_of_each_copy():
    names = [tool["name"] for tool in await flat_list("support-desk.*", "crm-records.deals.*")]
    (search,) = [tool for tool in await flat_list("crm-records.*search") if tool["name"].endswith("__search")]

    assert [name for name in names if "search" in name] == [
        "crm-records__deals__api_search",
        "crm-records__search",
        "support-desk__search",
    ]
    entity = search["inputSchema"]["properties"]["entity"]
    assert entity["enum"] == ["companies", "contacts", "deals", "tickets"]
    assert "deals: archived, companies" in entity["description"]
    assert search["annotations"]["readOnlyHint"]


async def test_a_call_makes_no_tool_but_the_one_that_it_names():
    listed = await flat_list("support-desk.*")
    called = flat(NoTools(), "support-desk.*")
    for shown in listed:
        tool_of.cache_clear()
        tool = await called.named(None, shown["name"])
        assert tool is not None
        assert json.loads(msgspec.json.encode(tool.as_document())) == shown
        assert tool_of.cache_info().misses <= 1

    assert await called.named(None, "crm-records__deals__list") is None


async def test_a_list_whose_tools_were_made_once_makes_none_again():
    first = await flat_list("*")
    tool_of.cache_clear()

    assert await flat_list("*") == first
    assert tool_of.cache_info().misses == len([tool for tool in first if tool["name"].endswith("__search")])


async def test_a_search_runs_on_the_copy_of_its_entity():
    tools = NoTools()
    search = await flat(tools, "support-desk.*").named(None, "support-desk__search")
    query = {"filter": {"and": [{"eq": {"status": "open"}}]}}

    assert search.faults({"entity": "tickets", "query": query}) == []
    assert "entity" in search.faults({"entity": "ticket", "query": query})[0]
    await search.call(None, {"entity": "tickets", "query": query, "limit": 5, "connector_name": "main"})

    arguments = {"params": {"query": query, "limit": 5}, "connector": "main"}
    assert tools.calls == [("support-desk.tickets.context_store_search", arguments)]


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        ("support-desk.*", "support-desk.tickets.list", True),
        ("*.list", "support-desk.tickets.list", True),
        ("support-desk.*.list", "support-desk.tickets.list", True),
        ("support-desk.*.list", "support-desk.tickets.get", False),
        ("support-desk.tickets.list", "support-desk.tickets.list", True),
        ("support-desk.tickets", "support-desk.tickets.list", False),
        ("*", "support-desk.tickets.list", True),
        ("*tickets*list", "support-desk.tickets.list", True),
        ("*list*list*", "support-desk.tickets.list", False),
        ("a*a", "a", False),
        ("ab*ba", "aba", False),
        ("", "support-desk.tickets.list", False),
        ("[s]*", "support-desk.tickets.list", False),
    ],
)
def test_only_a_star_matches_any_text(pattern: str, name: str, is_match: bool):
    assert matches(name, pattern) is is_match


def test_a_pattern_with_many_stars_takes_linear_time():
    assert not matches("a" * 200, "*a" * 10_000 + "b")


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("*" * 2000, ("*",)),
        ("*z," * 666, ("*z", "")),
        ("a.*,b.**,a.*", ("a.*", "b.*")),
        ("", ("",)),
    ],
)
def test_patterns_are_collapsed_and_each_is_matched_once(text: str, patterns: tuple[str, ...]):
    assert patterns_of(text) == patterns


def test_the_number_of_patterns_is_bounded():
    assert len(patterns_of(",".join(f"a{number}" for number in range(MAX_PATTERNS)))) == MAX_PATTERNS
    with pytest.raises(InvalidParams, match="at most 50"):
        patterns_of(",".join(f"a{number}" for number in range(MAX_PATTERNS + 1)))
