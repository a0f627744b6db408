"""The errors of a value are bounded by their number, and for a large value by their time."""

import jsonschema_rs
import pytest

from gateway.errors import MAX_FAULTS
from gateway.kinds.schema_errors import first_errors
from gateway.kinds.suggestions import Suggestions
from tests.harness.blocked_loop import LIMIT
from tests.harness.work import seconds_at_most

_CHOICE = {"anyOf": [{"type": "string"}, {"type": "object", "required": ["a"]}]}
_VALIDATOR = jsonschema_rs.Draft202012Validator(
    {"properties": {"ids": {"items": {"type": "string"}}, "choices": {"items": _CHOICE}}}
)


@pytest.mark.parametrize("member", ["ids", "choices"])
@pytest.mark.parametrize(("items", "errors"), [(0, 0), (1, 1), (1000, MAX_FAULTS), (300_000, 1)])
def test_the_first_errors_take_bounded_time(member: str, items: int, errors: int):
    with seconds_at_most(LIMIT):
        found = list(first_errors(_VALIDATOR, {member: [1] * items}))

    assert len(found) == errors


def test_the_error_of_a_large_value_is_where_it_is():
    (error,) = first_errors(_VALIDATOR, {"ids": [*["a"] * 100_000, 1]})

    assert error.instance_path == ["ids", 100_000]


def test_only_the_first_names_are_compared_with_the_known_ones():
    suggestions = Suggestions()

    hints = [suggestions.did_you_mean(f"tickets{number}", ["tickets", "users"]) for number in range(8)]

    assert hints == ["did you mean tickets?"] * 5 + ["known: tickets, users"] * 3
    assert suggestions.did_you_mean("tickets0", ["tickets", "users"]) == "did you mean tickets?"
