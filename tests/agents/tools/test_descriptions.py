"""What models are given to read."""

import json

import jsonschema_rs
import msgspec
import pytest

from gateway.agents.tools.descriptions import ANNOTATIONS, DESCRIPTIONS, INPUTS
from gateway.agents.tools.general_tools import GeneralTools
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.search_schema import search_params_schema
from gateway.operation_search.descriptions import describe, query_language
from gateway.operation_search.entries import OperationEntry, entries_of
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


def test_the_query_language_is_described_in_at_most_five_hundred_tokens_and_its_example_holds():
    described = query_language()

    assert len(msgspec.json.encode(described)) / CHARACTERS_OF_A_TOKEN <= 500
    schema = jsonschema_rs.Draft202012Validator(search_params_schema(None))
    assert list(schema.iter_errors({"query": described["example"]})) == []
