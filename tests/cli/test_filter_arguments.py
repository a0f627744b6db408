import click
import pytest

from gateway.cli.filter_arguments import read_filter, read_sort

FIELDS = {"id": "integer", "status": "string", "is_public": "boolean"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], None),
        (["status=open"], {"eq": {"status": "open"}}),
        (["status!=open"], {"neq": {"status": "open"}}),
        (["id>=5"], {"gte": {"id": 5}}),
        (["id<5"], {"lt": {"id": 5}}),
        (["id=1,2"], {"in": {"id": [1, 2]}}),
        (["subject~50%"], {"like": {"subject": "50%"}}),
        (["is_public=true"], {"eq": {"is_public": True}}),
        (["via.channel=web"], {"eq": {"via.channel": "web"}}),
        (["status=open", "id>5"], {"and": [{"eq": {"status": "open"}}, {"gt": {"id": 5}}]}),
    ],
)
def test_conditions_become_a_filter(words, expected):
    assert read_filter(words, FIELDS, None) == expected


def test_a_json_filter_is_joined_to_the_conditions():
    found = read_filter(["id>5"], FIELDS, '{"eq": {"status": "open"}}')

    assert found == {"and": [{"gt": {"id": 5}}, {"eq": {"status": "open"}}]}


@pytest.mark.parametrize("word", ["status", "=open", "two words=open"])
def test_an_invalid_condition_is_refused_with_the_format(word):
    with pytest.raises(click.BadParameter, match="write field=value"):
        read_filter([word], FIELDS, None)


def test_a_filter_that_is_not_json_is_refused_with_an_example():
    with pytest.raises(click.BadParameter, match="eq"):
        read_filter([], FIELDS, "status=open")


def test_sorting_is_ascending_by_default():
    assert read_sort(["updated_at:desc,id"]) == [{"updated_at": "desc"}, {"id": "asc"}]


def test_an_unknown_sort_direction_is_refused():
    with pytest.raises(click.BadParameter, match="field:asc or field:desc"):
        read_sort(["updated_at:down"])
