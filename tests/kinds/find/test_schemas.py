"""Schemas of params for tools, for every operation."""

import json
from collections import Counter
from functools import cache
from typing import Any

import jsonschema_rs
import pytest

from gateway.kinds.find.entries import entries_of, entry_of
from gateway.kinds.find.schemas import constraint_sentences, definitions_used, portable_schema, tool_schema
from tests.harness.catalog import shipped_catalog

CATALOG = shipped_catalog()
ENTRIES = list(entries_of(CATALOG))


@cache
def schemas() -> dict[str, dict[str, Any]]:
    return {entry.name: tool_schema(entry) for entry in ENTRIES}


def references(node):
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [each for part in node.values() for each in references(part)]
    return [each for part in node for each in references(part)] if isinstance(node, list) else []


def test_every_tool_schema_is_an_object_with_exactly_the_definitions_that_it_uses():
    keywords = {"type", "properties", "required", "additionalProperties", "$defs"}

    assert [name for name, schema in schemas().items() if schema["type"] != "object"] == []
    assert {name: schema.keys() - keywords for name, schema in schemas().items() if schema.keys() - keywords} == {}
    assert {name: set(references(schema)) for name, schema in schemas().items()} == {
        name: {f"#/$defs/{part}" for part in schema.get("$defs", {})} for name, schema in schemas().items()
    }


def test_every_tool_schema_accepts_the_example():
    errors = [
        (entry.name, error.message)
        for entry in ENTRIES
        for error in jsonschema_rs.Draft202012Validator(schemas()[entry.name], validate_formats=True).iter_errors(
            entry.example
        )
    ]
    assert errors == []


@pytest.mark.parametrize(
    ("name", "sentences"),
    [
        ("workspace-notes.comments.create", ["Exactly one of these must be given: parent, discussion_id."]),
        ("support-desk.ticket_audits.list", ["ticket_id and cursor exclude each other."]),
        ("crm-records.deals.list", ["With propertiesWithHistory: limit is at most 50."]),
        (
            "work-management.tasks.list",
            [
                "Exactly one of these must be given: project, section, assignee with workspace.",
                "With modified_since: at least one of these must be given: project, section.",
            ],
        ),
        ("team-chat.threads.list", []),
    ],
)
def test_constraints_that_a_tool_schema_leaves_out_become_sentences(name, sentences):
    assert constraint_sentences(entry_of(CATALOG, name)) == sentences


def test_params_that_are_required_in_every_alternative_are_required():
    assert tool_schema(entry_of(CATALOG, "team-chat.threads.list"))["required"] == ["channel", "ts"]


def parts_of(node):
    """Every schema within a schema, as JSON."""
    if isinstance(node, dict):
        yield json.dumps(node, sort_keys=True)
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from parts_of(part)


def test_the_schema_of_a_search_has_no_long_part_twice():
    parts = Counter(parts_of(tool_schema(entry_of(CATALOG, "support-desk.tickets.context_store_search"))))

    assert [part for part, count in parts.items() if count > 1 and len(part) > 60] == []


def without_items(node):
    """The arrays in a schema whose items have no schema."""
    if isinstance(node, list):
        return [part for each in node for part in without_items(each)]
    if not isinstance(node, dict):
        return []
    is_array = "array" in (node.get("type") or ()) and "items" not in node
    return [node] * is_array + [part for each in node.values() for part in without_items(each)]


def recursive(schema):
    """The definitions that contain themselves."""
    definitions = schema.get("$defs", {})
    return [name for name, each in definitions.items() if name in definitions_used(each, definitions)]


def test_no_tool_schema_is_recursive_or_has_an_array_without_items():
    assert {name: recursive(schema) for name, schema in schemas().items() if recursive(schema)} == {}
    assert {name: without_items(schema) for name, schema in schemas().items() if without_items(schema)} == {}


def test_definitions_that_contain_each_other_are_unrolled_once():
    definitions = {
        "group": {"type": "object", "properties": {"rules": {"type": "array", "$ref": "#/$defs/rules"}}},
        "rules": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/rule"}, {"$ref": "#/$defs/group"}]}},
        "rule": {"type": "object", "description": "a rule", "properties": {"then": {"$ref": "#/$defs/rule"}}},
    }

    schema = portable_schema({"type": "object", "properties": {"first": {"$ref": "#/$defs/group"}}}, definitions)

    assert recursive(schema) == without_items(schema) == []
    assert schema["$defs"]["group"]["properties"]["rules"] == {"type": "array", "items": {}}
    validator = jsonschema_rs.Draft202012Validator(schema)
    assert validator.is_valid({"first": {"rules": [{"then": {}}, {"rules": []}]}})
    assert not validator.is_valid({"first": {"rules": "all"}})


def test_an_array_has_its_items_beside_its_type_where_a_definition_has_them():
    schema = tool_schema(entry_of(CATALOG, "crm-records.deals.api_search"))

    assert schema["properties"]["sorts"]["items"]["properties"].keys() == {"propertyName", "direction"}
