"""Checks of params against their schema: accepted and completed params, and a sentence for each fault."""

from datetime import UTC, datetime

import pytest

from gateway.errors import InvalidParams
from gateway.foundation.aio.clock import CLOCK
from gateway.kinds.params import unpaged_limit, validated
from gateway.kinds.requests import DefaultTime
from tests.kinds.small_kind import small_operation

PARAMS = {
    "id": {"type": "integer"},
    "name": {"type": "string", "minLength": 2, "maxLength": 4, "description": "what it is called"},
    "state": {"type": "string", "enum": ["open", "shut"]},
    "size": {"type": "integer", "minimum": 1, "maximum": 9},
    "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
    "code": {"type": "string", "pattern": "^[a-z]+$", "description": "small letters"},
    "day": {"type": "string", "format": "date"},
    "owner": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "role": {"enum": ["admin"]}},
        "required": ["name"],
        "additionalProperties": False,
    },
    "extra": {},
}
ACT = {"request": "POST /things/{id}", "effect": "write", "params": PARAMS, "required": ["id"]}
OPERATION = small_operation(ACT)


@pytest.mark.parametrize(
    ("params", "field", "code", "message"),
    [
        ({}, "id", "required", "things.act: id is missing; integer"),
        ({"id": "x"}, "id", "type", "things.act: id is 'x'; expected integer"),
        ({"id": True}, "id", "type", "things.act: id is true; expected integer"),
        ({"id": None}, "id", "type", "things.act: id is null; expected integer"),
        ({"id": 1.5}, "id", "type", "things.act: id is 1.5; expected integer"),
        ({"id": 1, "name": "a"}, "name", "minLength", "things.act: name is 'a'; at least 2 characters"),
        ({"id": 1, "name": "abcde"}, "name", "maxLength", "things.act: name is 'abcde'; at most 4 characters"),
        ({"id": 1, "name": 5}, "name", "type", "things.act: name is 5; expected string (what it is called)"),
        ({"id": 1, "state": "up"}, "state", "enum", "things.act: state is 'up'; allowed: open, shut"),
        ({"id": 1, "size": 0}, "size", "minimum", "things.act: size is 0; at least 1"),
        ({"id": 1, "size": 10}, "size", "maximum", "things.act: size is 10; at most 9"),
        ({"id": 1, "tags": []}, "tags", "minItems", "things.act: tags is []; at least 1 items"),
        ({"id": 1, "tags": ["a", 5]}, "tags.1", "type", "things.act: tags.1 is 5; expected string"),
        ({"id": 1, "tags": "a,b"}, "tags", "type", "things.act: tags is 'a,b'; expected array"),
        ({"id": 1, "code": "A"}, "code", "pattern", "things.act: code is 'A'; must match ^[a-z]+$ (small letters)"),
        ({"id": 1, "day": "soon"}, "day", "format", "things.act: day is 'soon'; must be a date such as 2026-01-31"),
        ({"id": 1, "owner": {}}, "owner.name", "required", "things.act: owner.name is missing; string"),
        (
            {"id": 1, "owner": {"name": "a", "rolle": "admin"}},
            "owner.rolle",
            "unknown",
            "things.act: owner.rolle is not a param; did you mean role?",
        ),
        ({"id": 1, "sise": 5}, "sise", "unknown", "things.act: sise is not a param; did you mean size?"),
        ({"id": 1, "name": "a\x00"}, "name", "text", "things.act: name contains NUL or a lone surrogate; remove it"),
        (
            {"id": 1, "extra": {"\ud800": 1}},
            "extra.\\ud800",
            "text",
            "things.act: extra.\\ud800 contains NUL or a lone surrogate",
        ),
        ({"id": 1, "extra": [float("nan")]}, "extra.0", "number", "things.act: extra.0 is not a finite number"),
        ({"id": 1, "extra": float("inf")}, "extra", "number", "things.act: extra is not a finite number"),
        ({"id": 1, "owner": {1: 2}}, "", "type", "things.act: params are not JSON"),
        ({"id": 1, "extra": b"raw"}, "", "type", "things.act: params are not JSON"),
    ],
)
def test_a_fault_names_the_param_its_value_and_what_is_allowed(params, field, code, message):
    with pytest.raises(InvalidParams) as refused:
        validated(OPERATION, params)

    [fault] = refused.value.faults
    assert (fault.field, fault.code) == (field, code)
    assert fault.message.startswith(message)


def test_all_faults_are_named_at_once():
    with pytest.raises(InvalidParams) as refused:
        validated(OPERATION, {"name": "a", "size": 0, "colour": "red"})

    messages = [fault.message for fault in refused.value.faults]
    assert refused.value.detail == "; ".join([*messages[:3], "and 1 more"])
    assert {fault.field for fault in refused.value.faults} == {"id", "name", "size", "colour"}


