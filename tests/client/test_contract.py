"""The stub for the tests of client and command line responds as the OpenAPI document describes."""

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from tests.client.contract import breaches
from tests.client.stub import JOB_ID, Stub

JOB = f"/api/v1/jobs/{JOB_ID}"


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (web.json_response({"id": JOB_ID}), "is a required property"),
        (web.json_response({}, status=418), "the status is not declared"),
        (web.Response(text="a job"), "the media type text/plain is not declared"),
    ],
)
def test_an_answer_that_the_document_does_not_allow_is_a_breach(answer: web.Response, fault: str):
    assert any(fault in breach for breach in breaches(make_mocked_request("GET", JOB), answer))


async def test_a_breach_of_the_stub_fails_the_test(stub: Stub):
    stub.breaches.append("GET /api/v1/jobs 200: the header X is not declared")

    with pytest.raises(AssertionError):
        async with stub.serving():
            """No request is sent."""
