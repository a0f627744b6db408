"""What the word index is asked: enough to find every match, and no more than is worth it."""

import pytest

from gateway.context_store.fields import FieldType
from gateway.context_store.layout import Layout
from gateway.context_store.search.parse import parse
from gateway.context_store.search.terms import Vocabulary

FIELDS = {
    "name": FieldType.STRING,
    "count": FieldType.INTEGER,
    "tags": FieldType.ARRAY,
    "via": FieldType.OBJECT,
    "open": FieldType.BOOLEAN,
}
LAYOUT = Layout(
    {}, {"name": FieldType.STRING, "count": FieldType.INTEGER, "tags": FieldType.ARRAY, "via": FieldType.OBJECT}
)
CONTAINING = {
    ("7/0/", "print"): ["7/0/printer", "7/0/reprint"],
    ("7/0/", "nowhere"): [],
    ("7/0/", "everywhere"): None,
}
VOCABULARY = Vocabulary(7, LAYOUT, {"7/0/the": 0.5, "7/0/then": 0.25, "7/0/printer": 0.02}, CONTAINING)

CASES = [
    ({"eq": {"name": "Red Hot"}}, "('7/0/red' & '7/0/hot')", 0.0),
    ({"eq": {"name": "--"}}, None, 0.0),
    ({"eq": {"name": None}}, None, 0.0),
    ({"neq": {"name": "red"}}, None, 0.0),
    ({"eq": {"count": 5}}, "'7/1/#5.0'", 0.0),
    ({"gt": {"count": 5}}, None, 0.0),
    ({"eq": {"open": True}}, None, 0.0),
    ({"eq": {"via.channel": "web"}}, "('7/3/web')", 0.0),
    ({"in": {"count": [1, 2]}}, "('7/1/#1.0' | '7/1/#2.0')", 0.0),
    ({"in": {"count": [1, None]}}, None, 0.0),
    ({"array_contains": {"tags": ["a", "b"]}}, "(('7/2/a') & ('7/2/b'))", 0.0),
    ({"keyword": {"name": "the printer"}}, "('7/0/the' | '7/0/printer')", 0.52),
    ({"fuzzy": {"name": "the"}}, "('7/0/the':*)", 0.75),
    ({"fuzzy": {"name": "the printer"}}, "('7/0/printer':*)", 0.02),
    ({"startswith": {"name": "red ho"}}, "('7/0/red' & '7/0/ho':*)", 0.0),
    ({"like": {"name": "red ho%t"}}, "('7/0/red' & '7/0/ho':*)", 0.0),
    ({"like": {"name": "red"}}, None, 0.0),
    ({"endswith": {"name": "red"}}, None, 0.0),
    ({"contains": {"name": "print"}}, "(('7/0/printer' | '7/0/reprint' | '7/0/~'))", 0.02),
    ({"endswith": {"name": "a print."}}, "(('7/0/printer' | '7/0/reprint' | '7/0/~'))", 0.02),
    ({"like": {"name": "red%print"}}, "(('7/0/red':*) & ('7/0/printer' | '7/0/reprint' | '7/0/~'))", 0.0),
    ({"contains": {"name": "nowhere"}}, "(('7/0/~'))", 0.0),
    ({"contains": {"name": "everywhere"}}, None, 0.0),
    ({"contains": {"tags": "print"}}, None, 0.0),
    ({"not": {"eq": {"count": 5}}}, None, 0.0),
    ({"eq": {"count": 5}, "gt": {"count": 1}}, "('7/1/#5.0')", 0.0),
    ({"or": [{"eq": {"count": 5}}, {"gt": {"count": 1}}]}, None, 0.0),
]


@pytest.mark.parametrize(("filter_", "text", "share"), CASES)
def test_a_filter_implies_words(filter_, text, share):
    implied = VOCABULARY.implied(parse({"query": {"filter": filter_}}, FIELDS).filter)

    assert (implied and implied.text) == text
    assert (implied.share if implied else 0.0) == share


PARTS = [
    ({"contains": {"name": "a Print, it"}}, [("7/0/", "print")]),
    ({"like": {"name": "on_fire%and\\%water"}}, [("7/0/", "water"), ("7/0/", "fire")]),
    ({"endswith": {"via.channel": "mail"}}, [("7/3/", "mail")]),
    ({"startswith": {"name": "print"}}, []),
    ({"not": {"contains": {"name": "print"}}}, []),
    ({"or": [{"contains": {"name": "print"}}, {"like": {"name": "print"}}]}, [("7/0/", "print")]),
    ({"keyword": {"name": "print"}}, []),
    ({"contains": {"name": "it"}}, []),
]


@pytest.mark.parametrize(("filter_", "parts"), PARTS)
def test_parts_of_words_are_looked_up_in_the_dictionary(filter_, parts):
    assert VOCABULARY.parts(parse({"query": {"filter": filter_}}, FIELDS).filter) == parts


def test_what_decides_alone_leaves_no_word_out():
    condition = parse({"query": {"filter": {"fuzzy": {"name": "the printer"}}}}, FIELDS).filter

    assert VOCABULARY.exact(condition).text == "('7/0/the':* & '7/0/printer':*)"


def test_fields_whose_words_are_not_kept_imply_nothing():
    vocabulary = Vocabulary(7, Layout(), {})

    assert vocabulary.implied(parse({"query": {"filter": {"eq": {"name": "red"}}}}, FIELDS).filter) is None
