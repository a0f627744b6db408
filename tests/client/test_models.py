"""The client's values have every member that the OpenAPI document promises of an answer."""

import msgspec
import pytest

from gateway.client.models import Answer, Connector, JobView
from tests.client.contract import example
from tests.harness.contract import document

#: members that say what the caller asked for (`dry_run`), what is always the same, or what only other clients read
UNNEEDED = {Answer: {"status", "dry_run"}, JobView: set(), Connector: {"summarized_source_template"}}


@pytest.mark.parametrize(("model", "schema"), [(Answer, "Result"), (JobView, "Job"), (Connector, "Connector")])
def test_a_value_has_every_member_that_the_document_promises(model, schema: str):
    promised = set(document()["components"]["schemas"][schema]["properties"])

    assert promised - {field.encode_name for field in msgspec.structs.fields(model)} == UNNEEDED[model]


def test_an_answer_says_how_its_list_goes_on():
    answer = msgspec.convert(example("Result"), Answer)

    assert answer.next == {"per_page": 1, "page": 2}


def test_a_job_says_what_is_known_of_a_lost_write_and_where_its_result_is():
    lost = {"known": {"request_sent": True}, "safe_to_retry": False, "result_url": "https://gateway.example/result"}

    view = msgspec.convert({**example("Job"), **lost}, JobView, strict=False)

    assert view.url == example("Job")["url"]
    assert (view.known, view.safe_to_retry, view.result_url) == tuple(lost.values())
