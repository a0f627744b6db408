"""Bodies may begin with a byte order mark (RFC 8259 §8.1), as some editors write it into files."""

import json

import pytest

MARK = b"\xef\xbb\xbf"
READ = {"entity": "tickets", "action": "get", "params": {"ticket_id": 1}}
LINE = json.dumps(READ).encode() + b"\n"


@pytest.mark.parametrize(
    ("path", "media_type", "body", "status"),
    [
        ("execute", "application/json", json.dumps(READ).encode(), 200),
        ("batch", "application/json", json.dumps({"operations": [READ]}).encode(), 202),
        ("batch", "application/x-ndjson", LINE * 2, 202),
    ],
)
async def test_a_byte_order_mark_is_skipped(api, support_desk, path, media_type, body, status):
    headers = {"Content-Type": media_type}

    answer = await api.call("POST", f"{support_desk.path}/{path}", data=MARK + body, headers=headers)

    assert answer.status == status, answer.body


async def test_a_mark_within_a_batch_is_no_json(api, support_desk):
    headers = {"Content-Type": "application/x-ndjson"}

    answer = await api.call("POST", f"{support_desk.path}/batch", data=LINE + MARK + LINE, headers=headers)

    assert "line 2" in answer.document(422)["detail"]
