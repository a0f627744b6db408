import click
import pytest

from gateway.cli.arguments import read_pairs, read_params
from gateway.cli.call import with_page_size
from gateway.kinds.command_line import words_of
from tests.harness.catalog import shipped_catalog

SCHEMA = {
    "properties": {
        "per_page": {"type": "integer"},
        "score": {"type": "number"},
        "archived": {"type": "boolean"},
        "external_id": {"type": "string"},
        "parent": {"type": ["integer", "null"]},
        "ids": {"type": "array", "items": {"type": "integer"}},
        "assignee.any": {"type": "string"},
        "due": {"$ref": "#/$defs/due"},
        "ticket": {
            "type": "object",
            "properties": {"subject": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
        },
    },
    "$defs": {"due": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("words", "params"),
    [
        (["per_page=2"], {"per_page": 2}),
        (["per_page=two"], {"per_page": "two"}),
        (["score=1.5"], {"score": 1.5}),
        (["score=2"], {"score": 2}),
        (["score=nan"], {"score": "nan"}),
        (["per_page=٣"], {"per_page": "٣"}),
        (["per_page=--3"], {"per_page": "--3"}),
        (["score=٣.٥"], {"score": "٣.٥"}),
        (["archived=true"], {"archived": True}),
        (["external_id=17"], {"external_id": "17"}),
        (["external_id=a=b"], {"external_id": "a=b"}),
        (["parent=null"], {"parent": None}),
        (["parent=-3"], {"parent": -3}),
        (["ids=1,2,3"], {"ids": [1, 2, 3]}),
        (["ids=1", "ids=2"], {"ids": [1, 2]}),
        (["ids=[4,5]"], {"ids": [4, 5]}),
        (["assignee.any=me"], {"assignee.any": "me"}),
        (["due=5"], {"due": 5}),
        (["unknown=5"], {"unknown": "5"}),
        (["ticket.subject=Fire", "ticket.tags=a,b"], {"ticket": {"subject": "Fire", "tags": ["a", "b"]}}),
        (["ticket:={\"subject\": \"Fire\"}"], {"ticket": {"subject": "Fire"}}),
        (["external_id:=17"], {"external_id": 17}),
    ],
)  # fmt: skip
def test_words_become_params_of_the_expected_types(words, params):
    assert read_params(words, SCHEMA) == params


def test_params_are_read_from_files(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear Ada")
    (tmp_path / "ticket.json").write_text('{"subject": "Fire"}', "utf-8-sig")  # as some editors save it
    (tmp_path / "all.json").write_text('{"per_page": 2}')

    found = read_params(
        [f"external_id=@{tmp_path}/letter.txt", f"ticket:=@{tmp_path}/ticket.json", f"@{tmp_path}/all.json"], SCHEMA
    )

    assert found == {"external_id": "Dear Ada", "ticket": {"subject": "Fire"}, "per_page": 2}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("per_page", "write key=value, key:=json or @file"),
        ("=2", "write key=value"),
        ("ticket:={bad", "is not JSON"),
        ("@nowhere.json", "cannot read nowhere.json: No such file"),
    ],
)
def test_an_invalid_word_is_refused_with_the_valid_formats(word, message):
    with pytest.raises(click.BadParameter, match=message):
        read_params([word], SCHEMA)


def test_a_param_cannot_have_a_value_and_members():
    with pytest.raises(click.BadParameter, match=r"ticket has a value already"):
        read_params(["ticket=5", "ticket.subject=Fire"], {})


def test_secrets_come_from_files(tmp_path):
    (tmp_path / "token").write_text("s3cret\n")

    assert read_pairs([f"api_token=@{tmp_path}/token", "email=a@b.example"], "--credential") == {
        "api_token": "s3cret",
        "email": "a@b.example",
    }


@pytest.mark.parametrize("kind", list(shipped_catalog()), ids=lambda kind: kind.name)
def test_the_words_of_every_example_are_read_back_as_its_params(kind):
    read, examples = {}, {}
    for operation in kind.operations.values():
        examples[operation.name] = example = operation.action.example
        words = [word for key, value in example.items() for word in words_of(key, value, operation.schema)]
        read[operation.name] = read_params(words, operation.schema)

    assert read == examples


PAGED = {
    "paging": {"size": "per_page"},
    "params": {
        "properties": {"per_page": {"maximum": 100}},
        "dependentSchemas": {"history": {"properties": {"per_page": {"maximum": 50}}}},
    },
}


@pytest.mark.parametrize(
    ("params", "facts", "limit", "sent"),
    [
        ({}, PAGED, None, {"per_page": 100}),
        ({}, PAGED, 7, {"per_page": 7}),
        ({}, PAGED, 700, {"per_page": 100}),
        ({"history": "all"}, PAGED, None, {"history": "all", "per_page": 50}),
        ({"per_page": 10}, PAGED, None, {"per_page": 10}),
        ({"limit": 10}, PAGED, None, {"limit": 10}),
        ({}, {"paging": None, "params": {}}, None, {}),
        ({}, {"paging": {"size": None}}, None, {}),
        ({}, {"paging": {"size": "count"}, "params": {"properties": {"count": {}}}}, None, {}),
        ({}, {}, None, {}),
    ],
)
def test_the_largest_page_size_is_sent_unless_the_caller_gives_one(params, facts, limit, sent):
    assert with_page_size(params, facts, limit) == sent
