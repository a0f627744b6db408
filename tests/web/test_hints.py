"""The hints of a refusal: the fault, the value that was sent, the right one, and a valid call."""

import re

import pytest

from gateway.client.problems import error_of

#: words of libraries that callers do not know
FOREIGN = re.compile(r"valid (dictionary|list|string|integer)|pydantic|msgspec|NoneType|JSONDecode|<class|Traceback")


async def refused(support_desk, entity, action, params=None, **members):
    """The problem document of such a call, which is a 422."""
    answer = await support_desk.send(entity, action, params, **members)
    assert answer.status == 422, answer.body
    return answer.json()


@pytest.mark.parametrize(
    "filter_",
    [{"status": "open"}, {"status": {"eq": "open"}}],
    ids=["a field alone", "the field before the operator"],
)
async def test_the_error_of_a_filter_that_begins_with_a_field_has_the_right_form(support_desk, filter_):
    problem = await refused(support_desk, "tickets", "context_store_search", {"query": {"filter": filter_}})

    assert 'write {"eq": {"status": "open"}}' in problem["detail"]
    assert "did you mean" not in problem["detail"]
    assert problem["errors"][0]["pointer"] == "/params/query/filter/status"


@pytest.mark.parametrize("action", ["delete", "remove", "close", "merge"])
async def test_an_unknown_action_lists_the_known_ones_and_suggests_no_other_verb(support_desk, action):
    problem = await refused(support_desk, "tickets", action, {})

    assert problem["code"] == "unknown_action"
    assert "did you mean" not in problem["detail"]
    assert (
        "known: context_store_search, create, create_many, delete_many, get, list, list_changes, update"
        in problem["detail"]
    )


async def test_a_misspelt_action_gets_a_suggestion(support_desk):
    problem = await refused(support_desk, "tickets", "lst", {})

    assert "did you mean list?" in problem["detail"]


async def test_the_error_of_a_misplaced_member_names_its_object(support_desk):
    problem = await refused(support_desk, "tickets", "create", {"subject": "Fire", "ticket": {"subject": "Fire"}})

    assert "did you mean ticket.subject?" in problem["detail"]


@pytest.mark.parametrize(
    ("entity", "action", "params", "members"),
    [
        ("tickets", "list", {"sort_order": "up"}, {}),
        ("tickets", "get", {}, {}),
        ("tickets", "list", {"subject": 1}, {}),
        ("tickets", "list", None, {"select_fields": ["subjet"]}),
        ("tickets", "context_store_search", {"query": {"filter": {"eq": {"statu": 1}}}}, {}),
        ("tickets", "context_store_search", {"query": []}, {}),
        ("tickets", "context_store_search", {"query": {}}, {"exclude_fields": ["subjet"]}),
        ("tickets", "archive", {}, {}),
    ],
)
async def test_the_error_of_a_call_has_a_valid_example(support_desk, entity, action, params, members):
    problem = await refused(support_desk, entity, action, params, **members)

    shown = problem["example"]
    right = await support_desk.send(shown["entity"], shown["action"], shown["params"], dry_run=True)
    assert right.status == 200, right.body
    assert shown["entity"] == entity
    assert action in (shown["action"], "archive")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/integrations/connectors", {"workspace_name": 1, "connector_type": [], "credentials": "x"}),
        (
            "POST",
            "/api/v1/integrations/connectors",
            {"workspace_name": "a", "connector_type": "b", "credentials": 0},
        ),
        ("POST", "/api/v1/connect/sessions", {"workspace_name": "a", "expires_in": "soon", "connector_types": "all"}),
        ("POST", "{execute}", {"entity": 5, "action": None, "params": [], "select_fields": "id", "dry_run": "yes"}),
        ("POST", "{execute}", {"entity": "tickets", "action": "get", "params": {"ticket_id": {"id": 1}}}),
        ("GET", "/api/v1/jobs?limit=many&created_after=yesterday&connector_id=7&status=late", None),
        ("GET", "/api/v1/operations?limit=0&effect=some", None),
    ],
)
async def test_a_fault_has_no_words_of_libraries_and_the_value_that_was_sent(api, support_desk, method, path, body):
    answer = await api.call(method, path.format(execute=f"{support_desk.path}/execute"), json=body)

    problem = answer.json()
    assert answer.status == 422
    assert FOREIGN.search(answer.body.decode()) is None
    assert all(re.search(r" is .+; ", each["message"]) for each in problem["errors"]), problem["errors"]


async def test_a_dry_run_names_the_connector_and_the_request_as_any_answer_does(support_desk):
    answer = await support_desk.send("tickets", "list", {"per_page": 2}, dry_run=True)

    execution = answer.document()["execution_metadata"]
    assert execution["connector_instance_id"] == support_desk.record["id"]
    assert execution["request_id"] == answer.headers["X-Request-Id"]
    assert execution["execution_time_ms"] >= 0


async def test_the_faults_are_in_detail_message_and_the_text_of_the_error(support_desk):
    answer = await support_desk.send("tickets", "list", {"sort_order": "up", "per_page": "no"})

    problem = answer.json()
    faults = "; ".join(each["message"] for each in problem["errors"])
    assert len(problem["errors"]) == 2
    assert problem["detail"] == problem["message"] == faults
    assert str(error_of(answer.status, answer.headers, answer.body)) == faults


async def test_numbers_may_be_text_and_lists_may_be_arrays_in_every_call(support_desk):
    page = await support_desk.execute("tickets", "list", {"per_page": "2"})
    found = await support_desk.execute("tickets", "context_store_search", {"query": {}, "limit": "2"})
    shown = await support_desk.execute(
        "ticket_bulk_updates", "create", {"ids": ["1", 2], "ticket": {"status": "open"}}, dry_run=True
    )

    assert len(page["result"]) == 2
    assert page["next"]["page"] == 2
    assert found["next"] is None
    assert "ids=1,2" in shown["result"][0]["url"] or "1%2C2" in shown["result"][0]["url"]
