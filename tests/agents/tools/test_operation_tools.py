"""Patterns of `?tools=`."""

import pytest

from gateway.agents.tools.operation_tools import matches


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
