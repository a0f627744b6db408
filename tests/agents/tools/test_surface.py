"""What models are given to read."""

import json

from gateway.agents.tools.six import SixTools
from gateway.agents.tools.surface import ANNOTATIONS, DESCRIPTIONS, INPUTS
from tests.operation_search.evaluation import CHARACTERS_OF_A_TOKEN


def test_the_six_tools_cost_no_more_than_eight_hundred_tokens():
    tools = SixTools(None, None, object(), object()).tools()

    listed = json.dumps([tool.as_document() for tool in tools], separators=(",", ":"))
    assert [tool.name for tool in tools] == list(DESCRIPTIONS)
    assert len(listed) / CHARACTERS_OF_A_TOKEN <= 800


def test_every_argument_of_a_tool_is_described_by_its_schema():
    assert INPUTS.keys() == DESCRIPTIONS.keys() == ANNOTATIONS.keys()
