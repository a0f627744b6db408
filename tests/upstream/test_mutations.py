"""Mutations of GraphQL whose responses have errors: which of them were executed."""

import json
from typing import Any

import pytest

from gateway.upstream.failures import was_executed
from gateway.upstream.responses import UpstreamResponse

CARD = {"cardCreate": {"card": {"id": "7", "owner": None}}}
WITHIN, AT_ALL = {"message": "no owner", "path": ["cardCreate", "card", "owner"]}, {"path": ["cardCreate"]}
CASES: list[tuple[Any, bool]] = [
    ({"data": CARD, "errors": [WITHIN]}, True),
    ({"data": CARD, "errors": [{"message": "no path"}]}, True),
    ({"data": {"cardCreate": None}, "errors": [WITHIN]}, True),
    ({"data": None, "errors": [WITHIN]}, True),
    ({"data": None, "errors": [AT_ALL, WITHIN]}, True),
    ({"data": {"cardCreate": None}, "errors": [AT_ALL]}, False),
    ({"data": None, "errors": [{"message": "slow"}]}, False),
    ({"data": {"cardCreate": None}, "errors": ["slow"]}, False),
    # Errors of a document that was not executed may have a path too.
    ({"errors": [{"path": ["mutation CardCreate", "cardCreate", "name"]}]}, False),
    # Errors of the record: the mutation was refused.
    ({"data": {"cardCreate": {"userErrors": [{"message": "no"}]}}}, False),
    ({"data": CARD, "errors": []}, False),
    ({"data": CARD, "errors": None}, False),
    ([{"message": "no object"}], False),
]


@pytest.mark.parametrize(("document", "is_executed"), CASES)
@pytest.mark.parametrize("is_large", [False, True])
def test_a_mutation_was_executed_if_its_errors_are_within_its_data(document: Any, is_executed: bool, is_large: bool):
    body = json.dumps(document).encode() + (b" " * (2 << 20) if is_large else b"")

    assert was_executed(UpstreamResponse(200, {}, body)) is is_executed


@pytest.mark.parametrize(
    ("status", "is_executed"), [(200, True), (207, True), (400, False), (500, False), (302, False)]
)
def test_only_a_success_says_that_a_mutation_was_executed(status: int, is_executed: bool):
    body = json.dumps({"data": CARD, "errors": [WITHIN]}).encode()

    assert was_executed(UpstreamResponse(status, {}, body)) is is_executed


def test_a_response_that_cannot_be_read_may_be_that_of_a_mutation_that_was_executed():
    assert was_executed(UpstreamResponse(200, {}, b'{"data": {"cardCreate": ' + b"[" * 10_000))
