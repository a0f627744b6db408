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
    ("put", "/sites/{id}/rollback", "rollbackSite", "write"),
    ("put", "/charges/{id}", "updateCharge", "idempotent"),
    ("put", "/split_tests/{id}", "updateSplitTest", "idempotent"),
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
    assert imported({"/odd": {"get": odd}}).entities["odd"]["actions"]["get"]["effect"] == "write"


def test_a_merge_patch_is_idempotent():
    body = {"content": {"application/merge-patch+json": {"schema": RECORD}}}

    assert action("patch", "/shipments/{id}", requestBody=body)["effect"] == "idempotent"


@pytest.mark.parametrize("name", ["deleteShipment", "sendReminder", "revoke_token", "triggerRun"])
def test_a_get_whose_name_says_that_it_changes_something_is_a_write(name):
    made = imported({"/odd": {"get": {"operationId": name, "responses": answer(RECORD)}}})

    assert made.entities["odd"]["actions"]["get"]["effect"] == "write"
    assert "a GET whose name says that it changes something is mapped as a write" in reasons(made)


@pytest.mark.parametrize("method", ["stepCompleted", "stepFailed", "open"])
def test_a_get_of_a_named_method_is_a_read_only_if_its_name_says_so(method):
    made = imported({f"/flows.{method}": {"get": {"operationId": f"flows_{method}", "responses": answer(RECORD)}}})

    entity, name = made.names[f"GET /flows.{method}"].split(".")
    assert made.entities[entity]["actions"][name]["effect"] == "write"


def test_a_get_whose_path_ends_with_a_changing_verb_is_a_write_whatever_its_name():
    assert action("get", "/session/logout", operationId="getLogout")["effect"] == "write"


def test_a_get_whose_summary_says_that_it_reads_is_a_read():
    assert (
        action("get", "/keys", operationId="KeysController_jsonWebKeySet", summary="Get the keys")["effect"] == "read"
    )


@pytest.mark.parametrize("name", ["openIdConfiguration", "OpenIDConfiguration", "getOpenApi"])
def test_a_word_is_matched_as_a_whole(name):
    assert action("get", "/odd", operationId=name)["effect"] == "read"


SAID = [
    ("Edits and sends the contract", "", "write"),
    ("Update a member", "Invites a user to the team.", "write"),
    ("Save the plan", "The customer will be charged at once.", "write"),
    ("Update the balance", "Deducts the amount from the balance.", "write"),
    ("Change a post", "Changes the post and publish it to all channels.", "write"),
    ("Set the agent", "Notifies the previous agent.", "write"),
    (
        "Update a charge",
        "To update a charge, send a PUT request to this URL with the fields in the request body.",
        "idempotent",
    ),
    ("Replace the list of payment requests", "All requests are replaced.", "idempotent"),
]


@pytest.mark.parametrize(("summary", "description", "effect"), SAID)
@pytest.mark.parametrize("method", ["put", "post"])
def test_what_the_words_say_is_done_each_time_is_never_idempotent(method, summary, description, effect):
    found = action(method, "/things/{id}", summary=summary, description=description)["effect"]

    assert found == (effect if method == "put" else "write")


def test_a_post_that_is_mapped_as_a_read_is_reported():
    made = imported({"/contacts/search": {"post": {"operationId": "searchContacts", "responses": listed()}}})

    assert "a POST that is a search by its path and its name is mapped as a read" in reasons(made)


def test_a_correction_determines_the_effect_and_removes_the_finding():
    operation = {"operationId": "searchContacts", "responses": listed(), "x-gateway": {"effect": "write"}}
    made = imported({"/contacts/search": {"post": operation}})

    assert made.entities["contacts"]["actions"]["api_search"]["effect"] == "write"
    assert "a POST that is a search by its path and its name is mapped as a read" not in reasons(made)
