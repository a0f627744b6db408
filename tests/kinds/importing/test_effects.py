"""Effects follow RFC 9110; an uncertain one is never a read, and is reported."""

import pytest

from tests.kinds.importing.documents import RECORD, action, answer, imported, listed, reasons

EFFECTS = [
    ("get", "/shipments", "listShipments", "read"),
    ("put", "/shipments/{id}", "replaceShipment", "idempotent"),
    ("delete", "/shipments/{id}", "deleteShipment", "idempotent"),
    ("post", "/shipments", "createShipment", "write"),
    ("patch", "/shipments/{id}", "updateShipment", "write"),
    ("post", "/shipments/list", "listShipments", "write"),
    ("post", "/shipments/search", "searchShipments", "read"),
    ("post", "/shipments/search", "createSavedSearch", "write"),
    ("post", "/saved_searches", "searchSaved", "write"),
    ("put", "/incidents/{id}/merge", "mergeIncidents", "write"),
    ("put", "/invitations/{id}", "resendInvitation", "write"),
]


@pytest.mark.parametrize(("method", "path", "operation_id", "effect"), EFFECTS)
def test_the_effect_follows_from_method_and_name(method, path, operation_id, effect):
    assert action(method, path, operationId=operation_id)["effect"] == effect


def test_a_put_of_a_json_patch_is_a_write():
    body = {"content": {"application/json-patch+json": {"schema": {"type": "array", "items": RECORD}}}}

    assert action("put", "/shipments/{id}", requestBody=body)["effect"] == "write"


def test_the_summary_determines_the_effect_if_the_id_only_repeats_method_and_path():
    assert (
        action("put", "/users/{id}/folders", operationId="put_users_id_folders", summary="Transfer folders")["effect"]
        == "write"
    )
    odd = {"operationId": "get_odd", "summary": "Cancels the order", "responses": answer(RECORD)}
    assert "GET /odd" not in imported({"/odd": {"get": odd}}).names


def test_a_merge_patch_is_idempotent():
    body = {"content": {"application/merge-patch+json": {"schema": RECORD}}}

    assert action("patch", "/shipments/{id}", requestBody=body)["effect"] == "idempotent"


@pytest.mark.parametrize("name", ["deleteShipment", "sendReminder", "revoke_token", "triggerRun"])
def test_a_get_whose_name_says_that_it_changes_something_needs_a_person(name):
    made = imported({"/odd": {"get": {"operationId": name, "responses": answer(RECORD)}}})

    assert "GET /odd" not in made.names
    assert "a GET whose name says that it changes something" in reasons(made)


@pytest.mark.parametrize("method", ["stepCompleted", "stepFailed", "open"])
def test_a_get_of_a_named_method_is_a_read_only_if_its_name_says_so(method):
    made = imported({f"/flows.{method}": {"get": {"operationId": f"flows_{method}", "responses": answer(RECORD)}}})

    assert f"GET /flows.{method}" not in made.names


def test_a_get_whose_path_ends_with_a_changing_verb_needs_a_person_whatever_its_name():
    made = imported({"/session/logout": {"get": {"operationId": "getLogout", "responses": answer(RECORD)}}})

    assert "GET /session/logout" not in made.names


def test_a_post_that_is_mapped_as_a_read_is_reported():
    made = imported({"/contacts/search": {"post": {"operationId": "searchContacts", "responses": listed()}}})

    assert "a POST that is a search by its path and its name is mapped as a read" in reasons(made)


def test_a_correction_determines_the_effect_and_removes_the_finding():
    operation = {"operationId": "searchContacts", "responses": listed(), "x-gateway": {"effect": "write"}}
    made = imported({"/contacts/search": {"post": operation}})

    assert made.entities["contacts"]["actions"]["api_search"]["effect"] == "write"
    assert "a POST that is a search by its path and its name is mapped as a read" not in reasons(made)
