"""What models are given to read."""

import json
import re

import pytest

from gateway.agent_tools.flat import annotations, tool_name
from gateway.agent_tools.six import SixTools
from gateway.agent_tools.surface import ANNOTATIONS, DESCRIPTIONS, INPUTS
from gateway.kinds.catalog import load_catalog
from gateway.operations.entries import entries_of

#: characters that a common tokenizer makes one token of, on average
CHARACTERS_OF_A_TOKEN = 4
ENTRIES = list(entries_of(load_catalog()))


def test_the_six_tools_cost_no_more_than_a_thousand_tokens():
    tools = SixTools(None, None, object(), object()).tools()

    listed = json.dumps([tool.as_document() for tool in tools], separators=(",", ":"))
    assert [tool.name for tool in tools] == list(DESCRIPTIONS)
    assert len(listed) / CHARACTERS_OF_A_TOKEN <= 1000


def test_every_argument_of_a_tool_is_described_by_its_schema():
    assert INPUTS.keys() == DESCRIPTIONS.keys() == ANNOTATIONS.keys()


def test_every_operation_has_a_name_that_all_tool_formats_take():
    names = [tool_name(entry) for entry in ENTRIES]

    assert len(set(names)) == len(names) > 200
    assert [name for name in names if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)] == []


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("support-desk.tickets.list", {"readOnlyHint": True}),
        ("support-desk.tickets.create", {"destructiveHint": False, "idempotentHint": False}),
        ("work-management.tasks.delete", {"destructiveHint": True, "idempotentHint": True}),
    ],
)
def test_annotations_tell_what_an_operation_does(operation, expected):
    entry = next(each for each in ENTRIES if each.name == operation)

    assert annotations(entry) == expected
