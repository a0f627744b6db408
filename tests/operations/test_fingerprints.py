"""The fingerprint of a request, which is stored with its idempotency key: the same in every version of the gateway."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from gateway.contract.exports import FileFormat
from gateway.operations.call import OperationCall
from gateway.upstream.field_selection import FieldSelection

CALLBACK = UUID("00000000-0000-4000-8000-000000000001")
#: params → the text whose SHA-256 was stored by earlier versions
PARAMS: list[tuple[Mapping[str, Any], str]] = [
    ({}, "{}"),
    ({"b": 1, "a": {"d": [], "c": {}}}, '{"a":{"c":{},"d":[]},"b":1}'),
    ({"B": 1, "a": 2, "é": 3, "A": 4, "aa": 5}, '{"A":4,"B":1,"a":2,"aa":5,"é":3}'),
    ({"list": [{"z": 1, "y": 2}, [{"x": 1, "w": 2}]]}, '{"list":[{"y":2,"z":1},[{"w":2,"x":1}]]}'),
    ({"text": "Zürich 東京 🦊 é"}, '{"text":"Zürich 東京 🦊 é"}'),
    ({"text": 'a"b\\c/d\n\t\r\b\f\0\x1f\x7f'}, r'{"text":"a\"b\\c/d\n\t\r\b\f\u0000\u001f' + '\x7f"}'),
    ({"text": "\u2028\u2029<>&'"}, '{"text":"\u2028\u2029<>&\'"}'),
    ({"n": [0, -1, 2**53 + 1, 2**63, 2**64 - 1, -(2**63)]},
     '{"n":[0,-1,9007199254740993,9223372036854775808,18446744073709551615,-9223372036854775808]}'),
    ({"n": [1.0, -0.0, 0.1, 1.5e300, 5e-324, 1e16, 1e-7, 123456789.125]},
     '{"n":[1.0,-0.0,0.1,1.5e300,5e-324,1e16,1e-7,123456789.125]}'),
    ({"v": [True, False, None, ""]}, '{"v":[true,false,null,""]}'),
]  # fmt: skip


def call_of(**members: Any) -> OperationCall:
    return OperationCall(connector_id=UUID(int=1), entity="tickets", action="create", **members)


def digest_of(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


@pytest.mark.parametrize(("params", "text"), PARAMS)
def test_a_fingerprint_is_the_digest_that_earlier_versions_stored(params: Mapping[str, Any], text: str) -> None:
    assert call_of(params=params).fingerprint() == digest_of(f'["tickets","create",{text},{{"skip_truncation":true}}]')


@pytest.mark.parametrize(("params", "text"), PARAMS)
def test_params_that_were_sent_in_another_order_have_the_same_fingerprint(params: Mapping[str, Any], text: str) -> None:
    assert call_of(params=json.loads(text)).fingerprint() == call_of(params=params).fingerprint()


def test_the_selection_the_format_and_the_callback_are_part_of_it_and_what_policies_redact_is_not() -> None:
    selection = FieldSelection(["b", "a"], ["c"], skip_truncation=False, limit=5, redact=("email",))

    fingerprint = call_of(selection=selection, file=FileFormat.CSV, callback=CALLBACK).fingerprint()

    selected = '{"exclude_fields":["c"],"limit":5,"select_fields":["b","a"],"skip_truncation":false}'
    assert fingerprint == digest_of(f'["tickets","create",{{}},{selected},"csv","{CALLBACK}"]')
