"""Patterns of `?tools=`."""

import pytest

from gateway.agents.tools.operation_tools import matches
from gateway.errors import InvalidParams
from gateway.web.api.mcp import MAX_PATTERNS, patterns_of


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        ("support-desk.*", "support-desk.tickets.list", True),
        ("*.list", "support-desk.tickets.list", True),
        ("support-desk.*.list", "support-desk.tickets.list", True),
        ("support-desk.*.list", "support-desk.tickets.get", False),
        ("support-desk.tickets.list", "support-desk.tickets.list", True),
        ("support-desk.tickets", "support-desk.tickets.list", False),
        ("*", "support-desk.tickets.list", True),
        ("*tickets*list", "support-desk.tickets.list", True),
        ("*list*list*", "support-desk.tickets.list", False),
        ("a*a", "a", False),
        ("ab*ba", "aba", False),
        ("", "support-desk.tickets.list", False),
        ("[s]*", "support-desk.tickets.list", False),
    ],
)
def test_only_a_star_matches_any_text(pattern: str, name: str, is_match: bool):
    assert matches(name, pattern) is is_match


def test_a_pattern_with_many_stars_takes_linear_time():
    assert not matches("a" * 200, "*a" * 10_000 + "b")


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("*" * 2000, ("*",)),
        ("*z," * 666, ("*z", "")),
        ("a.*,b.**,a.*", ("a.*", "b.*")),
        ("", ("",)),
    ],
)
def test_patterns_are_collapsed_and_each_is_matched_once(text: str, patterns: tuple[str, ...]):
    assert patterns_of(text) == patterns


def test_the_number_of_patterns_is_bounded():
    assert len(patterns_of(",".join(f"a{number}" for number in range(MAX_PATTERNS)))) == MAX_PATTERNS
    with pytest.raises(InvalidParams, match="at most 50"):
        patterns_of(",".join(f"a{number}" for number in range(MAX_PATTERNS + 1)))
