"""Every list of every kind ends with a proof, or its answer says why records may be missing."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from gateway.contract.kinds import Effect, PagingStyle
from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.placements import put
from gateway.kinds.requests import Action, RequestSpec
from gateway.sandbox.calls import nested
from gateway.sandbox.operations import number_at, put_columns, rows_of
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.responses import OperationResult, UpstreamResponse
from tests.harness.catalog import shipped_catalog

KINDS = {kind.name: kind for kind in shipped_catalog()}


def lists_of(kind: Kind) -> Iterator[Operation]:
    """The lists of a kind that callers and synchronizations read, and those that stand for them."""
    for operation in kind.operations.values():
        alternatives = [each.without for each in operation.action.alternatives]
        variants = [operation, *(operation.instead({}) for _ in alternatives)]
        yield from (each for each in variants if each.is_list and each.action.long_running is None)
    for entity_id, entity in kind.spec.entities.items():
        for member, read in (entity.search.reads if entity.search else {}).items():
            members = {name: getattr(read, name) for name in RequestSpec.model_fields}
            action = Action.model_construct(**members, effect=Effect.READ, description="Synchronizes.")
            yield Operation(kind.spec, entity_id, f"synchronize_{member}", action)


def answered(operation: Operation, items: list[Any], members: dict[str, Any], **params: Any) -> OperationResult:
    """The page of a response with these items and these members of Meta."""
    columns, headers = operation.action.columns, {}
    document = nested(operation.action.records or (), items if columns is None else rows_of(items))
    if columns is not None:
        put_columns(document, columns.names, items)
    attributes, url = ['rel="next"'], ""
    for name, value in members.items():
        head, *rest = operation.paging.meta[name] if operation.paging else (name,)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if head == "$link" and len(rest) > 1:
            attributes.append(f'{rest[1]}="{text}"')
        elif head == "$link":
            url = text
        elif head == "$header":
            headers[rest[0]] = text
        elif isinstance(document, dict):
            put(document, *number_at((head, *rest), value))
    if url or len(attributes) > 1:
        headers["link"] = "; ".join([f"<{url}>", *attributes])
    body = msgspec.json.encode(document)
    return PreparedCall.of(operation, params).answer(UpstreamResponse(200, headers, body))


def item_of(operation: Operation) -> Any:
    fields: dict[str, Any] = {"id": 1, "gid": "1", "properties": {}}
    return nested(operation.action.unwrap, fields) if operation.action.unwrap else fields


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_short_page_is_no_end_unless_the_vendor_documents_it(subtests, kind: Kind):
    for operation in lists_of(kind):
        paging = operation.paging
        if paging is None or not paging.is_counted:
            continue
        with subtests.test(operation.name):
            params = {paging.size: 100} if paging.size else {}
            page = answered(operation, [item_of(operation)], {}, **params)
            assert page.is_proved_end is (paging.short_page is not None)
            assert answered(operation, [], {}, **params).is_proved_end


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_list_that_says_that_it_has_more_is_not_at_its_end(subtests, kind: Kind):
    for operation in lists_of(kind):
        paging = operation.paging
        if paging is None:
            continue
        with subtests.test(operation.name):
            more = {name: True for name in [paging.has_more] if name} | {name: False for name in [paging.end] if name}
            if more and not paging.is_counted:
                assert answered(operation, [item_of(operation)], more).incomplete is not None
            if paging.incomplete is not None:
                said = {paging.incomplete.meta: paging.incomplete.when or True}
                if paging.incomplete.meta in paging.meta:
                    assert answered(operation, [item_of(operation)], said).incomplete is not None
            if paging.style is PagingStyle.UNKNOWN:
                full = [item_of(operation)] * (paging.max_records or 1)
                assert answered(operation, full, {}).incomplete is not None


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_page_that_names_itself_is_not_the_end(subtests, kind: Kind):
    for operation in lists_of(kind):
        paging = operation.paging
        if paging is None or paging.style is not PagingStyle.CURSOR or len(paging.next) > 1 or paging.scrolls:
            continue
        with subtests.test(operation.name):
            going_on = {name: True for name in [paging.has_more] if name}
            members = {paging.next[0]: "same", **going_on, **({paging.end: False} if paging.end else {})}
            page = answered(operation, [item_of(operation)], members, **{paging.param: "same"})
            assert page.next is None
            assert "its own next page" in (page.incomplete or "")
            other = answered(operation, [item_of(operation)], members, **{paging.param: "other"})
            assert other.next is not None
            assert other.incomplete is None


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_null_items_of_any_list_are_named_and_the_others_are_listed(subtests, kind: Kind):
    for operation in lists_of(kind):
        with subtests.test(operation.name):
            page = answered(operation, [None, item_of(operation)], {})
            assert len(page.records) == 1
            assert "null for 1 of 2 records" in (page.incomplete or "")
            assert not page.is_proved_end


@pytest.mark.parametrize(
    ("kind", "name", "params", "members", "items", "advice"),
    [
        ("freshdesk", ("tickets", "list"), {"page": 300}, {"next": "https://a/tickets?page=301"}, 1, "updated_since"),
        ("freshdesk", ("tickets", "api_search"), {"page": 10}, {"total": 400}, 30, "narrow the query"),
        (
            "intercom",
            ("companies", "list"),
            {"page": 200},
            {"next_page_url": "https://a/companies?page=201"},
            50,
            "tag",
        ),
        (
            "crm-records",
            ("deals", "api_search"),
            {"after": "9800"},
            {"next_cursor": "10000"},
            1,
            "filter from its last",
        ),
        (
            "github",
            ("issues", "api_search"),
            {"after": "c"},
            {"hasNextPage": False, "total": 1001},
            1,
            "narrow the query",
        ),
        ("jira", ("users", "api_search"), {"query": "a", "startAt": 950}, {}, 50, "list all users"),
        (
            "support-desk",
            ("tickets", "list"),
            {"page": 100},
            {"next_page": "https://a/tickets.json?page=101"},
            1,
            "less",
        ),
    ],
)
def test_a_list_that_the_application_does_not_continue_says_what_to_do(kind, name, params, members, items, advice):
    operation = KINDS[kind].operation(*name)

    page = answered(operation, [item_of(operation)] * items, members, **params)

    assert page.next is None
    assert "at most, and there are more" in page.incomplete
    assert advice in page.incomplete
