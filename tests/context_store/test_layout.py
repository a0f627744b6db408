"""Which fields are kept ready, and what a record's terms are."""

import pytest

from gateway.context_store.fields import FieldType, resolved
from gateway.context_store.layout import MAX_TERMS, Layout, Tokenizer, chosen, dumped, loaded

STRING, INTEGER, NUMBER, BOOLEAN, ARRAY, OBJECT, ANY = FieldType

LAYOUTS = [
    (
        {
            "id": INTEGER,
            "subject": STRING,
            "updated_at": STRING,
            "created_at": STRING,
            "url": STRING,
            "due_at": STRING,
            "open": BOOLEAN,
        },
        (),
        {"key_a": "updated_at", "key_b": "created_at", "key_n": "id"},
        ["subject"],
    ),
    (
        {
            "id": STRING,
            "createdAt": STRING,
            "updatedAt": STRING,
            "properties": OBJECT,
            "properties.email": STRING,
            "companies": ARRAY,
        },
        (),
        {"key_a": "updatedAt", "key_b": "createdAt"},
        ["id", "properties.email", "companies"],
    ),
    (
        {
            "Id": STRING,
            "Name": STRING,
            "LastModifiedDate": STRING,
            "CreatedDate": STRING,
            "CreatedById": STRING,
            "Amount": NUMBER,
        },
        (),
        {"key_a": "LastModifiedDate", "key_b": "CreatedDate", "key_n": "Amount"},
        ["Id", "Name", "CreatedById"],
    ),
    (
        {"id": INTEGER, "status": STRING, "rank": NUMBER, "updated_at": STRING},
        ["status", "rank"],
        {"key_a": "status", "key_b": "updated_at", "key_n": "rank"},
        ["id"],
    ),
    ({"open": BOOLEAN}, (), {}, []),
]


@pytest.mark.parametrize(("fields", "indexed", "keys", "worded"), LAYOUTS)
def test_keys_and_words_follow_names_and_types(fields, indexed, keys, worded):
    layout = chosen(fields, indexed)

    assert (dict(layout.keys), list(layout.worded)) == (keys, worded)


def test_a_layout_survives_storage_in_order():
    layout = Layout({"key_a": "x"}, {"b": STRING, "a": ARRAY, "c": INTEGER})

    assert loaded(dumped(layout)) == layout
    assert list(loaded(dumped(layout)).worded) == ["b", "a", "c"]


TERMS = [
    ({"name": "Red-hot red"}, ["7/0/red", "7/0/hot", "7/0/red"]),
    ({"name": 5, "count": "5"}, []),
    ({"count": 5}, ["7/1/#5.0"]),
    ({"count": -0.0}, ["7/1/#0.0"]),
    ({"count": 10**400}, ["7/1/#inf"]),
    ({"count": True}, []),
    ({"tags": ["A b", 1, None, True, ["c"]]}, ["7/2/#1.0", "7/2/a", "7/2/b", "7/2/c"]),
    ({"via": {"from": {"name": "Ann"}}}, ["7/3/ann"]),
    ({"properties": {"email": "a@b"}}, ["7/4/a", "7/4/b"]),
    ({"properties": "x"}, []),
]


@pytest.mark.parametrize(("record", "expected"), TERMS)
def test_terms_name_entity_field_and_word(record, expected):
    layout = Layout({}, {"name": STRING, "count": INTEGER, "tags": ARRAY, "via": OBJECT, "properties.email": STRING})

    assert sorted(Tokenizer(layout, 7).terms(record).split()) == sorted(expected)


def test_a_record_of_too_many_words_keeps_as_many_as_fit():
    layout = Layout({}, {"tags": ARRAY})

    kept = Tokenizer(layout, 7).terms({"tags": [f"word{number}" for number in range(60_000)]})

    assert MAX_TERMS - 100 < len(kept) <= MAX_TERMS
    assert kept.split()[0] == "7/0/~"
    assert all(term.startswith("7/0/word") for term in kept.split()[1:])


@pytest.mark.parametrize(
    ("name", "type_", "declared"),
    [("via", OBJECT, "via"), ("via.a.b", ANY, "via"), ("properties.email", STRING, "properties.email")],
)
def test_declared_fields_and_what_is_below_them_are_known(name, type_, declared):
    field = resolved(name, {"via": OBJECT, "properties.email": STRING})

    assert (field.type, field.declared) == (type_, declared)


@pytest.mark.parametrize(
    "name", ["", ".", "vias", "via.", "via..x", "properties", "properties.email.x", "via" + ".x" * 8]
)
def test_other_names_are_not(name):
    assert resolved(name, {"via": OBJECT, "properties.email": STRING}) is None
