"""Sunsets of authentication methods and paths: dates, headers and sentences."""

from datetime import date

import pytest

from gateway.errors import ReauthorizationRequired
from gateway.kinds.catalog import Kind
from gateway.kinds.describe import kind_summary
from gateway.kinds.sunsets import (
    all_sunsets,
    call_sunsets,
    described_sunset,
    explain_refusal,
    sunset_headers,
    undated_deprecations,
)
from tests.harness.catalog import shipped_catalog

CATALOG = shipped_catalog()
DESK, CRM = CATALOG.kind("support-desk"), CATALOG.kind("crm-records")


@pytest.mark.parametrize(
    ("today", "words"),
    [
        (date(2026, 11, 21), "API token ends on 2027-04-30; use OAuth (oauth) instead"),
        (date(2027, 4, 30), "API token ended on 2027-04-30; use OAuth (oauth) instead"),
    ],
)
def test_a_deprecated_authentication_method_is_described_with_its_sunset_and_replacement(today, words):
    assert described_sunset(DESK.spec, "api_token", today) == words
    assert described_sunset(DESK.spec, "oauth", today) is None
    assert described_sunset(DESK.spec, None, today) is None


def test_a_response_has_the_headers_of_rfc_9745_and_rfc_8594():
    headers = sunset_headers(call_sunsets(DESK.spec, "api_token", DESK.operation("tickets", "list").path))

    assert headers["Deprecation"] == "@1793059200"
    assert headers["Sunset"] == "Fri, 30 Apr 2027 00:00:00 GMT"
    assert 'oauth-migration>; rel="deprecation"' in headers["Link"]


def test_a_call_without_a_sunset_has_no_headers():
    assert sunset_headers(call_sunsets(DESK.spec, "oauth", DESK.operation("tickets", "list").path)) == {}


def test_a_deprecated_path_concerns_the_calls_to_it():
    [ending] = call_sunsets(CRM.spec, "oauth", CRM.operation("contacts", "list").path)

    assert (ending.path, ending.sunset) == ("/crm/v3/objects", date(2027, 9, 1))
    assert sunset_headers([ending])["Sunset"] == "Wed, 01 Sep 2027 00:00:00 GMT"


@pytest.mark.parametrize(
    ("kind", "entity", "action", "since", "replacement"),
    [
        ("shopify", "product_variants", "get", "@1711929600", "the GraphQL Admin API"),
        ("confluence", "child_pages", "list", None, "/wiki/api/v2/pages/{page_id}/direct-children"),
        ("sentry", "issues", "list", None, "issues.api_search"),
        ("github", "project_items", "list", None, "an alias for each field of another type"),
        ("github", "tags", "get", None, "an alias for each field of another type"),
    ],
)
def test_a_deprecation_without_a_day_is_told(kind, entity, action, since, replacement):
    spec, operation = CATALOG.kind(kind).spec, CATALOG.kind(kind).operation(entity, action)

    [found] = call_sunsets(spec, None, operation.path, str(operation))
    headers = operation.sunset_headers[None]

    assert (found.replacement, found.sunset) == (replacement, None)
    assert (headers.get("Deprecation"), "Sunset" in headers) == (since, False)
    assert headers["Link"] == f'<{found.documentation_url}>; rel="deprecation"'
    assert any(replacement in sentence for sentence in undated_deprecations(spec))
    assert list(all_sunsets(spec)) == []


def test_other_operations_of_these_kinds_are_not_deprecated():
    for kind, entity, action in (("github", "tags", "list"), ("shopify", "products", "create")):
        operation = CATALOG.kind(kind).operation(entity, action)
        is_deprecated = any(str(operation) in each.operations for each in CATALOG.kind(kind).spec.deprecations)

        assert bool(operation.sunset_headers[None]) is is_deprecated


def test_a_switched_deprecation_sends_calls_to_the_replacement():
    switched = tuple(each.model_copy(update={"switched": True}) for each in CRM.spec.deprecations)
    kind = Kind(CRM.spec.model_copy(update={"deprecations": switched}))

    contacts, schema = kind.operation("contacts", "get"), kind.operation("schemas", "get")

    assert contacts.path == "/crm/objects/2026-03/contacts/{contactId}"
    assert schema.path == "/crm-object-schemas/2026-03/schemas/{objectType}"
    assert call_sunsets(kind.spec, "oauth", contacts.path) == []


def test_discovery_has_the_sunsets():
    methods = {method["id"]: method for method in kind_summary(DESK)["auth_methods"]}

    assert (methods["api_token"]["sunset"], methods["api_token"]["replacement"]) == ("2027-04-30", "oauth")
    assert methods["oauth"]["sunset"] is None
    assert {each["path"]: each["sunset"] for each in kind_summary(CRM)["deprecations"]} == {
        "/crm/v3/objects": "2027-09-01",
        "/crm-object-schemas/v3": "2027-09-01",
    }


def test_every_sunset_of_a_kind_names_its_authentication_method():
    assert [method for method, _ in all_sunsets(DESK.spec)] == ["api_token"]
    assert [method for method, _ in all_sunsets(CRM.spec)] == [None, None]


def test_a_refusal_that_passes_through_a_job_and_a_call_is_explained_once():
    refusal = ReauthorizationRequired("the application refused the credentials")

    explain_refusal(refusal, DESK.spec, "api_token")
    explain_refusal(refusal, DESK.spec, "api_token")

    assert refusal.detail.count("API token ends on 2027-04-30") == 1
