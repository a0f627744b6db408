"""What models are given to read."""

import json

from gateway.agent_tools.six import SixTools
from gateway.agent_tools.surface import ANNOTATIONS, DESCRIPTIONS, INPUTS
from gateway.operations.index import OperationIndex
from gateway.operations.signatures import signature_of
from tests.harness.catalog import shipped_catalog
from tests.operations.evaluation import OWN, UNSEEN, questions_in

#: characters that a common tokenizer makes one token of, on average
CHARACTERS_OF_A_TOKEN = 4


def test_the_six_tools_cost_no_more_than_a_thousand_tokens():
    tools = SixTools(None, None, object(), object()).tools()

    listed = json.dumps([tool.as_document() for tool in tools], separators=(",", ":"))
    assert [tool.name for tool in tools] == list(DESCRIPTIONS)
    assert len(listed) / CHARACTERS_OF_A_TOKEN <= 1000


def test_what_is_found_costs_no_more_than_five_hundred_tokens():
    index = OperationIndex(shipped_catalog())

    longest = max(
        sum(len(f"{match.entry.name} {signature_of(match.entry)}") for match in index.search(each["question"]))
        for each in [*questions_in(OWN), *questions_in(UNSEEN)]
    )

    assert longest / CHARACTERS_OF_A_TOKEN <= 500


def test_every_argument_of_a_tool_is_described_by_its_schema():
    assert INPUTS.keys() == DESCRIPTIONS.keys() == ANNOTATIONS.keys()
