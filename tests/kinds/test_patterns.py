"""Patterns of params take time linear in the text, of which they check a bounded amount."""

import pytest

from gateway.errors import InvalidParams
from gateway.kinds.lint.schemas import of_schema
from gateway.kinds.params import validated
from gateway.kinds.patterns import without_unusable
from tests.harness.catalog import shipped_catalog
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
