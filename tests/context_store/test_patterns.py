"""Patterns as Postgres wants them, and what they tell of a text's beginning."""

import pytest

from gateway.context_store.search.patterns import pattern_of, start_of, words_within
from gateway.kinds.search_operators import Operator

PATTERNS = [
    (Operator.LIKE, "Fire", "%fire%"),
    (Operator.LIKE, "Fire%", "fire%"),
    (Operator.LIKE, "f_re", "f_re"),
    (Operator.LIKE, "100\\%", "%100\\%%"),
    (Operator.LIKE, "100\\\\%", "100\\\\%"),
    (Operator.LIKE, "end\\", "%end\\\\%"),
    (Operator.LIKE, "", "%%"),
    (Operator.STARTSWITH, "50%_\\", "50\\%\\_\\\\%"),
    (Operator.ENDSWITH, "ÜBER", "%über"),
    (Operator.CONTAINS, "a_b", "%a\\_b%"),
]


@pytest.mark.parametrize(("operator", "value", "pattern"), PATTERNS)
def test_values_become_patterns(operator, value, pattern):
    assert pattern_of(operator, value) == pattern


STARTS = [
    ("printer on%", "printer on"),
    ("%on fire", ""),
    ("fire", ""),
    ("100\\% of_", "100% of"),
    ("a\\\\%", "a\\"),
    ("_", ""),
    ("a%\\", "a"),
]


@pytest.mark.parametrize(("pattern", "start"), STARTS)
def test_a_pattern_says_how_a_text_begins(pattern, start):
    assert start_of(pattern) == start


WITHIN = [
    (Operator.LIKE, "%on fire%", ["fire", "on"]),
    (Operator.LIKE, "pr_nter", ["nter", "pr"]),
    (Operator.LIKE, "100\\%sure", ["sure", "100"]),
    (Operator.LIKE, "a\\_b", ["a", "b"]),
    (Operator.LIKE, "end\\", ["end"]),
    (Operator.LIKE, "%", []),
    (Operator.CONTAINS, "50%off_\\", ["off", "50"]),
    (Operator.ENDSWITH, "ÜBER", ["über"]),
]


@pytest.mark.parametrize(("operator", "value", "expected"), WITHIN)
def test_a_pattern_says_what_stands_within_words(operator, value, expected):
    assert words_within(operator, value) == expected
