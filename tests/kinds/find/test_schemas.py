"""Schemas of params for tools, for every operation."""

import json
from collections import Counter
from functools import cache
from typing import Any

import jsonschema_rs
import pytest

from gateway.kinds.find.entries import entries_of, entry_of
from gateway.kinds.find.schemas import constraint_sentences, tool_schema
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
