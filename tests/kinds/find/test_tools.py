"""Tool definitions of every operation, checked against the rules of each format's API."""

import re
from functools import cache

import jsonschema_rs
import pytest
from mcp_types import Tool

from gateway.kinds.find.entries import OperationEntry, entries_of, entry_of
from gateway.kinds.find.formats import FORMATS, ToolDefinition, as_anthropic, as_mcp, as_openai, from_mcp
from gateway.kinds.find.tools import tool_name, tool_of
from tests.harness.catalog import shipped_catalog

CATALOG = shipped_catalog()

#: APIs of models take 64 characters; hosts such as Claude Code prefix a name with `mcp__gateway__`
NAME = {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,50}$"}
#: an object without the keywords that large model APIs refuse at the top level
PARAMETERS = {
    "allOf": [{"$ref": "https://json-schema.org/draft/2020-12/schema"}],
    "properties": {
        "type": {"const": "object"},
        "properties": {"propertyNames": {"pattern": "^[a-zA-Z0-9_.-]{1,64}$"}},
        **dict.fromkeys(("oneOf", "anyOf", "allOf", "enum", "not", "$ref", "if", "dependentSchemas"), False),
    },
    "required": ["type", "properties"],
}
RULES = {
    "openai": {
        "type": "object",
        "properties": {
            "type": {"const": "function"},
            "function": {
                "type": "object",
                "properties": {
                    "name": NAME,
                    "description": {"type": "string", "minLength": 1, "maxLength": 1024},
                    "parameters": PARAMETERS,
                },
                "required": ["name", "description", "parameters"],
                "additionalProperties": False,
            },
        },
        "required": ["type", "function"],
        "additionalProperties": False,
    },
    "anthropic": {
        "type": "object",
        "properties": {
            "name": NAME,
            "description": {"type": "string", "minLength": 1},
            "input_schema": PARAMETERS,
        },
        "required": ["name", "description", "input_schema"],
        "additionalProperties": False,
    },
    "mcp": {
        "type": "object",
        "properties": {
            "name": NAME,
            "title": {"type": "string"},
            "description": {"type": "string"},
            "inputSchema": PARAMETERS,
            "annotations": {"type": "object", "additionalProperties": {"type": "boolean"}},
        },
        "required": ["name", "inputSchema"],
        "additionalProperties": False,
    },
}


@cache
def tools() -> list[ToolDefinition]:
    return [tool_of(entry) for entry in entries_of(CATALOG)]


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_operation_is_a_tool_that_the_format_accepts(format_name):
    validator = jsonschema_rs.Draft202012Validator(RULES[format_name])

    errors = [
        (tool.name, error.message) for tool in tools() for error in validator.iter_errors(FORMATS[format_name](tool))
    ]
    assert errors == []


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf", "allOf", "not", "enum"])
def test_the_rules_refuse_combinators_at_the_top(keyword):
    refused = ToolDefinition(
        name="t",
        operation="k.e.a",
        title="T",
        description="T.",
        schema={"type": "object", "properties": {}, keyword: []},
        effect="read",
        is_destructive=False,
    )

    assert not jsonschema_rs.Draft202012Validator(RULES["openai"]).is_valid(as_openai(refused))


def test_names_of_tools_are_unique():
    assert len({tool.name for tool in tools()}) == len(tools())


def test_the_types_of_the_protocol_accept_every_tool():
    for tool in tools():
        assert Tool.model_validate(as_mcp(tool)).name == tool.name


def test_a_long_name_is_shortened_and_remains_unique(long_kind):
    first, second = (tool_name(OperationEntry(long_kind, "e" * 60, action)) for action in ("list", "get"))

    assert first != second
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{50}", name) for name in (first, second))


@pytest.fixture
def long_kind():
    """A kind with a long name."""
    return CATALOG.kind("incident-management")


def test_every_definition_can_be_restored_from_the_format_of_mcp():
    assert [tool.name for tool in tools() if from_mcp(as_mcp(tool), tool.operation) != tool] == []


def test_a_description_has_the_constraints_that_its_schema_leaves_out():
    tool = tool_of(entry_of(CATALOG, "workspace-notes.comments.create"))

    assert as_anthropic(tool)["description"] == (
        "Create comment (Notion). "
        "Start a discussion on a page or block with parent, or reply in one with discussion_id. "
        "Exactly one of these must be given: parent, discussion_id."
    )


@pytest.mark.parametrize(
    ("operation", "hints"),
    [
        ("support-desk.tickets.list", (True, False, True)),
        ("support-desk.tickets.context_store_search", (True, False, True)),
        ("support-desk.tickets.create", (False, False, False)),
        ("team-chat.messages.create", (False, False, False)),
        ("work-management.task_tags.create", (False, False, True)),
        ("support-desk.tickets.update", (False, True, True)),
        ("support-desk.ticket_bulk_updates.create", (False, True, True)),
        ("team-chat.channel_topics.create", (False, True, True)),
        ("team-chat.channel_archives.create", (False, True, False)),
        ("team-chat.channel_kicks.create", (False, True, False)),
        ("team-chat.messages.delete", (False, True, False)),
        ("work-management.tasks.delete", (False, True, True)),
    ],
)
def test_hints_distinguish_additions_from_changes_and_deletions(operation, hints):
    tool = next(each for each in tools() if each.operation == operation)

    annotations = as_mcp(tool)["annotations"]

    assert (annotations["readOnlyHint"], annotations["destructiveHint"], annotations["idempotentHint"]) == hints
    assert from_mcp(as_mcp(tool), operation) == tool
