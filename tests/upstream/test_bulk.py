"""Many calls as one request: what it holds, which record is whose, and what a failure means for each."""

from typing import Any

import msgspec
import pytest

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamBusy,
    UpstreamError,
    UpstreamFault,
    UpstreamInvalidResponse,
    UpstreamRejected,
    with_unknown_outcome,
)
from gateway.kinds.loading import load_kind, shipped_specs
from gateway.upstream.bulk import bulk_call, outcomes, outcomes_of_error
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.responses import OperationResult, UpstreamResponse
from tests.kinds.small_kind import small_operation

BULK = {
    "request": "POST /things/many",
    "items": {"as": "things"},
    "item": {"name": "{name}"},
    "max_items": 10,
    "records": "made",
    "match": {"name": "label.text"},
    "rejects_all": [400],
}
NAME = {"name": {"type": "string", "description": "name"}}


def calls_of(kind: str, operation: str, *params: dict[str, Any]) -> list[PreparedCall]:
    found = load_kind(shipped_specs() / kind).operation(*operation.split("."))
    return [PreparedCall.of(found, each) for each in params]


def small_calls(effect: str, *names: str) -> list[PreparedCall]:
    bulk = BULK if effect == "write" else {**BULK, "rejects_all": []}
    operation = small_operation(
        {"request": "POST /things", "effect": effect, "params": NAME, "required": ["name"], "bulk": bulk}
    )
    return [PreparedCall.of(operation, {"name": name}) for name in names]


def answered(calls: list[PreparedCall], document: Any) -> list[Any]:
    answer = bulk_call(calls).answer(UpstreamResponse(200, {}, msgspec.json.encode(document)))
    return outcomes(calls, answer)


def results(found: list[Any]) -> list[Any]:
    return [each.decoded() if isinstance(each, OperationResult) else each for each in found]


def test_ids_in_a_query_are_one_member_each_record_once():
    calls = calls_of("support-desk", "tickets.get", *({"ticket_id": number} for number in (7, 3, 7)))

    request = bulk_call(calls).request("https://acme.zendesk.com/api/v2")

    assert (request.method, str(request.url)) == (
        "GET", "https://acme.zendesk.com/api/v2/tickets/show_many.json?ids=7%2C3",
    )  # fmt: skip
    assert request.body is None


def test_items_in_a_body_are_objects_and_texts_with_commas_are_lists():
    params = {"properties": "email, crm_owner_id", "archived": True}
    calls = calls_of("crm-records", "contacts.get", *({"contactId": each, **params} for each in ("1", "2")))

    request = bulk_call(calls).request("https://api.hubapi.com")

    assert str(request.url) == "https://api.hubapi.com/crm/v3/objects/contacts/batch/read?archived=true"
    assert msgspec.json.decode(request.body or b"") == {
        "inputs": [{"id": "1"}, {"id": "2"}],
        "properties": ["email", "hubspot_owner_id"],
        "propertiesWithHistory": [],
    }


def test_writes_hold_the_members_of_each_call():
    shared = {"base_id": "app1", "table_id_or_name": "Orders", "typecast": True}
    calls = calls_of(
        "airtable", "records.update", *({**shared, "record_id": each, "fields": {"Name": each}} for each in "ab")
    )

    request = bulk_call(calls).request("https://api.airtable.com/v0")

    assert (request.method, str(request.url)) == ("PATCH", "https://api.airtable.com/v0/app1/Orders")
    assert msgspec.json.decode(request.body or b"") == {
        "typecast": True,
        "records": [{"id": "a", "fields": {"Name": "a"}}, {"id": "b", "fields": {"Name": "b"}}],
    }


def test_records_are_matched_by_id_in_any_order_and_pass_through_as_they_came():
    calls = calls_of("support-desk", "tickets.get", *({"ticket_id": number} for number in (1, 2, 3, 1)))
    body = b'{"tickets": [{"id": 3, "n": 1.50}, {"id": 1}], "count": 2}'

    found = outcomes(calls, bulk_call(calls).answer(UpstreamResponse(200, {}, body)))

    assert results(found) == [{"id": 1}, None, {"id": 3, "n": 1.5}, {"id": 1}]
    assert bytes(found[2].result) == b'{"id": 3, "n": 1.50}'


def test_records_have_the_names_that_callers_know():
    calls = calls_of("crm-records", "contacts.get", {"contactId": "1", "properties": "crm_owner_id"})

    found = answered(calls, {"results": [{"id": "1", "properties": {"hubspot_owner_id": "7"}}]})

    assert results(found) == [{"id": "1", "properties": {"crm_owner_id": "7"}}]


@pytest.mark.parametrize("records", [[], [{"id": "2"}], [{}], [None], [{"id": None}], ["1"]])
def test_a_record_of_no_call_is_no_answer(records):
    calls = calls_of("crm-records", "contacts.get", {"contactId": "1", "properties": "email"})

    assert answered(calls, {"results": records}) == [None]


def test_a_response_without_the_list_is_invalid():
    with pytest.raises(UpstreamInvalidResponse):
        answered(small_calls("read", "a"), {"other": []})


@pytest.mark.parametrize("effect", ["read", "idempotent"])
def test_what_the_response_does_not_mention_is_sent_by_itself(effect):
    found = answered(small_calls(effect, "a", "b"), {"made": [{"label": {"text": "b"}}]})

    assert results(found) == [None, {"label": {"text": "b"}}]


def test_a_write_that_the_response_does_not_mention_is_unknown():
    unknown, done = answered(small_calls("write", "a", "b"), {"made": [{"label": {"text": "b"}}]})

    assert (unknown.code, unknown.is_outcome_unknown) == ("outcome_unknown", True)
    assert done.decoded() == {"label": {"text": "b"}}


def of_status(status: int) -> UpstreamRejected:
    return UpstreamRejected("no", upstream=UpstreamFault(status=status))


LOST = with_unknown_outcome(UpstreamError("lost"), {"request_sent": True}, safe_to_retry=False)


@pytest.mark.parametrize("effect", ["read", "idempotent"])
@pytest.mark.parametrize("error", [of_status(400), of_status(403), UpstreamError("away"), LOST])
def test_what_may_be_repeated_is_sent_by_itself_after_any_failure(effect, error):
    assert outcomes_of_error(small_calls(effect, "a", "b"), error) == [None, None]


@pytest.mark.parametrize(
    ("error", "is_sent_alone", "is_unknown"),
    [
        (of_status(400), True, False),
        (of_status(422), False, True),
        (LOST, False, True),
        (UpstreamError("no connection"), False, False),
        (UpstreamBusy("locked", upstream=UpstreamFault(status=423)), True, False),
        (ReauthorizationRequired("refused", upstream=UpstreamFault(status=401)), True, False),
    ],
)
def test_a_write_is_sent_by_itself_only_if_the_application_has_certainly_done_nothing(error, is_sent_alone, is_unknown):
    found = outcomes_of_error(small_calls("write", "a", "b"), error)

    assert found == [None, None] if is_sent_alone else all(each is not None for each in found)
    assert [each is not None and each.is_outcome_unknown for each in found] == [is_unknown] * 2
