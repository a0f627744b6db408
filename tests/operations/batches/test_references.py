"""References between steps: what is wrong with them before anything is sent, and the values that take their place."""

from itertools import islice
from typing import Any

import msgspec
import pytest

from gateway.errors import MAX_FAULTS, FieldError
from gateway.operations.batches.references import (
    MissingValue,
    faults_of,
    filled_params,
    references,
    source_of,
    values_of,
    without_references,
)
from gateway.operations.batches.step_values import MAX_KEPT, StepValues
from tests.harness.work import calls_made, seconds_at_most

RESULTS = {"a": {"id": 7, "tags": ["x", {"name": "y"}], "owner": {"id": 3}}, "list": [{"id": 1}], "r": {"result": 5}}


def filled(params: dict[str, Any], results: dict[str, Any] = RESULTS) -> dict[str, Any]:
    """The params with the values of these results."""
    named = [reference for _, reference in references(params)]
    values: dict[str, msgspec.Raw] = {}
    for step, result in results.items():
        values |= values_of(encoded(result), (reference for reference in named if source_of(reference) == step))
    return filled_params(params, values)


def encoded(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("a.id", 7),
        ("a.result.id", 7),
        ("a.owner.id", 3),
        ("a.tags.1.name", "y"),
        ("a.owner", {"id": 3}),
        ("list.0.id", 1),
        ("list.result.0.id", 1),
        ("r.result", 5),
    ],
)
def test_a_reference_is_a_path_into_the_result_of_its_step(reference, value):
    assert filled({"ids": [{"$from": reference}], "n": 1}) == {"ids": [value], "n": 1}


def test_params_may_be_a_reference_to_an_object():
    assert filled({"$from": "a.owner"}) == {"id": 3}
    assert filled({"id": {"$from": "a.id"}}) == {"id": 7}


@pytest.mark.parametrize("reference", ["a.id", "a.tags", "list.result"])
def test_params_that_are_a_reference_to_something_else_are_refused(reference):
    with pytest.raises(MissingValue, match="not an object"):
        filled({"$from": reference})


@pytest.mark.parametrize(
    "reference", ["a.missing", "a.tags.2", f"a.tags.{'1' * 5000}", "a.tags.-1", "a.id.x", "list.id", "a.owner.id.y"]
)
def test_a_path_that_is_not_there_is_named(reference):
    with pytest.raises(MissingValue, match=reference.replace(".", r"\.")):
        filled({"$from": reference})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("b.id", "refers to 'b', which is not the id of an earlier step; known: a"),
        ("a", "is not a reference"),
        ("a.", "is not a reference"),
        (7, "is not a reference"),
    ],
)
def test_a_reference_to_nothing_is_a_fault(value, text):
    (fault,) = faults_of({"ticket": {"id": {"$from": value}}}, ["a"])

    assert fault.pointer == "/params/ticket/id"
    assert text in fault.message


@pytest.mark.parametrize("path", ["a.text", "a.result.text"])
def test_many_references_to_a_large_value_are_refused(path: str):
    results = {"a": {"text": "x" * 1_000_000}}

    assert filled({"texts": [{"$from": path}] * 30}, results)["texts"][-1] == results["a"]["text"]
    with pytest.raises(MissingValue, match="exceed 32 MiB"):
        filled({"texts": [{"$from": path}] * 40}, results)


def test_a_long_name_is_not_copied_for_every_value_below_it():
    """Quadratic: 500 KB times 100,000 items would take minutes and gigabytes."""
    params = {"x" * 500_000: [{"id": number} for number in range(100_000)] + [{"$from": "a.id"}]}

    with seconds_at_most(1):
        assert [reference for _, reference in references(params)] == ["a.id"]
        assert without_references([FieldError("/params", "", "type", "")], params) == []


def test_of_many_references_to_unknown_steps_the_first_are_compared_with_the_known_ids():
    known = [f"{'ab' * 45}{number}" for number in range(19)]
    params = {"ids": [{"$from": f"{'ba' * 95}{number}.id"} for number in range(20_000)]}

    def faults(number: int) -> list[FieldError]:
        return list(islice(faults_of(params, known), number))

    assert len(faults(MAX_FAULTS)) == MAX_FAULTS
    assert calls_made(lambda: faults(MAX_FAULTS)) < 1.2 * calls_made(lambda: faults(5))


def test_an_object_with_more_members_is_no_reference():
    assert list(references({"x": {"$from": "a.id", "other": 1}})) == []


@pytest.mark.parametrize(
    ("pointer", "code", "is_left"),
    [
        ("/params/id", "type", False),
        ("/params/id/$from", "unknown", False),
        ("/params/ids", "type", False),
        ("/params/ids", "maxItems", True),
        ("/params/other", "type", True),
        ("/params/idx", "type", True),
    ],
)
def test_faults_that_references_explain_are_left_out(pointer, code, is_left):
    params = {"id": {"$from": "a.id"}, "ids": [{"$from": "a.id"}]}
    fault = FieldError(pointer, "", code, "")

    assert without_references([fault], params) == ([fault] if is_left else [])


def step_values(params: dict[str, Any], **results: object) -> StepValues:
    """The values that a job keeps of these results for a step with these params."""
    kept = StepValues()
    kept.expect(params)
    for step, result in results.items():
        kept.keep(step, encoded(result))
    return kept


def test_only_the_values_that_steps_refer_to_are_kept():
    params = {"id": {"$from": "a.id"}}
    kept = step_values(params, a={"id": 7, "text": "x" * 1_000_000}, b={"id": "y" * 1_000_000})

    assert kept.filled(params) == {"id": 7}
    assert sum(len(memoryview(value)) for value in kept._values.values()) == 1


def test_the_values_of_a_job_are_bounded():
    params = {"texts": [{"$from": "a.text"}, {"$from": "b.text"}]}
    half = MAX_KEPT // 2

    assert step_values(params, a={"text": "x" * (half - 2)}, b={"text": "x" * (half - 2)}).filled(params)
    with pytest.raises(MissingValue, match="exceed 8 MiB"):
        step_values(params, a={"text": "x" * half}, b={"text": "x" * half}).filled(params)


def test_a_step_whose_source_did_not_succeed_is_known():
    params = {"ids": [{"$from": "a.id"}, {"$from": "b.id"}]}

    assert step_values(params, a={"id": 1}).missing(params) == "b"
    assert step_values(params, a={"id": 1}, b={}).missing(params) is None


def test_many_references_to_one_result_divide_it_once():
    result = encoded([{"id": number} for number in range(100_000)])
    named = [f"a.{number}.id" for number in range(20_000)]

    with seconds_at_most(1):
        assert len(dict(values_of(result, named))) == 20_000
