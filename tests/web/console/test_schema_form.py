"""Params as fields of a form, and the params of a filled-in form."""

import pytest

from gateway.errors import FieldError, InvalidParams
from gateway.web.console.schema_form import fields_of, params_of, table_of

SCHEMA = {
    "required": ["id"],
    "properties": {
        "note": {"type": "string", "description": "a text"},
        "id": {"type": "integer"},
        "open": {"type": "boolean"},
        "order": {"enum": ["asc", "desc"]},
        "ids": {"type": "array"},
        "filter": {"$ref": "#/$defs/filter"},
    },
}


def test_required_fields_come_first_and_have_their_errors():
    fields = fields_of(SCHEMA, {"id": 5}, [FieldError("/params/id", "id", "minimum", "id is 5; at least 6")])

    assert [field["label"] for field in fields] == ["id", "note", "open", "order", "ids", "filter"]
    assert (fields[0]["value"], fields[0]["error"], fields[1]["error"]) == ("5", "id is 5; at least 6", None)
    assert [field["control"] for field in fields] == ["number", "text", "select", "select", "json", "json"]


def test_typed_values_are_shown_again_whether_valid_or_not():
    fields = fields_of(SCHEMA, {}, (), {"p.id": "five", "p.ids": "[1,", "p.note": "n"})

    assert [field["value"] for field in fields] == ["five", "n", "", "", "[1,", ""]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("note", "5", "5"),
        ("id", "5", 5),
        ("open", "true", True),
        ("order", "asc", "asc"),
        ("ids", "[1, 2]", [1, 2]),
        ("filter", '{"eq": {"a": 1}}', {"eq": {"a": 1}}),
    ],
)
def test_a_field_becomes_a_param_of_its_type(name: str, text: str, value: object):
    assert params_of(SCHEMA, {f"p.{name}": text, "csrf": "x", "p.unknown": "y"}) == {name: value}


def test_an_empty_field_is_no_param():
    assert params_of(SCHEMA, {"p.note": " ", "p.id": ""}) == {}


def test_all_invalid_fields_are_reported_at_once():
    with pytest.raises(InvalidParams) as refused:
        params_of(SCHEMA, {"p.id": "five", "p.ids": "1,"})

    assert [fault.field for fault in refused.value.faults] == ["id", "ids"]


def test_a_table_has_the_members_that_most_records_have():
    columns, rows = table_of(
        [{"id": 1, "name": "a", "rare": 1}, {"id": 2, "name": None, "deep": {"x": 1}}], max_columns=2
    )

    assert columns == ["id", "name"]
    assert rows == [["1", "a"], ["2", ""]]
