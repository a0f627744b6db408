"""What models are given to read."""

import json
import re

import jsonschema_rs
import msgspec
import pytest

from gateway.agents.tools.descriptions import ANNOTATIONS, DESCRIPTIONS, INPUTS
from gateway.agents.tools.general_tools import GeneralTools
from gateway.errors import InvalidParams
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.search_schema import search_params_schema
from gateway.operation_search.descriptions import describe, described_part, query_language
from gateway.operation_search.entries import OperationEntry, entries_of, entry_of
from tests.harness.catalog import shipped_catalog
from tests.operation_search.evaluation import CHARACTERS_OF_A_TOKEN


def test_the_six_tools_cost_no_more_than_eight_hundred_tokens():
    tools = GeneralTools(None, None, object(), object()).tools()

    listed = json.dumps([tool.as_document() for tool in tools], separators=(",", ":"))
    assert [tool.name for tool in tools] == list(DESCRIPTIONS)
    assert len(listed) / CHARACTERS_OF_A_TOKEN <= 800


def test_every_argument_of_a_tool_is_described_by_its_schema():
    assert INPUTS.keys() == DESCRIPTIONS.keys() == ANNOTATIONS.keys()


@pytest.mark.parametrize(
    "entry",
    [entry for entry in entries_of(shipped_catalog()) if entry.action_id == SEARCH_ACTION],
    ids=lambda entry: entry.name,
)
def test_a_search_is_described_in_at_most_five_hundred_tokens(entry: OperationEntry):
    assert len(msgspec.json.encode(describe(entry))) / CHARACTERS_OF_A_TOKEN <= 500


@pytest.mark.parametrize("entry", list(entries_of(shipped_catalog())), ids=lambda entry: entry.name)
def test_an_operation_and_each_part_that_it_refers_to_are_described_in_at_most_a_thousand_tokens(entry: OperationEntry):
    ahead, described = [describe(entry)], set[str]()
    while ahead:
        text = msgspec.json.encode(ahead.pop()).decode()
        assert len(text) / CHARACTERS_OF_A_TOKEN <= 1_000
        for part in set(re.findall(re.escape(entry.name) + r"#(\w+)", text)) - described:
            described.add(part)
            ahead.append(described_part(entry, part))


def test_a_part_that_is_not_there_brings_the_nearest():
    with pytest.raises(InvalidParams, match="has no part 'blok'; did you mean block"):
        described_part(entry_of(shipped_catalog(), "workspace-notes.pages.create"), "blok")


def test_the_query_language_is_described_in_at_most_five_hundred_tokens_and_its_example_holds():
    described = query_language()

    assert len(msgspec.json.encode(described)) / CHARACTERS_OF_A_TOKEN <= 500
    schema = jsonschema_rs.Draft202012Validator(search_params_schema(None))
    assert list(schema.iter_errors({"query": described["example"]})) == []
