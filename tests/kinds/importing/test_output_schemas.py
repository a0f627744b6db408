"""Output schemas of strangers' tools: what is kept of them, and that no value is refused that the server accepts."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kinds.importing.output_schemas import output_schema
from tests.harness.work import seconds_at_most

ISSUE = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
MADE: dict[str, tuple[Any, Any]] = {
    "no schema": (None, None),
    "a schema that is none": (["object"], None),
    "a schema that accepts everything": ({}, {}),
    "members": (ISSUE, ISSUE),
    "texts for people are left out": ({**ISSUE, "title": "Issue", "description": "x", "$schema": "y"}, ISSUE),
    "a reference": ({"$ref": "#/$defs/issue", "$defs": {"issue": ISSUE}}, ISSUE),
    "keywords beside a reference": (
        {"$ref": "#/$defs/issue", "minProperties": 2, "$defs": {"issue": {**ISSUE, "additionalProperties": False}}},
        {"allOf": [{"minProperties": 2}, {**ISSUE, "additionalProperties": False}]},
    ),
    "a closed object": (
        {"properties": {"a": {}}, "additionalProperties": False},
        {"properties": {"a": {}}, "additionalProperties": False},
    ),
    "an object that patterns of names open": (
        {"properties": {"a": {}}, "additionalProperties": False, "patternProperties": {"^x": {}}},
        {},
    ),
    "a map": (
        {"properties": {"a": {"pattern": "x"}}, "additionalProperties": {"type": "integer"}},
        {"properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
    ),
    "one of several": (
        {"oneOf": [{"type": "integer"}, {"type": "string", "pattern": "^(a+)+$", "format": "date"}]},
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    "a choice that accepts everything": ({"anyOf": [{"type": "integer"}, {"pattern": "x"}]}, {}),
    "both choices": (
        {"anyOf": [{"type": "integer"}], "oneOf": [{"minimum": 1}]},
        {"allOf": [{"anyOf": [{"type": "integer"}]}, {"anyOf": [{"minimum": 1}]}]},
    ),
    "a tuple": ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, {}),
    "values": ({"enum": [1, True, None, "a"]}, {"enum": [1, True, None, "a"]}),
    "a constant": ({"const": "a", "type": "string"}, {"type": "string", "enum": ["a"]}),
    "values that are objects": ({"enum": [{"a": 1}]}, {}),
    "types that are none": ({"type": ["object", "nonsense"], "minimum": "1", "maxLength": -1, "required": "a"}, {}),
    "what is not checked": ({"not": ISSUE, "if": ISSUE, "then": ISSUE, "contains": {}, "multipleOf": 0.01}, {}),
}


@pytest.mark.parametrize(("stated", "made"), MADE.values(), ids=MADE)
def test_a_schema_is_kept_without_references_patterns_and_formats(stated, made):
    assert output_schema(stated) == made


FOREIGN = ["file:///etc/passwd", "https://evil.example/x.json", "//evil.example/x", "#name", "other.json#/a", ""]


@pytest.mark.parametrize("reference", FOREIGN)
def test_a_reference_to_another_document_or_by_name_accepts_everything(reference):
    assert output_schema({"$ref": reference, "type": "object"}) == {"type": "object"}


def test_a_part_with_an_id_accepts_everything_because_its_references_are_relative_to_it():
    part = {"$id": "https://x.example/part", "$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}

    assert output_schema({"$id": "https://x.example", "properties": {"a": part}, "$defs": {"a": ISSUE}}) == {}


def doubled(levels: int, keyword: str) -> dict[str, Any]:
    """A schema of a few lines that has 2 ** levels parts without its references."""
    inner = {
        str(level): {keyword: [{"$ref": f"#/$defs/{level + 1}"}] * 2, "type": "object", "minProperties": level}
        for level in range(levels)
    }
    return {"$ref": "#/$defs/0", "$defs": {**inner, str(levels): ISSUE}}


def widened(levels: int) -> dict[str, Any]:
    properties = {f"p{number}": {"$ref": "#/$defs/{0}"} for number in range(30)}
    inner = {
        str(level): {"properties": {name: {"$ref": f"#/$defs/{level + 1}"} for name in properties}}
        for level in range(levels)
    }
    return {"$ref": "#/$defs/0", "$defs": {**inner, str(levels): ISSUE}}


LOOP = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
HOSTILE = {
    "references that double": doubled(60, "allOf"),
    "choices that double": doubled(60, "anyOf"),
    "members that multiply": widened(60),
    "a tree": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}},
    "a reference to itself": {"$ref": "#"},
    "a loop": LOOP,
    "a conjunction of itself": {"allOf": [{"$ref": "#"}] * 300},
    "members without end": {"properties": {f"p{number}": {"type": "string"} for number in range(100_000)}},
    "values without end": {"enum": [f"v{number}" for number in range(100_000)]},
    "long values": {"enum": ["v" * 1_000_000]},
    "numbers that no double holds": {"minimum": 10**400, "maximum": float("inf"), "enum": [10**400]},
}


@pytest.mark.parametrize("stated", HOSTILE.values(), ids=HOSTILE)
def test_the_size_of_what_is_made_and_the_time_for_it_are_bounded(stated):
    with seconds_at_most(1):
        made = output_schema(stated)

    assert parts_of(made) <= 500
    jsonschema_rs.Draft202012Validator(made, offline=True)


def parts_of(schema: Any) -> int:
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return isinstance(schema, dict) + sum(map(parts_of, inner))


def test_the_first_levels_of_a_schema_without_end_are_checked():
    tree = output_schema(HOSTILE["a tree"])

    validator = jsonschema_rs.Draft202012Validator(tree, offline=True)
    assert validator.is_valid({"children": [{"children": []}]})
    assert not validator.is_valid({"children": [{"children": "none"}]})


NAMES = st.sampled_from(["a", "b"])
SCALARS = st.sampled_from([None, True, 1, 0, 2.5, "a", "bb", ""])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=2), max_leaves=6
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
PLAIN = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(SCALARS, min_size=1, max_size=3),
        "const": SCALARS,
        "minimum": st.integers(0, 2),
        "minLength": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "uniqueItems": st.booleans(),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "pattern": st.just("^b"),
        "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"]),
    },
)
#: schemas by keywords, of which each may hold further ones
ANY = st.recursive(
    PLAIN | st.booleans(),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES,
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "patternProperties": st.dictionaries(st.just("^a"), inner, max_size=1),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "$ref": st.just("#/$defs/x"),
        },
    ),
    max_leaves=8,
)


@given(ANY.filter(lambda each: isinstance(each, dict)), PLAIN, PLAIN, VALUES)
def test_no_value_is_refused_that_the_schema_of_the_server_accepts(schema, first, second, value):
    definitions = {"x": {**first, "$ref": "#/$defs/y"}, "y": {name: second[name] for name in second if name != "$ref"}}
    stated = {**schema, "$defs": definitions}
    theirs = jsonschema_rs.Draft202012Validator(stated, offline=True)
    ours = jsonschema_rs.Draft202012Validator(output_schema(stated), offline=True)

    assert ours.is_valid(value) or not theirs.is_valid(value)
