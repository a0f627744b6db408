"""Property names both ways: what callers say, what the application says, and that no value is lost between."""

import msgspec
import pytest

from gateway.upstream.property_names import PropertyNames, with_our_names, with_their_names
from gateway.upstream.responses import OperationResult
from tests.kinds.small_kind import small_operation

NAMES = {"crm_owner_id": "vendor_owner_id", "crm_*": "v_*"}
OPERATION = small_operation(property_names=NAMES)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("crm_owner_id", "vendor_owner_id"),
        ("crm_object_id", "v_object_id"),
        ("crm_", "v_"),
        ("email", "email"),
        ("my_crm_id", "my_crm_id"),
    ],
)
def test_names_go_both_ways(ours, theirs):
    names = PropertyNames(NAMES)

    assert names.theirs(ours) == theirs
    assert names.ours(theirs) == ours


def test_a_name_that_could_not_be_led_back_stays():
    assert PropertyNames(NAMES).ours("v_owner_id") == "v_owner_id"


@pytest.mark.parametrize(
    ("params", "sent"),
    [
        ({"properties": "a, crm_x,crm_owner_id"}, {"properties": "a,v_x,vendor_owner_id"}),
        ({"properties": ["crm_x"]}, {"properties": ["v_x"]}),
        ({"idProperty": "crm_x"}, {"idProperty": "v_x"}),
        ({"sorts": [{"propertyName": "crm_x"}, {}]}, {"sorts": [{"propertyName": "v_x"}, {}]}),
        ({"filterGroups": [{}, {"filters": [{}]}]}, {"filterGroups": [{}, {"filters": [{}]}]}),
        ({"query": "crm_x", "after": "crm_x"}, {"query": "crm_x", "after": "crm_x"}),
    ],
)
def test_params_that_name_properties_are_translated_and_no_others(params, sent):
    assert with_their_names(OPERATION, params) == sent


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({"properties": {"v_x": 1, "b": 2}}, {"properties": {"crm_x": 1, "b": 2}}),
        ({"properties": {"v_x": 1, "crm_x": 2}}, {"properties": {"v_x": 1, "crm_x": 2}}),
        ({"properties": None}, {"properties": None}),
        ({"v_x": 1}, {"v_x": 1}),
        ([{"properties": {"v_x": 1}}, None], [{"properties": {"crm_x": 1}}, None]),
        ({"properties": [{"name": "v_x"}, {}, 5]}, {"properties": [{"name": "crm_x"}, {}, 5]}),
        ({"requiredProperties": ["v_x", 5]}, {"requiredProperties": ["crm_x", 5]}),
        (None, None),
    ],
)
def test_answers_show_the_callers_names(body, shown):
    answer = with_our_names(
        OPERATION, OperationResult(result=msgspec.Raw(msgspec.json.encode(body)), meta={"count": 1})
    )

    assert answer.decoded() == shown
    assert answer.meta == {"count": 1}
