"""The text of notices: placeholders are replaced once, and what others named is no markup."""

import json

import pytest

from gateway.operations.approvals.notice_text import PLACEHOLDERS, faults_of, plain, rendered

VALUES = {**PLACEHOLDERS, "requested_by": 'Eve "{{url}}"\\', "reason": "é"}


def test_placeholders_are_replaced_wherever_a_text_has_them():
    params = {
        "text": "{{requested_by}}: {{ url }}",
        "blocks": [{"text": {"text": "{{reason}} {{items}}"}}],
        "n": 1,
        "none": None,
    }

    assert rendered(params, VALUES) == {
        "text": f'Eve "{{{{url}}}}"\\: {PLACEHOLDERS["url"]}',
        "blocks": [{"text": {"text": "é 1"}}],
        "n": 1,
        "none": None,
    }


@pytest.mark.parametrize(
    "params",
    [{"text": "{not one}"}, {"text": "{ {url} }"}, {"text": "{{"}, {"a": {"b": {}}}, {"text": 'a"}}'}, {}],
)
def test_what_is_no_placeholder_stays(params):
    assert rendered(params, VALUES) == params
    assert list(faults_of(params)) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Support bot", "Support bot"),
        ("<!channel> <https://evil.example|Approve>", "‹!channel› ‹https://evil.example¦Approve›"),
        ("[Approve](https://evil.example)", "(Approve)(https://evil.example)"),
        ("a\r\nBcc: eve@evil.example\x00\x1b[31m", "a Bcc: eve@evil.example (31m"),
        ('" onclick="x', "” onclick=”x"),
        ("\u202egnp.exe", "gnp.exe"),
        ("x" * 500, "x" * 199 + "…"),
        ("  a \t b ", "a b"),
        ("", ""),
    ],
)
def test_a_name_becomes_one_line_of_plain_text(value, expected):
    assert plain(value) == expected


@pytest.mark.parametrize(
    ("params", "code", "words"),
    [
        ({"text": "{{old}}"}, "unknown", "{{old}} is no placeholder"),
        ({"text": "{{request.body}}"}, "unknown", "{{request.body}}"),
        ({"text": "{{changes}} {{url}}"}, "unknown", "{{changes}}"),
        ({"{{ur}}": "x"}, "unknown", "did you mean url?"),
        ({"text": "{{}}"}, "unknown", "{{}}"),
        ({"text": "x" * 20_000}, "too_long", "at most 16384"),
    ],
)
def test_a_name_that_is_no_placeholder_is_a_fault(params, code, words):
    [fault] = list(faults_of(params))

    assert fault.code == code
    assert words in fault.message


def test_no_placeholder_tells_of_requests_or_records():
    assert set(PLACEHOLDERS) == {
        "approval_id", "url", "operation", "items", "reason", "connector", "workspace", "requested_by", "expires_at",
    }  # fmt: skip
    assert "changes" not in json.dumps(PLACEHOLDERS)


@pytest.mark.parametrize("text", ["{{" + " " * 16_000, "{{" * 8_000, "{{ " * 5_000])
def test_a_placeholder_that_does_not_end_is_none_and_takes_no_time(text):
    """Backtracking would take half an hour for the first one."""
    assert rendered({"text": text}, VALUES) == {"text": text}
    assert list(faults_of({"text": text})) == []


def test_params_that_are_too_long_are_not_searched_for_placeholders():
    assert [fault.code for fault in faults_of({"text": "{{unknown}}" + "x" * 16_384})] == ["too_long"]
