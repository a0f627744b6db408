"""The size and content of descriptions for models."""

import json
import re

import jsonschema_rs
import msgspec
import pytest

from gateway.agents.tools.descriptions import ANNOTATIONS, DESCRIPTIONS, INPUTS, RESULT_INPUT
from gateway.agents.tools.general_tools import GeneralTools
from gateway.errors import InvalidParams
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.find.descriptions import describe, described_part, query_language
from gateway.kinds.find.entries import OperationEntry, entries_of, entry_of
from gateway.kinds.search_schema import search_params_schema
from tests.harness.catalog import shipped_catalog
from tests.kinds.find.evaluation import CHARACTERS_OF_A_TOKEN


def test_the_six_tools_have_at_most_eight_hundred_tokens():
    tools = GeneralTools(None, None, object(), object(), None).tools()

    listed = json.dumps([tool.as_document() for tool in tools], separators=(",", ":"))
    assert [tool.name for tool in tools] == list(DESCRIPTIONS)
    assert len(listed) / CHARACTERS_OF_A_TOKEN <= 800


def test_every_tool_has_a_schema_a_description_and_annotations():
    assert INPUTS.keys() == DESCRIPTIONS.keys() == ANNOTATIONS.keys()


@pytest.mark.parametrize("properties", [INPUTS["read"], RESULT_INPUT["properties"]])
def test_a_part_of_a_result_has_at_least_one_record(properties):
    schema = {"type": "object", "properties": properties}

    assert jsonschema_rs.is_valid(schema, {"offset": 0, "limit": 1})
    assert not jsonschema_rs.is_valid(schema, {"offset": 0, "limit": 0})


def test_every_search_is_described_in_at_most_five_hundred_tokens():
    searches = [entry for entry in entries_of(shipped_catalog()) if entry.action_id == SEARCH_ACTION]

    tokens = {entry.name: len(msgspec.json.encode(describe(entry))) / CHARACTERS_OF_A_TOKEN for entry in searches}
    assert {name: count for name, count in tokens.items() if count > 500} == {}


def test_every_operation_and_each_part_that_it_refers_to_are_described_in_at_most_a_thousand_tokens():
    longest = {
        entry.name: max(map(len, texts_of(entry))) / CHARACTERS_OF_A_TOKEN for entry in entries_of(shipped_catalog())
    }

    assert {name: count for name, count in longest.items() if count > 1_000} == {}


def texts_of(entry: OperationEntry) -> list[str]:
    """The description of an operation and those of the parts that it refers to."""
    ahead, described, texts = [describe(entry)], set[str](), list[str]()
    while ahead:
        texts.append(msgspec.json.encode(ahead.pop()).decode())
        for part in set(re.findall(re.escape(entry.name) + r"#(\w+)", texts[-1])) - described:
            described.add(part)
            ahead.append(described_part(entry, part))
    return texts


def test_the_error_for_an_unknown_part_has_the_nearest():
    with pytest.raises(InvalidParams, match="has no part 'blok'; did you mean block"):
        described_part(entry_of(shipped_catalog(), "workspace-notes.pages.create"), "blok")


def test_the_query_language_is_described_in_at_most_five_hundred_tokens_with_a_valid_example():
    described = query_language()

    assert len(msgspec.json.encode(described)) / CHARACTERS_OF_A_TOKEN <= 500
    schema = jsonschema_rs.Draft202012Validator(search_params_schema(None))
    assert list(schema.iter_errors({"query": described["example"]})) == []
