"""Which documents are encoded in a thread."""

import json

import msgspec
import pytest

from gateway.foundation.large_json import LARGE, encoded, is_large
from tests.harness.blocked_loop import divided


class Inner(msgspec.Struct):
    value: object


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, False),
        ([{"a": "x" * 1000}] * 100, False),
        ("x" * LARGE, False),
        ("x" * (LARGE + 1), True),
        ({"x" * (LARGE + 1): 1}, True),
        ({"a": [{"b": b"x" * (LARGE + 1)}]}, True),
        ({"a": msgspec.Raw(b'"' + b"x" * LARGE + b'"')}, True),
        (Inner({"a": Inner("x" * (LARGE + 1))}), True),
        (["x" * (LARGE // 2 + 1)] * 2, True),
        (list(range(2000)), False),
        (list(range(2001)), True),
        ({str(number): number for number in range(2001)}, True),
        ([[1] * 100] * 21, True),
        (None, False),
    ],
    ids=range(14),
)
def test_a_document_is_large_by_its_texts_or_its_values(document: object, expected: bool):
    assert is_large(document) is expected


async def test_a_large_document_does_not_hold_the_loop():
    document = {"a": ['"' * LARGE] * 30}

    assert json.loads(await divided(encoded(document))) == document
