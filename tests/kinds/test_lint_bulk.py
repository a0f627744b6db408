"""The errors of the linter and the models for bulk requests that cannot work."""

from typing import Any

import pytest
from pydantic import ValidationError

from gateway.kinds.bulk import Bulk
from gateway.kinds.catalog import Kind
from gateway.kinds.lint.bulk import of_operation
from tests.kinds.small_kind import small_operation

PARAMS = {name: {"type": "string", "description": name} for name in ("thing_id", "fields", "lang")}
ACTION: dict[str, Any] = {"request": "GET /things/{thing_id}", "params": PARAMS, "required": ["thing_id"]}
BULK: dict[str, Any] = {
    "request": "GET /things",
    "items": {"as": "ids", "in": "query"},
    "item": "{thing_id}",
    "max_items": 10,
    "records": "things",
    "match": {"thing_id": "id"},
}
WRITE = {"request": "PUT /things/{thing_id}", "effect": "write"}


def faults(bulk: dict[str, Any], **action: Any) -> list[str]:
    operation = small_operation({**ACTION, **action, "bulk": bulk})
    return [f"{'.'.join(place)}: {message}" for place, message in of_operation(Kind(operation.spec), operation)]


@pytest.mark.parametrize(
    ("bulk", "action"),
    [
        (BULK, {}),
        ({**BULK, "params": {"lang": {"in": "query"}, "fields": {"type": "array"}}, "required": ["fields"]}, {}),
        ({**BULK, "request": "GET /{lang}/things"}, {}),
        ({**BULK, "item": {"id": "{thing_id}", "fields": "{fields}"}, "rejects_all": [400]}, WRITE),
    ],
)
def test_a_bulk_request_that_can_work_has_no_faults(bulk, action):
    assert faults(bulk, **action) == []


@pytest.mark.parametrize(
    ("bulk", "action", "said"),
    [
        (BULK, {"records": "$"}, "bulk: is only for actions with `record`"),
        (BULK, {"effect": "idempotent", "write_if": "fields"}, "bulk: is only for actions without `write_if`"),
        ({**BULK, "rejects_all": [400]}, {}, "bulk.rejects_all: is only for `effect: write`"),
        ({**BULK, "request": "GET /{land}/things"}, {}, "bulk.request: land is not among the params"),
        ({**BULK, "item": {"id": "{thingid}"}}, {}, "bulk.item: thingid is not among the params of the action"),
        ({**BULK, "item": {"id": "{thing_id}", "n": "1"}}, {}, "bulk.item: may hold only params"),
        ({**BULK, "params": {"language": {}}}, {}, "bulk.params: language is not among the params"),
        ({**BULK, "params": {"lang": {"typ": "array"}}}, {}, "bulk.params.lang"),
        ({**BULK, "required": ["lang"]}, {}, "bulk.required: lang is not among `params`"),
        ({**BULK, "params": {"thing_id": {}}}, {}, "bulk.item: thing_id is also sent once for all calls"),
        ({**BULK, "match": {"fields": "id"}}, {}, "bulk.match.fields: is not among the params of `item`"),
        (BULK, {"required": []}, "bulk.match.thing_id: identifies the call"),
    ],
)
def test_a_bulk_request_that_cannot_work_is_an_error_with_a_correction(bulk, action, said):
    assert any(said in fault for fault in faults(bulk, **action)), faults(bulk, **action)


@pytest.mark.parametrize("members", [{"max_items": 1}, {"match": {}}, {"itmes": {}}, {"request": "things"}])
def test_an_invalid_bulk_request_cannot_be_loaded(members):
    with pytest.raises(ValidationError):
        Bulk.model_validate({**BULK, **members})
