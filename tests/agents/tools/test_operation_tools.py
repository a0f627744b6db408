"""Which operations a pattern of `?tools=` names."""

import pytest

from gateway.agents.tools.operation_tools import fits


@pytest.mark.parametrize(
    ("pattern", "name", "does"),
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
def test_a_star_stands_for_any_text_and_nothing_else_does(pattern: str, name: str, does: bool):
    assert fits(name, pattern) is does


def test_a_pattern_of_many_stars_takes_no_longer_than_it_is():
    assert not fits("a" * 200, "*a" * 10_000 + "b")
