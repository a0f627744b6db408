"""A request's body in the encoding that the application reads."""

import pytest

from gateway.upstream.prepared import PreparedCall
from gateway.upstream.requests import base_address, encoded_body
from tests.kinds.small_kind import small_operation

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("members", "form"),
    [
        ({}, b""),
        ({"a": "x y&z", "b": 1, "c": True, "d": None}, b"a=x+y%26z&b=1&c=true&d="),
        ({"a": {"b": {"c": "ü"}}}, b"a%5Bb%5D%5Bc%5D=%C3%BC"),
        ({"a": [1, 2]}, b"a%5B%5D=1&a%5B%5D=2"),
        ({"a": [{"b": 1}, {"b": 2}]}, b"a%5B0%5D%5Bb%5D=1&a%5B1%5D%5Bb%5D=2"),
    ],
)
def test_a_form_spells_nested_members_with_brackets(members, form):
    assert encoded_body(FORM, members) == form
    assert encoded_body(f"{FORM}; charset=utf-8", members) == form


def test_a_kind_of_forms_sends_forms():
    operation = small_operation(
        {"request": "POST /things", "effect": "write", "params": {"thing": {"type": "object"}}}, content_type=FORM
    )

    request = PreparedCall.of(operation, {"thing": {"name": "x"}}).request(base_address(operation.spec, {}))

    assert request.body == b"thing%5Bname%5D=x"
    assert request.headers["Content-Type"] == FORM


def test_a_kind_of_another_type_is_no_spec():
    with pytest.raises(ValueError, match="JSON or as a form"):
        small_operation(content_type="text/xml")
