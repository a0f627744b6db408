"""The errors of the linter and the models for long operations that cannot work."""

from typing import Any

import pytest
from pydantic import ValidationError

from gateway.kinds.catalog import Kind
from gateway.kinds.lint.long_running import of_operation
from gateway.kinds.long_running import LongRunning
from tests.kinds.small_kind import small_operation

STATUS = {"request": "GET /runs/{run_id}", "path": "state", "running": ["running"], "succeeded": ["done"]}
WHOLE: dict[str, Any] = {"start": {"id": "id"}, "status": STATUS}
IDS = {"ids": {"type": "array", "description": "ids"}}
SPLIT = {"param": "ids", "size": 10}


def faults(long_running: dict[str, Any], **action: Any) -> list[str]:
    whole = {"request": "POST /things", "effect": "write", "runs": "job", "params": IDS, "required": ["ids"], **action}
    operation = small_operation({**whole, "long_running": long_running})
    return [f"{'.'.join(place)}: {message}" for place, message in of_operation(Kind(operation.spec), operation)]


@pytest.mark.parametrize(
    ("long_running", "action"),
    [
        (WHOLE, {}),
        ({**WHOLE, "results": {"items": {}}, "split": SPLIT}, {}),
        ({"results": {"items": {}}, "split": SPLIT}, {}),
        ({**WHOLE, "results": {"requests": [{"request": "GET /r/{run_id}", "paging": "page"}]}}, {"records": "$"}),
        ({**WHOLE, "start": {"id": "id", "request": "POST /{ids}/runs"}}, {}),
    ],
)
def test_a_long_operation_that_can_work_has_no_faults(long_running, action):
    assert faults(long_running, **action) == []


@pytest.mark.parametrize(
    ("long_running", "action", "said"),
    [
        (WHOLE, {"runs": "inline"}, "runs: an operation with `long_running` runs as a job"),
        ({**WHOLE, "status": {**STATUS, "request": "GET /runs/{runid}"}}, {}, "did you mean run_id?"),
        ({**WHOLE, "start": {"id": "id", "request": "POST /{name}/runs"}}, {}, "start.request: needs {name}"),
        (
            {**WHOLE, "upload": {"request": "PUT /u/{run_id}", "request_body": "rows"}},
            {},
            "upload.request_body: rows is not among the params",
        ),
        (
            {**WHOLE, "results": {"requests": [{"request": "GET /r", "paging": "pages"}]}},
            {"records": "$"},
            "results.requests.0.paging: there is no paging style pages; did you mean page?",
        ),
        ({**WHOLE, "split": {**SPLIT, "param": "id"}, "results": {"items": {}}}, {}, "id is not among the params"),
        (
            {**WHOLE, "split": SPLIT, "results": {"items": {}}},
            {"params": {"ids": {"type": "string"}}},
            "give it `type: array` or `format: comma-separated`",
        ),
        ({**WHOLE, "split": SPLIT, "results": {"items": {}}}, {"required": []}, "must be among `required`"),
        ({**WHOLE, "results": {"items": {}}}, {}, "results.items: need `split`"),
        ({**WHOLE, "results": {"items": {}}, "split": SPLIT}, {"records": "$"}, "need one record for all items"),
        ({**WHOLE, "split": SPLIT}, {}, "a record of its own"),
        ({**WHOLE, "results": {"requests": [{"request": "GET /r"}]}}, {}, "return a list; write `records`"),
        ({**WHOLE, "results": {"items": {"trace": "t"}}, "split": SPLIT}, {}, "trace and trace_path need each other"),
    ],
)
def test_a_long_operation_that_cannot_work_is_an_error_with_a_correction(long_running, action, said):
    assert any(said in fault for fault in faults(long_running, **action))


@pytest.mark.parametrize(
    ("long_running", "said"),
    [
        ({"start": {"id": "id"}}, "start and status need each other"),
        ({}, "an operation without start needs split"),
        ({"split": SPLIT, "close": {"request": "PATCH /x"}}, "close needs start"),
        ({**WHOLE, "close": {"request": "PATCH /x"}}, "close and status.open need each other"),
        ({**WHOLE, "status": {**STATUS, "failed": ["done"]}}, "a state of status is in two lists"),
    ],
)
def test_members_that_need_each_other_are_required_together(long_running, said):
    with pytest.raises(ValidationError, match=said):
        LongRunning.model_validate(long_running)