def test_a_fault_points_into_the_request():
    with pytest.raises(InvalidParams) as refused:
        validated(OPERATION, {"id": 1, "owner": {"name": "a", "a/b~c": 1}})

    assert refused.value.faults[0].pointer == "/params/owner/a~1b~0c"


def test_a_long_value_is_not_repeated_whole():
    with pytest.raises(InvalidParams) as refused:
        validated(OPERATION, {"id": 1, "state": "x" * 100_000})

    assert len(refused.value.detail) < 150


def test_deep_nesting_is_refused():
    deep: dict = {}
    for _ in range(5000):
        deep = {"a": deep}

    with pytest.raises(InvalidParams, match="extra is nested more than 64 levels deep"):
        validated(OPERATION, {"id": 1, "extra": deep})


@pytest.mark.parametrize(
    ("given", "completed"),
    [
        ({"id": "35436"}, {"id": 35436}),
        ({"id": "0007"}, {"id": 7}),
        ({"id": 2.0}, {"id": 2}),
        ({"id": 1, "name": "ü😀"}, {"id": 1, "name": "ü😀"}),
    ],
)
def test_ids_of_the_path_are_integers_however_they_are_written(given, completed):
    assert validated(OPERATION, given) == completed


@pytest.mark.parametrize("text", ["", " 1", "1.0", "-1", "١٢", "0x1", "1e3", "1" * 20])
def test_text_that_is_no_id_is_refused(text):
    with pytest.raises(InvalidParams, match="expected integer"):
        validated(OPERATION, {"id": text})


NUMBERS = small_operation(
    {
        "params": {
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "name": {"type": "string"},
            "either": {"type": ["integer", "string"]},
            "thing": {"$ref": "#/$defs/thing"},
            "ids": {"type": "string", "format": "comma-separated"},
            "tags": {"type": "array", "items": {"type": "integer"}},
        }
    },
    definitions={"thing": {"type": "object", "properties": {"id": {"type": "integer"}}}},
)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"count": "2"}, {"count": 2}),
        ({"ratio": "2"}, {"ratio": 2}),
        ({"ratio": "2.5"}, {"ratio": 2.5}),
        ({"name": "2"}, {"name": "2"}),
        ({"either": "2"}, {"either": "2"}),
        ({"thing": {"id": "7", "other": "8"}}, {"thing": {"id": 7, "other": "8"}}),
        ({"tags": ["1", 2]}, {"tags": [1, 2]}),
        ({"ids": [1, "2", 3]}, {"ids": "1,2,3"}),
        ({"ids": "1,2"}, {"ids": "1,2"}),
    ],
)
def test_numbers_may_come_as_text_and_several_ids_as_an_array(given, read):
    assert validated(NUMBERS, given) == read


@pytest.mark.parametrize("given", [{"name": ["a", "b"]}, {"ids": [["a"]]}, {"ids": []}, {"count": "1e3"}])
def test_values_that_cannot_be_converted_are_refused(given):
    with pytest.raises(InvalidParams, match="expected"):
        validated(NUMBERS, given)


def test_a_member_beside_its_object_is_refused_with_the_right_name():
    thing = {"type": "object", "properties": {"subject": {"type": "string"}}, "additionalProperties": False}

    with pytest.raises(InvalidParams, match=r"subject is not a param; did you mean thing\.subject\?"):
        validated(small_operation({"params": {"thing": thing}}), {"subject": "x"})


def test_a_refusal_carries_an_example_of_the_operation():
    operation = small_operation({"params": {"id": {"type": "integer"}}, "example": {"id": 7}})

    with pytest.raises(InvalidParams) as refused:
        validated(operation, {"id": "x"})

    assert refused.value.extra == {"example": {"entity": "things", "action": "act", "params": {"id": 7}}}


def test_defaults_complete_params_and_objects_that_were_given():
    owner = {"type": "object", "properties": {"role": {"type": "string", "default": "admin"}, "name": {}}}
    operation = small_operation({"params": {"limit": {"type": "integer", "default": 25}, "owner": owner}})

    assert validated(operation, {}) == {"limit": 25}
    assert validated(operation, {"limit": 5, "owner": {"name": "a"}}) == {
        "limit": 5,
        "owner": {"role": "admin", "name": "a"},
    }


@pytest.mark.parametrize(
    ("default", "text"),
    [
        ({}, "2026-03-01"),
        ({"days_ago": 1}, "2026-02-28"),
        ({"days_ago": 365, "format": "%Y%m%d"}, "20250301"),
        ({"format": "%Y-%m-%dT%H:%M:%SZ"}, "2026-03-01T00:30:00Z"),
    ],
)
def test_a_default_time_lies_days_before_the_call(default, text):
    assert DefaultTime(**default).at(datetime(2026, 3, 1, 0, 30, tzinfo=UTC)) == text


