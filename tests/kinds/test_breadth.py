"""Schemas that ask much of each value, as an imported kind may have them, do not hold the loop."""

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.agents.mcp.features import ServerTool
from gateway.errors import InvalidParams
from gateway.kinds.breadth import MAX_BREADTH, breadth_of
from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.lint.kind import lint_kind
from gateway.kinds.params import MAX_VALUES, validated
from tests.harness.blocked_loop import LIMIT
from tests.harness.catalog import shipped_catalog
from tests.harness.work import seconds_at_most
from tests.kinds.small_kind import small_operation

NAMES = [f"p{number}" for number in range(1000)]
MANY_REQUIRED = {"properties": {name: {"type": "string", "description": name} for name in NAMES}, "required": NAMES}
#: a definition that two references lead to, which two lead to, and so on
TWICE = {f"d{n}": {"description": "d", "allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {
    "d40": {"type": "string", "description": "d"}
}
#: a choice among lists of itself
CHOICES = {"d0": {"description": "d", "items": {"anyOf": [{"$ref": "#/$defs/d0"}, {"$ref": "#/$defs/d0"}]}}}
FILTER = {"d0": {"properties": {name: {"items": {"$ref": "#/$defs/d0"}} for name in ("and", "or")}}}


def nested(levels: int) -> list[Any]:
    return [nested(levels - 1)] if levels else []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array", "items": MANY_REQUIRED}, [{}] * 1900),
        (MANY_REQUIRED, {"x": "y" * 1_000_000}),
        (MANY_REQUIRED, {"x": list(range(1900))}),
        ({"items": {"anyOf": [{"required": [name]} for name in NAMES[:300]]}}, [{}] * 1900),
        ({"items": {"enum": [*range(5000)]}}, [4999] * 20_000),
        ({"items": {"type": "number", "multipleOf": 0.01}}, [1e300] * 40_000),
        ({"allOf": [{"items": {"type": "integer"}}] * 1000}, [1] * 40_000),
    ],
    ids=["required", "text", "numbers", "choices", "enum", "fractions", "all"],
)
def test_faults_of_a_demanding_schema_take_bounded_time(schema: Mapping[str, Any], value: Any):
    operation = small_operation({"params": {"a": {**schema, "description": "a"}}})
    assert operation.validator

    for check in (validated, faults_of_tool):
        with seconds_at_most(LIMIT), pytest.raises(InvalidParams):
            check(operation, {"a": value})


def faults_of_tool(operation: Operation, arguments: Mapping[str, Any]) -> None:
    async def call(*_: Any) -> Any:
        raise AssertionError

    if ServerTool(name="act", description="Acts.", input_schema=operation.schema, call=call).faults(arguments):
        raise InvalidParams(faults=[])


@pytest.mark.parametrize(("definitions", "value"), [(TWICE, "a"), (CHOICES, nested(40))], ids=["twice", "choices"])
def test_references_that_multiply_are_refused_before_anything_is_checked(definitions: Mapping[str, Any], value: Any):
    params = {"a": {"$ref": "#/$defs/d0", "description": "a"}}
    operation = small_operation({"params": params}, definitions=definitions)

    errors = [message for place, message in lint_kind(Kind(operation.spec)) if place[:1] == ("entities",)]

    assert any("one value is checked with more than" in each for each in errors)
    with pytest.raises(InvalidParams, match="more than 0 values"):
        validated(operation, {"a": value})


def test_a_filter_may_hold_filters():
    params = {"a": {"$ref": "#/$defs/d0", "description": "a"}}
    operation = small_operation({"params": params}, definitions=FILTER)
    value: dict[str, Any] = {}
    for _ in range(20):
        value = {"and": [value], "or": [{}]}

    assert validated(operation, {"a": value}) == {"a": value}
    assert operation.breadth < 100


def test_every_operation_that_is_shipped_may_have_as_many_values_as_before():
    for kind in shipped_catalog():
        for operation in kind.operations.values():
            assert operation.breadth * MAX_VALUES <= 2_000_000


def test_properties_are_different_values():
    schema = {"properties": {name: {"type": "string"} for name in NAMES}}

    assert breadth_of(schema, {}) == 2
    assert breadth_of({"items": schema, "contains": schema}, {}) == 5
    assert MAX_BREADTH > breadth_of(MANY_REQUIRED, {}) == 1002
