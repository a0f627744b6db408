"""Messages of MCP servers: the response in a stream of events, and results that are none."""

from contextlib import nullcontext

import msgspec
import pytest

from gateway.errors import UpstreamInvalidResponse, UpstreamRejected
from gateway.upstream.mcp_messages import Answers, headers, require_complete

RESPONSE = b'{"jsonrpc":"2.0","id":1,"result":{}}'
NOTICE = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'
QUESTION = b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}'
FOREIGN = b'{"jsonrpc":"2.0","id":2,"result":{}}'


def event(message: bytes, end: bytes = b"\n") -> bytes:
    return b"event: message" + end + b"data: " + message + end + end


STREAMS = {
    "alone": (event(RESPONSE), RESPONSE),
    "after a notification": (event(NOTICE) + event(RESPONSE), RESPONSE),
    "after a request of the server": (event(QUESTION) + event(RESPONSE), RESPONSE),
    "after a foreign response": (event(FOREIGN) + event(RESPONSE), RESPONSE),
    "after what is no JSON": (event(b"{") + event(RESPONSE), RESPONSE),
    "with CRLF": (event(RESPONSE, b"\r\n"), RESPONSE),
    "with CR": (event(RESPONSE, b"\r") + b":", RESPONSE),
    "after comments": (b": hello\n\n:\n" + event(RESPONSE), RESPONSE),
    "with a byte order mark": (b"\xef\xbb\xbfdata: " + RESPONSE + b"\n\n", RESPONSE),
    "after an event without data": (b"id: 1\ndata:\n\n" + event(RESPONSE), RESPONSE),
    "in two data lines": (
        b'data: {"jsonrpc":"2.0","id":1,\ndata: "error":{}}\n\n',
        b'{"jsonrpc":"2.0","id":1,\n"error":{}}',
    ),
    "without a space": (b"data:" + RESPONSE + b"\n\n", RESPONSE),
    "not ended": (event(NOTICE) + b"data: " + RESPONSE + b"\n", None),
}


def read(stream: bytes, size: int) -> bytes | None:
    answers = Answers(1, has_requests=False)
    chunks = (stream[begin : begin + size] for begin in range(0, len(stream), size))
    return next((found for chunk in chunks if (found := answers.response_in(chunk)) is not None), None)


@pytest.mark.parametrize(("stream", "response"), STREAMS.values(), ids=STREAMS)
def test_the_response_is_found_however_the_stream_is_cut(stream, response):
    assert {read(stream, size) for size in (1, 2, 3, 7, 11, len(stream))} == {response}


RESULTS = {
    "complete": ({"resultType": "complete", "content": []}, None),
    "of an earlier revision": ({"content": []}, None),
    "a question": ({"resultType": "input_required", "inputRequests": {}}, UpstreamRejected),
    "a task": ({"resultType": "task", "task": {}}, UpstreamInvalidResponse),
    "no object": ([1], UpstreamInvalidResponse),
    "nothing": (None, UpstreamInvalidResponse),
}


@pytest.mark.parametrize(("result", "error"), RESULTS.values(), ids=RESULTS)
def test_only_a_complete_result_is_one(result, error):
    with nullcontext() if error is None else pytest.raises(error):
        require_complete("tracker.search", msgspec.Raw(msgspec.json.encode(result)))


def test_headers_repeat_method_and_name_since_2026_07_28_only():
    named = {"name": "suche-ä"}

    now, before = headers("tools/call", named, "2026-07-28"), headers("tools/call", named, "2025-11-25")

    assert {name: now[name] for name in ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name")} == {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "=?base64?c3VjaGUtw6Q=?=",
    }
    assert {"Mcp-Method", "Mcp-Name"}.isdisjoint(before)