def test_a_default_time_completes_a_call_without_the_param():
    day = {"type": "string", "default_time": {"days_ago": 7}}
    operation = small_operation({"params": {"start": day, "size": {"type": "integer", "default": 5}}})

    # The day may end during the call.
    before = DefaultTime(days_ago=7).at(CLOCK.now())
    completed = validated(operation, {})
    after = DefaultTime(days_ago=7).at(CLOCK.now())

    assert completed in ({"start": before, "size": 5}, {"start": after, "size": 5})
    assert validated(operation, {"start": "2026-01-31"}) == {"start": "2026-01-31", "size": 5}
    assert "default_time" not in operation.schema["properties"]["start"]


LISTED = {
    "records": "things",
    "paging": "page",
    "params": {"page": {"type": "integer"}, "per_page": {"type": "integer", "maximum": 100}},
}
#: a list whose account-wide form is another request with a `limit` of its own
TWO_LISTS = {
    "request": "GET /things/{id}/parts",
    "records": "parts",
    "paging": "page",
    "alternatives": [{"without": "id", "request": "GET /parts", "paging": "cursor"}],
    "params": {"id": {"type": "integer"}, "per_page": {"type": "integer"}, "limit": {"type": "integer"}, "after": {}},
}
UNPAGED = {"records": "things"}


@pytest.mark.parametrize(
    ("action", "given", "sent"),
    [
        (LISTED, {"limit": 7}, {"per_page": 7}),
        (LISTED, {"limit": 7, "per_page": 7}, {"per_page": 7}),
        (LISTED, {"per_page": 7}, {"per_page": 7}),
        (TWO_LISTS, {"id": 1, "limit": 7}, {"id": 1, "per_page": 7}),
        (TWO_LISTS, {"limit": 7}, {"limit": 7}),
        (UNPAGED, {"limit": 7}, {}),
    ],
)
def test_limit_is_sent_under_the_applications_name(action, given, sent):
    assert validated(small_operation(action), given) == sent


@pytest.mark.parametrize(
    ("action", "given", "message"),
    [
        (LISTED, {"limit": 101}, "per_page is 101; at most 100"),
        (LISTED, {"limit": 0}, "limit is 0; at least 1"),
        (LISTED, {"limit": "five"}, "limit is 'five'; at least 1"),
        (LISTED, {"limit": True}, "limit is true; at least 1"),
        (LISTED, {"limit": 5, "per_page": 6}, "limit is 5 and per_page is 6; send one of them"),
        ({}, {"limit": 5}, "limit is not a param"),
    ],
)
def test_an_invalid_limit_is_refused(action, given, message):
    with pytest.raises(InvalidParams) as refused:
        validated(small_operation(action), given)

    assert message in refused.value.detail


@pytest.mark.parametrize(("action", "limit"), [(UNPAGED, 7), (LISTED, None), (TWO_LISTS, None), ({}, None)])
def test_a_list_without_pages_is_cut_afterwards(action, limit):
    assert unpaged_limit(small_operation(action), {"limit": 7}) == limit


AB = {"a": {"type": "string"}, "b": {"type": "string"}, "n": {"type": "integer"}}


@pytest.mark.parametrize(
    ("constraints", "given", "message"),
    [
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {},
            "exactly one of a, b must be given; given: none",
        ),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a": "x", "b": "y"},
            "exactly one of a, b must be given; given: a, b",
        ),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b", "n"]}]}, {}, "at least one of a, b with n must be given"),
        ({"not": {"required": ["a", "b"]}}, {"a": "x", "b": "y"}, "a and b exclude each other; send one of them"),
        (
            {"dependentSchemas": {"a": {"properties": {"n": {"maximum": 5}}}}},
            {"a": "x", "n": 6},
            "n is 6; at most 5 with a",
        ),
    ],
)
def test_a_forbidden_combination_of_params_is_refused_with_their_names(constraints, given, message):
    with pytest.raises(InvalidParams) as refused:
        validated(small_operation({"params": AB, "constraints": constraints}), given)

    assert message in refused.value.detail


@pytest.mark.parametrize(
    ("params", "sent"),
    [
        ({}, {"limit": 50, "status": "any"}),
        ({"page_info": "abc"}, {"limit": 50, "page_info": "abc"}),
        ({"page_info": "abc", "status": "open"}, {"limit": 50, "page_info": "abc", "status": "open"}),
    ],
)
def test_a_further_page_has_the_defaults_that_its_request_may_repeat(params, sent):
    style = {"style": "link", "param": "page_info", "size": "limit", "next": "next", "meta": {"next": "$link.next"}}
    paging = {"next": {**style, "repeat_params": ["limit"]}}
    listed = {"limit": {"default": 50}, "status": {"default": "any"}, "page_info": {}}
    operation = small_operation({"records": "things", "paging": "next", "params": listed}, paging=paging)

    assert validated(operation, params) == sent


def test_a_param_may_be_given_under_its_plain_name():
    operation = small_operation({"params": {"owner[id]": {"type": "integer"}, "name": {}}})

    assert validated(operation, {"owner_id": "7", "name": "x"}) == {"owner[id]": 7, "name": "x"}
