"""The linter's errors for `sync`, `write_through` and the rules of webhooks."""

import pytest
import yaml

from gateway.kinds.lint.kind import lint
from tests.kinds.test_spec_language import EXAMPLE

SHIPMENTS = "parcel-tracking/shipments.yaml"


@pytest.fixture
def errors(tmp_path):
    """`errors(sync, write_through)`: the linter's messages for the page's example with these members."""
    for name, text in EXAMPLE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")

    def said(sync, write_through=None):
        document = yaml.safe_load(EXAMPLE[SHIPMENTS])
        document["search"]["sync"] = None if sync is None else {**document["search"]["sync"], **sync}
        if write_through is not None:
            document["actions"]["create"]["write_through"] = write_through
        (tmp_path / SHIPMENTS).write_text(yaml.safe_dump(document), "utf-8")
        return [each.message for each in lint((tmp_path / SHIPMENTS).parent)]

    return said


PARENT = {"entity": "shipments", "params": {"parent_id": "id"}}


@pytest.mark.parametrize(
    ("sync", "words"),
    [
        (None, "there would be no records to search"),
        ({"request": "GET /v2/shipments/{depot}"}, "needs {depot}"),
        ({"paging": "offset"}, "defines no paging 'offset'"),
        ({"parent": {**PARENT, "entity": "shipmints"}}, "did you mean shipments"),
        ({"parent": {**PARENT, "params": {"parent_id": "idd"}}}, "comes from idd"),
        ({"parent": {**PARENT, "params": {}}}, "name the param that takes the parent's id"),
        (
            {"parent": {"entity": "shipments", "params": {"a": "id", "b": "id"}, "recurse_field": "x"}},
            "needs exactly one param",
        ),
        ({"incremental": {"style": "modified"}}, "no request has the time"),
        ({"incremental": {"style": "newest_first"}}, "needs `field`"),
        ({"incremental": {"style": "cursor"}}, "needs `param`"),
        ({"incremental": {"style": "cursor", "param": "a", "end": "dun"}}, "dun is not a member"),
        ({"incremental": {"style": "end_time", "param": "a", "end": "b"}, "paging": None}, "needs one"),
        ({"incremental": {"style": "window", "field": "a"}}, "the style window reads changes there"),
        ({"incremental": {"style": "log", "param": "a", "position": "b"}}, "needs `start`"),
        (
            {
                "incremental": {
                    "style": "log",
                    "param": "a",
                    "position": "b",
                    "start": {"operation": "a.b", "value": "c"},
                }
            },
            "there is no operation a.b",
        ),
        ({"rule": "query_pgae"}, "there is no rule query_pgae; did you mean query_page?"),
        ({"server": "https://x.example.org"}, "x.example.org is not among the hosts"),
        ({"verify_param": "id"}, "id is not a param of get"),
        ({"incremental": None, "changes": {"request": "GET /c", "records": "c"}}, "is never read"),
    ],
)
def test_a_copy_that_could_not_be_made_is_a_lint_error(errors, sync, words):
    assert words in "\n".join(errors(sync))


@pytest.mark.parametrize(
    ("update", "words"),
    [
        ({"entity": "shipmints"}, "shipmints is not copied; did you mean shipments"),
        ({"entity": "shipments", "if_param": "refrence"}, "did you mean reference"),
    ],
)
def test_an_update_of_a_copy_that_could_not_be_made_is_a_lint_error(errors, update, words):
    assert words in "\n".join(errors({}, [update]))


def test_a_correct_update_of_a_copy_is_no_error(errors):
    assert errors({}, [{"entity": "shipments", "read": "get", "params": {"shipment_id": "{id}"}}]) == []


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"types": ["a"], "entities": ["shipments"], "record_id": "id"}, ""),
        ({"types": ["a"], "entities": ["shipmints"]}, "there is no entity shipmints; did you mean shipments"),
        ({"types": ["a"], "entities": ["labels"], "record_id": "id"}, "no `get` that reads a record of its copy"),
    ],
)
def test_a_notice_of_a_record_that_could_not_be_read_is_a_lint_error(tmp_path, rule, words):
    for name, text in EXAMPLE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    folder = (tmp_path / SHIPMENTS).parent
    labels = yaml.safe_load(EXAMPLE[SHIPMENTS])
    labels["actions"] = {"list": labels["actions"]["list"]}
    (folder / "labels.yaml").write_text(yaml.safe_dump(labels), "utf-8")
    spec = yaml.safe_load((folder / "connector.yaml").read_text())
    spec["webhooks"] = {"signature": {"header": "X-Signature"}, "type": "type", "rules": [rule]}
    (folder / "connector.yaml").write_text(yaml.safe_dump(spec), "utf-8")

    said = [each.message for each in lint(folder) if each.message.startswith("webhooks.rules")]

    assert words in "".join(said)
    assert bool(words) == bool(said)
