"""Patterns of params take time linear in the text, of which they check a bounded amount."""

import pytest

from gateway.agents.mcp.features import ServerTool
from gateway.agents.mcp.results import Result
from gateway.errors import InvalidParams
from gateway.kinds.lint.schemas import of_schema
from gateway.kinds.params import validated
from gateway.kinds.patterns import is_pattern, without_unusable
from tests.harness.blocked_loop import LIMIT
from tests.harness.catalog import shipped_catalog
from tests.harness.work import seconds_at_most
from tests.kinds.small_kind import small_operation

EXPONENTIAL, LOOKING_AHEAD, LARGE = r"(a|aa)+\1$", "(?=.*z)x", r"^\p{L}{1,90}i$"


def with_pattern(pattern: str):
    return small_operation({"params": {"a": {"type": "string", "pattern": pattern, "description": "a"}}})


def test_the_patterns_of_shipped_kinds_compile():
    operations = [each for kind in shipped_catalog().kinds.values() for each in kind.operations.values()]

    for operation in operations:
        for schema in operation.action.params.values():
            assert without_unusable(schema) == schema
    assert without_unusable({"pattern": "("}) == {}
    assert any(operation.patterned_params for operation in operations)


@pytest.mark.parametrize("pattern", [EXPONENTIAL, LOOKING_AHEAD, LARGE])
def test_the_linter_refuses_a_pattern_of_another_engine_or_a_large_one(pattern: str):
    [(place, message)] = of_schema(with_pattern("a").spec, ("params", "a"), {"type": "string", "pattern": pattern})

    assert place[:2] == ("params", "a")
    assert "is not JSON Schema" in message


@pytest.mark.parametrize("pattern", [EXPONENTIAL, LOOKING_AHEAD, LARGE])
def test_a_pattern_that_an_older_import_kept_is_not_checked(pattern: str):
    assert validated(with_pattern(pattern), {"a": "a" * 100_000 + "b"})


def test_a_pattern_is_checked():
    assert validated(with_pattern("^(a+)+$"), {"a": "a" * 1000})
    with pytest.raises(InvalidParams, match="must match"):
        validated(with_pattern("^(a+)+$"), {"a": "a" * 1000 + "b"})


@pytest.mark.parametrize(("pattern", "most"), [("^[ab]*$", 131_072), ("[ab]*a[ab]{400}$", 16_384)])
def test_texts_that_are_too_long_for_their_pattern_are_refused(pattern: str, most: int):
    assert validated(with_pattern(pattern), {"a": "a" * most})
    with pytest.raises(InvalidParams, match="too long together"):
        validated(with_pattern(pattern), {"a": "a" * (most + 1)})


def test_all_texts_of_a_list_count():
    items = {"type": "string", "pattern": "^[ab]*$"}
    operation = small_operation({"params": {"a": {"type": "array", "items": items, "description": "a"}}})

    with pytest.raises(InvalidParams, match="too long together"):
        validated(operation, {"a": ["a" * 1000] * 132})


AROUND = {
    "names": {"propertyNames": {"pattern": "^[ab]*$"}},
    "named": {"patternProperties": {"^[ab]*$": {}}},
    "contains": {"contains": {"pattern": "^[ab]*$"}},
    "first": {"prefixItems": [{"pattern": "^[ab]*$"}]},
    "not": {"not": {"items": {"pattern": "^[ab]*c$"}}},
    "reference": {"not": {"minItems": 9, "items": {"$ref": "#/$defs/word"}}},
    "beside": {"items": {"$ref": "#/$defs/word", "pattern": "a"}},
    "if": {"if": {"items": {"pattern": "^[ab]*$"}}, "then": {}},
}


@pytest.mark.parametrize("schema", AROUND.values(), ids=AROUND)
def test_patterns_count_in_whatever_keyword_they_stand(schema):
    operation = small_operation(
        {"params": {"a": {**schema, "description": "a"}}}, definitions={"word": {"pattern": "^[ab]*$"}}
    )
    text = "a" * 200_000
    assert validated(operation, {"a": ["a"]})

    with pytest.raises(InvalidParams, match="too long together"):
        validated(operation, {"a": {text: 1} if {"propertyNames", "patternProperties"} & set(schema) else [text]})


def test_patterns_of_constraints_count():
    constraints = {"allOf": [{"properties": {"a": {"pattern": "^[ab]*$"}}}]}
    params = {"a": {"type": "string", "description": "a"}}

    with pytest.raises(InvalidParams, match="too long together"):
        validated(small_operation({"params": params, "constraints": constraints}), {"a": "a" * 200_000})


def test_a_text_that_is_not_ascii_is_matched_with_boundaries_of_words_in_bounded_time():
    operation = with_pattern(r"(?:\b|\B|a*|é){20}z$")
    text = "é" * 8192
    assert operation.validator.is_valid({"a": "z"})

    with seconds_at_most(LIMIT), pytest.raises(InvalidParams, match="must match"):
        validated(operation, {"a": text})
    with pytest.raises(InvalidParams, match="too long together"):
        validated(operation, {"a": text + "é"})


def test_names_by_patterns_that_an_older_import_kept_are_not_checked():
    operation = small_operation(
        {"params": {"a": {"patternProperties": {LOOKING_AHEAD: {"type": "null"}}, "description": "a"}}}
    )

    assert validated(operation, {"a": {"x": 1}})


def test_the_tool_of_an_operation_matches_its_patterns_with_the_same_engine():
    operation = with_pattern(EXPONENTIAL)

    async def call(*_: object) -> Result:
        raise AssertionError

    tool = ServerTool(name="act", description="Acts.", input_schema=operation.schema, call=call)
    with seconds_at_most(LIMIT):
        assert not tool.faults({"a": "a" * 100_000 + "b"})
        assert tool.faults({"a": 1})


@pytest.mark.parametrize("pattern", [r"\w" * 240, r"\s" * 5000], ids=["used before", "very long"])
def test_patterns_that_take_long_to_compile_are_refused_and_not_checked(pattern: str):
    names = [f"p{number}" for number in range(100)]
    params = {name: {"type": "string", "pattern": pattern + name, "description": name} for name in names}
    operation = small_operation({"params": params})

    with seconds_at_most(LIMIT):
        assert validated(operation, {"p1": "a"})
        [(place, message)] = of_schema(operation.spec, ("params", "p1"), params["p1"])
        [(named, _)] = of_schema(operation.spec, ("params", "p1"), {"patternProperties": {pattern: {}}})
    assert (place, named) == (("params", "p1", "pattern"),) * 2
    assert "more than 20 escapes" in message
    assert not is_pattern(pattern)
    assert is_pattern(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$")
