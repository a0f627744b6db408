"""Operations are named by paths, methods and shapes; the same document always gives the same unique names."""

import pytest

from gateway.kinds.importing.names import singular
from tests.kinds.importing.documents import RECORD, answer, imported, listed, reasons

ITEMS = {"get": {"operationId": "listItems", "responses": listed()}}

NAMES = [
    ("get", "/shipments", listed(), "shipments.list"),
    ("get", "/shipments/{id}", answer(RECORD), "shipments.get"),
    ("post", "/shipments", answer(RECORD), "shipments.create"),
    ("patch", "/shipments/{id}", answer(RECORD), "shipments.update"),
    ("put", "/shipments/{id}", answer(RECORD), "shipments.update"),
    ("post", "/shipments/{id}", answer(RECORD), "shipments.update"),
    ("delete", "/shipments/{id}", {"204": {"description": ""}}, "shipments.delete"),
    ("get", "/v2/shipments", listed(), "shipments.list"),
    ("get", "/api/v1.2/Shipments.json", listed(), "shipments.list"),
    ("get", "/accounts/{account}/orders/{order}/parcelLabels", listed(), "order_parcel_labels.list"),
    ("post", "/incidents/{id}/snooze", answer(RECORD), "incidents.snooze"),
    ("post", "/incidents/{id}/mark-as-read", answer(RECORD), "incidents.mark_as_read"),
    ("post", "/incidents/{id}/notes", answer(RECORD), "incident_notes.create"),
    ("put", "/comments/{id}/pin", answer(RECORD), "comments.pin"),
    ("delete", "/migrations/{id}/archive", {"204": {"description": ""}}, "migrations.delete_archive"),
    ("post", "/contacts/search", listed(), "contacts.api_search"),
    ("get", "/search/code", listed(), "code.api_search"),
    ("post", "/contacts/merge", answer(RECORD), "contacts.merge"),
    ("post", "/tasks/{id}:activate", answer(RECORD), "tasks.activate"),
    ("get", "/users.profile.get", answer(RECORD), "users_profile.get"),
    ("put", "/files/{id}#add_shared_link", answer(RECORD), "files.add_shared_link"),
    ("get", "/me", answer(RECORD), "me.get"),
    ("get", "/connector", answer(RECORD), "connector_resources.get"),
    ("get", "/", answer(RECORD), "root.get"),
]


@pytest.mark.parametrize(("method", "path", "responses", "name"), NAMES, ids=lambda value: str(value)[:40])
def test_an_operation_is_named_by_path_method_and_shape(method, path, responses, name):
    made = imported({path: {method: {"responses": responses}}})

    assert made.names[f"{method.upper()} {path}"] == name


def test_a_delete_that_undoes_a_verb_has_the_applications_own_verb():
    made = imported({"/comments/{id}/pin": {"delete": {"operationId": "unpin-comment", "responses": {"204": {}}}}})

    assert made.names["DELETE /comments/{id}/pin"] == "comments.unpin"


def test_a_put_beside_a_patch_is_named_replace():
    responses = {"responses": answer(RECORD)}
    made = imported({"/shipments/{id}": {"put": responses, "patch": responses}})

    assert made.names["PATCH /shipments/{id}"] == "shipments.update"
    assert made.names["PUT /shipments/{id}"] == "shipments.replace"


CLASHES = {
    "/user/keys": ITEMS,
    "/users/{username}/keys": ITEMS,
    "/orgs/{org}/teams/{team}/members": ITEMS,
    "/v2/teams/{team}/members": ITEMS,
    "/teams/{team_id}/members": ITEMS,
}


def test_equal_names_get_ancestors_versions_or_params_and_are_reported():
    made = imported(CLASHES)

    assert made.names["GET /user/keys"] == "user_keys.list"
    assert made.names["GET /users/{username}/keys"] == "user_keys_by_username.list"
    assert made.names["GET /teams/{team_id}/members"] == "team_members.list"
    assert made.names["GET /orgs/{org}/teams/{team}/members"] == "org_team_members.list"
    assert made.names["GET /v2/teams/{team}/members"] == "team_members_v2.list"
    assert made.clashes == 3
    assert "another operation has its name, so its own is longer" in reasons(made)


def test_names_do_not_depend_on_the_order_of_the_document():
    assert imported(dict(reversed(CLASHES.items()))).names == imported(CLASHES).names


SINGULARS = {
    "companies": "company", "addresses": "address", "statuses": "status", "status": "status", "aws": "aws",
    "series": "series", "analyses": "analysis", "boxes": "box", "caches": "cache", "aws_accounts": "aws_account",
    "children": "child", "meta": "meta", "quota": "quota", "criteria": "criterion",
    "business": "business", "sms": "sms", "vms": "vm", "media": "media", "aliases": "alias", "kubernetes": "kubernetes",
    "licenses": "license", "indices": "index", "bus": "bus", "data": "data",
}  # fmt: skip


@pytest.mark.parametrize(("plural", "singular_form"), SINGULARS.items())
def test_the_singular_of_a_name(plural, singular_form):
    assert singular(plural) == singular_form


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("post", "/shipments/{id}/delete", "shipments.delete"),
        ("post", "/shipments/delete", "shipments.delete"),
        ("put", "/shipments/{id}/labels/remove", "shipment_labels.delete"),
        ("post", "/deleteUser", "user.delete"),
        ("get", "/shipments/{id}/destroy", "shipments.delete"),
        ("post", "/users.delete", "users.delete"),
    ],
)
def test_verbs_of_deletion_are_delete(method, path, name):
    made = imported({path: {method: {"responses": answer(RECORD)}}})

    assert made.names[f"{method.upper()} {path}"] == name
