"""JSON of applications: everything that RFC 8259 allows is decoded, and what is passed on keeps its bytes."""

import logging
from contextlib import nullcontext

import msgspec
import pytest

from gateway.errors import UpstreamInvalidResponse
from gateway.foundation import payloads

MARK = b"\xef\xbb\xbf"
LONG = b"9" * 5000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"cut \ud83d"', "cut \ufffd"),
        (rb'"cut \uD83D\u0041"', "cut \ufffdA"),
        (rb'"\ude00\ud83d"', "\ufffd\ufffd"),
        (rb'"\ud83d\ude00 \ud83d"', "😀 \ufffd"),
        (rb'"\\ud83d \ud83d"', "\\ud83d \ufffd"),
        (rb'"\\\ud83d"', "\\\ufffd"),
        (rb'"\u0000"', "\0"),
        (rb'{"half \udfff": [1]}', {"half \ufffd": [1]}),
        (b"[1e400, -1e400, 1.5, 7]", [None, None, 1.5, 7]),
        (b"[%s, -%s, 12345678901234567890123]" % (LONG, LONG), [None, None, 12345678901234567890123]),
        (b"1e-400", 0.0),
        (MARK + b'{"a": 1}', {"a": 1}),
        (MARK + rb'[1e400, "\ud83d"]', [None, "\ufffd"]),
    ],
)
def test_what_msgspec_refuses_is_understood(text, value):
    assert payloads.value(text) == value


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[NaN]",
        b"[Infinity]",
        rb'"\ud83"',
        b'"\xff"',
        rb'"\ud83d',
        b"[1e400,]",
        MARK,
        b"[" * 3000,
        b"01",
        b"'a'",
    ],
)
def test_what_is_not_json_is_an_invalid_response_of_the_application(text):
    for decode in (payloads.value, payloads.items, payloads.members, payloads.record):
        with pytest.raises(UpstreamInvalidResponse):
            decode(text)


def test_unread_members_and_items_keep_their_bytes():
    text = rb'{"a":  "cut \ud83d", "\udc00": 1e400, "b": ["\\ud83d \uD83D"] }'

    members = payloads.members(text)

    assert {name: bytes(raw) for name, raw in members.items()} == {
        "a": rb'"cut \ud83d"',
        "\ufffd": b"1e400",
        "b": rb'["\\ud83d \uD83D"]',
    }
    assert [bytes(raw) for raw in payloads.items(rb'[ "\ud83d" , 1e400]')] == [rb'"\ud83d"', b"1e400"]
    assert bytes(payloads.whole(MARK + rb'"\ud83d"')) == rb'"\ud83d"'


def test_a_record_on_one_line_keeps_its_escapes():
    assert payloads.on_one_line(b'{\n"a": "\\ud83d",\r\n"b": 1e400}') == rb'{"a":"\ud83d","b":1e400}'


def test_a_number_that_becomes_null_is_noted(caplog):
    with caplog.at_level(logging.WARNING):
        payloads.value(b"[1e400, 1e400, 1]")

    (noted,) = caplog.records
    assert (noted.count, noted.levelname) == (2, "WARNING")


def test_only_values_that_decoding_would_change_are_not_plain():
    texts = [b'{"a": "\\ud83d\\ude00", "b": 1.5}', rb'"\ud83d"', b"1e400", MARK + b"1"]

    assert [payloads.is_plain(text) for text in texts] == [True, False, False, False]


def test_texts_for_postgresql_have_no_nul_and_no_halves():
    assert payloads.storable("a\0b\ud83dc😀") == "a\ufffdb\ufffdc😀"


def test_a_value_that_is_encoded_again_keeps_numbers_beyond_a_double():
    found = payloads.editable(rb'{"a": 1e400, "b": "\ud83d", "c": -%s, "d": 7}' % LONG)

    assert msgspec.json.encode(found) == b'{"a":1e400,"b":"\xef\xbf\xbd","c":-%s,"d":7}' % LONG


@pytest.mark.parametrize("item", [b"{}       ", b"1"])
def test_a_list_of_too_many_items_is_refused_before_it_is_divided(item: bytes):
    text = b"[" + b",".join([item] * 4_000_002) + b"]"

    with pytest.raises(UpstreamInvalidResponse, match="too many small records"):
        payloads.items(text)


@pytest.mark.parametrize("item", [b"{}", b"[[]]", b"1"])
def test_a_large_text_of_very_many_values_is_not_decoded_as_a_whole(item: bytes):
    text = b'{"a":[' + b",".join([item] * 4_500_000) + b"]}"

    for decode in (payloads.value, payloads.editable):
        with pytest.raises(UpstreamInvalidResponse, match="too many values"):
            decode(text)
    assert payloads.members_of(text, ("a",))["a"]


def test_a_large_object_is_read_member_by_member():
    text = b'{"id": 7, "more": [' + b",".join([b"[]"] * 1000) + b'], "name": "\xc3\xa9", "id": 8}'

    found = payloads.members_of(text, ("id", "name", "none"))

    assert {name: bytes(raw) for name, raw in found.items()} == {"id": b"8", "name": '"\u00e9"'.encode()}


def test_a_large_text_is_not_decoded_the_slow_way():
    text = b'["' + b"x" * (4 << 20) + b'", "\\ud83d"]'

    with pytest.raises(UpstreamInvalidResponse):
        payloads.value(text)
    assert payloads.value(payloads.BYTE_ORDER_MARK + b'["' + b"x" * (4 << 20) + b'"]')[0][0] == "x"


@pytest.mark.parametrize(
    ("item", "count", "expected"),
    [
        (b"2.2250738585072011e-308", 6_000, True),
        (b"-0.1E-00320", 10_000, True),
        (b"1e+308", 12_000, True),
        (b"1e-320", 2_000_000, True),
        (b"2.2250738585072011e-308", 4_000, False),
        (b"1e308", 6_000, True),
        (b"1.25e-10", 20_000, False),
        (b"1.5e+002", 20_000, False),
        (b"1E-005", 500_000, False),
        (b'"0e300 abcde9e300"', 20_000, False),
        (b'"0e300 abcde9e300"', 500_000, False),
    ],
)
def test_a_text_with_thousands_of_extreme_numbers_is_not_decoded(item: bytes, count: int, expected: bool):
    text = b"[" + b",".join([item] * count) + b"]"

    assert payloads.has_many_extreme_numbers(text) is expected
    with pytest.raises(UpstreamInvalidResponse) if expected else nullcontext():
        payloads.value(text)
    with pytest.raises(UpstreamInvalidResponse) if expected else nullcontext():
        payloads.editable(text)
    with pytest.raises(msgspec.DecodeError) if expected else nullcontext():
        payloads.typed(text, list)
