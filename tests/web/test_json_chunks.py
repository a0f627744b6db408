"""Downloads as JSON chunks, for callers that read only JSON."""

import base64

import pytest

CHUNK = {"attachment_id": 2, "_airbyte_response_type": "json"}


@pytest.mark.parametrize(
    ("params", "headers", "size"),
    [
        ({"range_header": "bytes=2-5"}, {}, 4),
        ({}, {"Range": "bytes=2-5"}, 4),
        ({"range_header": "bytes=2-5"}, {"Range": "bytes=2-5"}, 4),
    ],
)
async def test_a_chunk_obeys_the_range_of_the_header_and_of_the_params(support_desk, params, headers, size):
    answer = await support_desk.send("attachments", "download", {**CHUNK, **params}, headers)

    result = answer.json()["result"]
    assert result["range_requested"] == "bytes=2-5"
    assert len(base64.b64decode(result["content"])) == size


async def test_two_different_ranges_are_refused(support_desk):
    sent = ("attachments", "download", {**CHUNK, "range_header": "bytes=0-1"}, {"Range": "bytes=2-5"})

    answer = await support_desk.send(*sent)

    assert (answer.status, answer.json()["code"]) == (400, "conflicting_range")
