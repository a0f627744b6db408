"""Support desk: every action as it goes over the wire, and every answer as it comes back."""

from base64 import b64encode

import msgspec
import pytest
from yarl import URL

from gateway.connectors import requests
from gateway.connectors.auth import checked_credentials
from gateway.connectors.requests import checked_environment
from gateway.connectors.responses import UpstreamResponse
from gateway.errors import (
    GatewayError,
    InvalidCredentials,
    InvalidParams,
    ReauthorizationRequired,
    UpstreamError,
    UpstreamFault,
    UpstreamNotFound,
    UpstreamQueueFull,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.kinds.catalog import load_kind, shipped_specs
from gateway.kinds.params import validated
from gateway.kinds.spec import Effect
from tests.connectors.judged import read
from tests.connectors.kinds.wire import Call

KIND = load_kind(shipped_specs() / "support-desk")
ENVIRONMENT = {"subdomain": "acme"}
ORIGIN = "https://acme.zendesk.com"
API_TOKEN = {"email": "ada@example.com", "api_token": "secret"}
OAUTH = {"access_token": "bearing"}
UNPAGED = {"next_page": None, "previous_page": None, "count": 1}


NEW_TICKET = {
    "subject": "Printer on fire",
    "description": "Smoke",
    "comment": {"body": "Smoke", "html_body": "<b>Smoke</b>", "public": False},
    "type": "incident",
    "priority": "urgent",
    "status": "new",
    "requester_id": 1,
    "assignee_id": 2,
    "group_id": 3,
    "organization_id": 4,
    "tags": ["fire"],
    "external_id": "A-17",
    "custom_fields": [{"id": 5, "value": "red"}],
    "due_at": "2026-01-31T09:00:00Z",
    "collaborator_ids": [6, 7],
}
CHANGED_TICKET = {
    "subject": "Printer was on fire",
    "comment": {"body": "Out", "html_body": "<b>Out</b>", "public": True, "author_id": 2},
    "type": "problem",
    "priority": "low",
    "status": "solved",
    "assignee_id": 2,
    "group_id": 3,
    "tags": ["fire", "out"],
    "external_id": "A-18",
    "custom_fields": [{"id": 5, "value": "black"}],
    "due_at": "2026-02-28T09:00:00+01:00",
    "collaborator_ids": [6],
}
BULK_CHANGE = {
    "status": "solved",
    "priority": "normal",
    "assignee_id": 2,
    "group_id": 3,
    "tags": ["a"],
    "additional_tags": ["b"],
    "remove_tags": ["c"],
}
COMMENT = {"comment": {"body": "Called back", "html_body": "<p>Called back</p>", "public": False, "author_id": 2}}
NEW_USER = {
    "name": "Ada",
    "email": "ada@example.com",
    "role": "end-user",
    "phone": "+44",
    "organization_id": 4,
    "external_id": "crm-1",
    "alias": "A",
    "notes": "n",
    "details": "d",
    "tags": ["vip"],
    "verified": True,
    "user_fields": {"plan": "gold"},
}
CHANGED_USER = {"name": "Ada L", "role": "agent", "suspended": True, "tags": [], "user_fields": {"plan": None}}
PAGE = {"page": 2, "per_page": 50}
PAGE_QUERY = {"page": "2", "per_page": "50"}
USAGE = {"active": False, "sort_by": "usage_7d", "sort_order": "desc"}
USAGE_QUERY = {"active": "false", "sort_by": "usage_7d", "sort_order": "desc"}

CALLS = [
    Call(
        "tickets.list",
        {**PAGE, "external_id": "A&B /17", "sort_by": "requester.name", "sort_order": "asc"},
        "/tickets.json",
        {**PAGE_QUERY, "external_id": "A&B /17", "sort_by": "requester.name", "sort_order": "asc"},
    ),
    Call("tickets.list", {}, "/tickets.json"),
    Call("tickets.list", {"limit": 7}, "/tickets.json", {"per_page": "7"}),
    Call("tickets.get", {"ticket_id": 35436}, "/tickets/35436.json"),
    Call("tickets.get", {"ticket_id": "35436"}, "/tickets/35436.json"),
    Call("tickets.create", {"ticket": NEW_TICKET}, "/tickets.json", {}, "POST", {"ticket": NEW_TICKET}),
    Call(
        "tickets.update",
        {"ticket_id": 1, "ticket": CHANGED_TICKET},
        "/tickets/1.json",
        {},
        "PUT",
        {"ticket": CHANGED_TICKET},
    ),
    Call(
        "ticket_comments.create", {"ticket_id": 1, "ticket": COMMENT}, "/tickets/1.json", {}, "PUT", {"ticket": COMMENT}
    ),
    Call(
        "ticket_comments.list",
        {"ticket_id": 1, **PAGE, "include_inline_images": True, "sort_order": "desc"},
        "/tickets/1/comments.json",
        {**PAGE_QUERY, "include_inline_images": "true", "sort_order": "desc"},
    ),
    Call(
        "ticket_bulk_updates.create",
        {"ids": "1, 2,3", "ticket": BULK_CHANGE},
        "/tickets/update_many.json",
        {"ids": "1,2,3"},
        "PUT",
        {"ticket": BULK_CHANGE},
    ),
    Call(
        "deleted_tickets.list",
        {**PAGE, "sort_by": "deleted_at", "sort_order": "desc"},
        "/deleted_tickets.json",
        {**PAGE_QUERY, "sort_by": "deleted_at", "sort_order": "desc"},
    ),
    Call(
        "users.list",
        {**PAGE, "role": "end-user", "external_id": "crm-1"},
        "/users.json",
        {**PAGE_QUERY, "role": "end-user", "external_id": "crm-1"},
    ),
    Call("users.create", {"user": NEW_USER}, "/users.json", {}, "POST", {"user": NEW_USER}),
    Call("users.get", {"user_id": 1}, "/users/1.json"),
    Call("users.update", {"user_id": 1, "user": CHANGED_USER}, "/users/1.json", {}, "PUT", {"user": CHANGED_USER}),
    Call("organizations.list", PAGE, "/organizations.json", PAGE_QUERY),
    Call("organizations.get", {"organization_id": 1}, "/organizations/1.json"),
    Call("groups.list", {**PAGE, "exclude_deleted": True}, "/groups.json", {**PAGE_QUERY, "exclude_deleted": "true"}),
    Call("groups.get", {"group_id": 1}, "/groups/1.json"),
    Call("attachments.get", {"attachment_id": 1}, "/attachments/1.json"),
    Call("attachments.download", {"attachment_id": 1, "range_header": "bytes=0-9"}, "/attachments/1.json"),
    Call("ticket_audits.list", {"ticket_id": 1, **PAGE}, "/tickets/1/audits.json", PAGE_QUERY),
    Call("ticket_audits.list", {"ticket_id": 1, "limit": 5}, "/tickets/1/audits.json", {"per_page": "5"}),
    Call("ticket_audits.list", {}, "/ticket_audits.json"),
    Call(
        "ticket_audits.list",
        {"limit": 1000, "cursor": "fD=="},
        "/ticket_audits.json",
        {"limit": "1000", "cursor": "fD=="},
    ),
    Call("ticket_audits.list", PAGE, "/ticket_audits.json", PAGE_QUERY),
    Call("ticket_metrics.list", PAGE, "/ticket_metrics.json", PAGE_QUERY),
    Call("ticket_fields.list", {**PAGE, "locale": "de"}, "/ticket_fields.json", {**PAGE_QUERY, "locale": "de"}),
    Call("ticket_fields.get", {"ticket_field_id": 1}, "/ticket_fields/1.json"),
    Call("brands.list", PAGE, "/brands.json", PAGE_QUERY),
    Call("brands.get", {"brand_id": 1}, "/brands/1.json"),
    Call(
        "views.list",
        {**PAGE, "access": "personal", "active": True, "group_id": 3, "sort_by": "alphabetical", "sort_order": "asc"},
        "/views.json",
        {
            **PAGE_QUERY,
            "access": "personal",
            "active": "true",
            "group_id": "3",
            "sort_by": "alphabetical",
            "sort_order": "asc",
        },
    ),
    Call("views.get", {"view_id": 1}, "/views/1.json"),
    Call("macros.get", {"macro_id": 1}, "/macros/1.json"),
    Call(
        "macros.list",
        {
            "access": "shared",
            "active": True,
            "category": 8,
            "group_id": 3,
            "only_viewable": False,
            "sort_by": "position",
        },
        "/macros.json",
        {
            "access": "shared",
            "active": "true",
            "category": "8",
            "group_id": "3",
            "only_viewable": "false",
            "sort_by": "position",
        },
    ),
    Call(
        "triggers.list",
        {**USAGE, "category_id": "10"},
        "/triggers.json",
        {**USAGE_QUERY, "category_id": "10"},
    ),
    Call("triggers.get", {"trigger_id": 1}, "/triggers/1.json"),
    Call("automations.list", USAGE, "/automations.json", USAGE_QUERY),
    Call("automations.get", {"automation_id": 1}, "/automations/1.json"),
    Call("tags.list", PAGE, "/tags.json", PAGE_QUERY),
    Call(
        "satisfaction_ratings.list",
        {"score": "bad", "start_time": 1_700_000_000, "end_time": 1_700_086_400},
        "/satisfaction_ratings.json",
        {"score": "bad", "start_time": "1700000000", "end_time": "1700086400"},
    ),
    Call("satisfaction_ratings.get", {"satisfaction_rating_id": 1}, "/satisfaction_ratings/1.json"),
    Call("group_memberships.list", PAGE, "/group_memberships.json", PAGE_QUERY),
    Call("organization_memberships.list", PAGE, "/organization_memberships.json", PAGE_QUERY),
    Call("sla_policies.list", PAGE, "/slas/policies.json", PAGE_QUERY),
    Call("sla_policies.get", {"sla_policy_id": 1}, "/slas/policies/1.json"),
    Call(
        "ticket_forms.list",
        {"active": True, "end_user_visible": False},
        "/ticket_forms.json",
        {"active": "true", "end_user_visible": "false"},
    ),
    Call("ticket_forms.get", {"ticket_form_id": 1}, "/ticket_forms/1.json"),
    Call(
        "articles.list",
        {**PAGE, "sort_by": "title", "sort_order": "desc"},
        "/help_center/articles.json",
        {**PAGE_QUERY, "sort_by": "title", "sort_order": "desc"},
    ),
    Call("articles.get", {"id": 1}, "/help_center/articles/1.json"),
    Call(
        "article_attachments.list",
        {"article_id": 1, **PAGE},
        "/help_center/articles/1/attachments.json",
        PAGE_QUERY,
    ),
    Call("article_attachments.get", {"article_id": 1, "attachment_id": 2}, "/help_center/articles/1/attachments/2"),
    Call(
        "article_attachments.download",
        {"article_id": 1, "attachment_id": 2, "range_header": "bytes=5-"},
        "/help_center/articles/1/attachments/2",
    ),
]


def test_every_action_has_a_case():
    assert {call.action for call in CALLS} == {str(operation) for operation in KIND.operations.values()}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.action)
def test_an_action_makes_its_request(offline, call):
    call.assert_sent_by(offline("support-desk", **ENVIRONMENT), f"{ORIGIN}/api/v2")


@pytest.mark.parametrize("operation", KIND.operations.values(), ids=str)
def test_every_example_is_valid(operation):
    assert validated(operation, operation.action.example).keys() >= operation.action.example.keys()


def test_null_clears_when_a_ticket_is_due():
    operation = KIND.operation("tickets", "update")

    sent = validated(operation, {"ticket_id": 1, "ticket": {"due_at": None}})

    assert sent["ticket"] == {"due_at": None}


def test_a_bulk_update_of_250_tickets_goes_out_in_three_batches(offline):
    ids = [str(number) for number in range(1, 251)]

    shown = offline("support-desk", **ENVIRONMENT).dry_run(
        "ticket_bulk_updates", "create", {"ids": ",".join(ids), "ticket": {"status": "solved"}}
    )

    batches = [URL(request["url"]).query["ids"].split(",") for request in shown]
    assert [len(batch) for batch in batches] == [100, 100, 50]
    assert [ticket for batch in batches for ticket in batch] == ids


@pytest.mark.parametrize(
    ("action", "params", "effect"),
    [
        ("tickets.list", {}, Effect.READ),
        ("tickets.create", {"ticket": {"subject": "x"}}, Effect.WRITE),
        ("tickets.update", {"ticket_id": 1, "ticket": {"status": "open"}}, Effect.IDEMPOTENT),
        ("tickets.update", {"ticket_id": 1, "ticket": {"comment": {"body": "x"}}}, Effect.WRITE),
        ("tickets.update", {"ticket_id": 1, "ticket": {"comment": {}}}, Effect.WRITE),
        ("ticket_comments.create", {"ticket_id": 1, "ticket": {"comment": {"body": "x"}}}, Effect.WRITE),
        ("ticket_bulk_updates.create", {"ids": "1", "ticket": {}}, Effect.IDEMPOTENT),
        ("users.create", {"user": {"name": "x"}}, Effect.WRITE),
        ("users.update", {"user_id": 1, "user": {}}, Effect.IDEMPOTENT),
    ],
)
def test_what_a_call_twice_would_do(action, params, effect):
    assert requests.effect_of(KIND.operation(*action.split(".")), params) is effect


@pytest.mark.parametrize("action", ["tickets.create", "ticket_comments.create", "users.create"])
def test_what_is_created_can_be_looked_up_when_its_answer_is_lost(action):
    found_by = KIND.operation(*action.split(".")).action.find_by

    assert KIND.operation(*found_by.split(" ")[0].split(".")).is_list


TICKET_ID = {"ticket_id": 1}


@pytest.mark.parametrize(
    ("action", "params", "field", "said"),
    [
        ("tickets.create", {}, "ticket", "ticket is missing"),
        ("tickets.create", {"ticket": {}}, "ticket.subject", "ticket.subject is missing"),
        (
            "tickets.create",
            {"ticket": {"subject": "x", "status": "closed"}},
            "ticket.status",
            "allowed: new, open, pending, hold, solved",
        ),
        ("tickets.update", {**TICKET_ID, "ticket": {"status": "closed"}}, "ticket.status", "'closed'"),
        ("ticket_bulk_updates.create", {"ids": "1", "ticket": {"status": "closed"}}, "ticket.status", "'closed'"),
        ("ticket_bulk_updates.create", {"ids": "1,x", "ticket": {}}, "ids", "digits separated by commas"),
        ("ticket_bulk_updates.create", {"ids": "", "ticket": {}}, "ids", "digits separated by commas"),
        ("ticket_bulk_updates.create", {"ids": [[1], 2], "ticket": {}}, "ids", "expected string"),
        ("ticket_bulk_updates.create", {"ids": "1", "ticket": {"subject": "x"}}, "ticket.subject", "is not a param"),
        ("tickets.create", {"ticket": {"subject": "x", "priority": "hot"}}, "ticket.priority", "urgent, high"),
        ("tickets.create", {"ticket": {"subject": "x", "type": "bug"}}, "ticket.type", "problem, incident"),
        ("tickets.create", {"ticket": {"subject": "x", "asignee_id": 1}}, "ticket.asignee_id", "mean assignee_id?"),
        (
            "tickets.create",
            {"ticket": {"subject": "x", "comment": {"author_id": 1}}},
            "ticket.comment.author_id",
            "is not a param",
        ),
        (
            "tickets.update",
            {**TICKET_ID, "ticket": {"custom_fields": [{"id": "five"}]}},
            "ticket.custom_fields.0.id",
            "expected integer",
        ),
        (
            "tickets.update",
            {**TICKET_ID, "ticket": {"due_at": "tomorrow"}},
            "ticket.due_at",
            "must be a date-time such as 2026-01-31T09:00:00Z",
        ),
        ("ticket_comments.create", {**TICKET_ID, "ticket": {"comment": {}}}, "ticket.comment.body", "is missing"),
        ("ticket_comments.create", {**TICKET_ID, "ticket": {}}, "ticket.comment", "is missing"),
        ("tickets.get", {"ticket_id": "12a"}, "ticket_id", "expected integer"),
        ("tickets.list", {"sort_order": "up"}, "sort_order", "allowed: asc, desc"),
        ("tickets.list", {"per_page": 101}, "per_page", "at most 100"),
        ("tickets.list", {"limit": 101}, "per_page", "at most 100"),
        ("tickets.list", {"page": 0}, "page", "at least 1"),
        ("users.list", {"role": "owner"}, "role", "end-user, agent, admin"),
        ("ticket_audits.list", {"ticket_id": 1, "cursor": "x"}, "", "ticket_id and cursor exclude each other"),
        ("article_attachments.get", {"article_id": 1}, "attachment_id", "is missing"),
    ],
)
def test_params_that_cannot_be_sent_are_refused_with_the_way_to_mend_them(action, params, field, said):
    with pytest.raises(InvalidParams) as refused:
        validated(KIND.operation(*action.split(".")), params)

    [fault] = refused.value.faults
    assert fault.field == field
    assert said in fault.message


PAGED = {"next_page": f"{ORIGIN}/api/v2/tickets.json?page=3&per_page=2", "previous_page": None, "count": 9}


@pytest.mark.parametrize(
    ("action", "body", "records", "meta"),
    [
        ("tickets.list", {"tickets": [{"id": 1}], **PAGED}, [{"id": 1}], PAGED),
        ("tickets.get", {"ticket": {"id": 1, "status": "closed"}}, {"id": 1, "status": "closed"}, None),
        ("ticket_comments.create", {"ticket": {"id": 1}, "audit": {"id": 2}}, {"id": 1}, None),
        ("ticket_comments.list", {"comments": [{"id": 1}], **PAGED}, [{"id": 1}], PAGED),
        ("sla_policies.list", {"sla_policies": [], **PAGED}, [], PAGED),
        ("article_attachments.get", {"article_attachment": {"id": 2}}, {"id": 2}, None),
        ("tags.list", {"tags": [{"name": "a", "count": 1}], "count": 1}, [{"name": "a", "count": 1}], UNPAGED),
    ],
)
def test_an_answer_is_read_into_records_and_meta(action, body, records, meta):
    answer = read(KIND.operation(*action.split(".")), UpstreamResponse(200, {}, msgspec.json.encode(body)))

    assert answer.decoded() == records
    assert answer.meta == meta


@pytest.mark.parametrize(
    ("status", "body", "error", "code", "message"),
    [
        (400, {"error": {"title": "Invalid", "message": "page"}}, UpstreamRejected, "Invalid", "page"),
        (401, {"error": "Couldn't authenticate you"}, ReauthorizationRequired, "Couldn't authenticate you", None),
        (403, {"error": {"title": "Forbidden", "message": "no"}}, UpstreamRejected, "Forbidden", "no"),
        (
            404,
            {"error": "RecordNotFound", "description": "Not found"},
            UpstreamNotFound,
            "RecordNotFound",
            "Not found",
        ),
        (409, {"error": "UpdateConflict", "description": "saved"}, UpstreamRejected, "UpdateConflict", "saved"),
        (
            422,
            {"error": "RecordInvalid", "description": "Record validation errors", "details": {"base": []}},
            UpstreamRejected,
            "RecordInvalid",
            "Record validation errors",
        ),
        (422, {"errors": [{"code": "Bad", "detail": "d"}]}, UpstreamRejected, "Bad", "d"),
        (422, {"errors": ["one", "two"]}, UpstreamRejected, None, "one; two"),
        (429, {"error": "TooManyJobs", "description": "30"}, UpstreamQueueFull, "TooManyJobs", "30"),
        (429, {"error": "TooManyRequests"}, UpstreamRateLimited, "TooManyRequests", None),
        (503, "<html>maintenance</html>", UpstreamError, None, None),
    ],
)
def test_a_failure_is_read_for_what_it_means(status, body, error, code, message):
    answer = UpstreamResponse(status, {"x-request-id": "r1"}, msgspec.json.encode(body))

    with pytest.raises(GatewayError) as raised:
        read(KIND.operation("tickets", "list"), answer)

    assert type(raised.value) is error
    assert raised.value.upstream == UpstreamFault(status, code, message, "r1")


async def test_pages_turn_by_number_until_there_is_none(upstream, connect):
    upstream.answers({"tickets": [{"id": 1}], "next_page": f"{ORIGIN}/api/v2/tickets.json?page=2", "count": 2})
    upstream.answers({"tickets": [{"id": 2}], "next_page": None, "count": 2})
    connector = connect("support-desk", API_TOKEN, **ENVIRONMENT)

    pages = [page.decoded() async for page in connector.pages("tickets", "list", {"per_page": 1, "sort_by": "id"})]

    assert pages == [[{"id": 1}], [{"id": 2}]]
    assert [asked.url.query_string for asked in upstream.received] == [
        "sort_by=id&per_page=1",
        "page=2&sort_by=id&per_page=1",
    ]


async def test_the_audits_of_the_account_turn_to_older_ones_until_there_are_none(upstream, connect):
    # The example of the application's own API description: 1501607522 is later than 1501575122.
    newer, older = "fDE1MDE2MDc1MjJ8fA==", "fDE1MDE1NzUxMjJ8fA=="
    address = f"{ORIGIN}/api/v2/ticket_audits.json?cursor="
    first = {"after_url": f"{address}{newer}", "after_cursor": newer, "before_url": f"{address}{older}"}
    upstream.answers({"audits": [{"id": 2}], **first, "before_cursor": older})
    upstream.answers({"audits": [{"id": 1}], **first, "before_url": None, "before_cursor": None})
    connector = connect("support-desk", API_TOKEN, **ENVIRONMENT)

    pages = [page async for page in connector.pages("ticket_audits", "list", {"limit": 1})]

    assert [page.decoded() for page in pages] == [[{"id": 2}], [{"id": 1}]]
    assert pages[0].meta == {
        "next_page": f"{address}{older}",
        "previous_page": f"{address}{newer}",
        "count": None,
        "after_cursor": newer,
        "before_cursor": older,
    }
    assert [asked.url.raw_path_qs for asked in upstream.received] == [
        "/api/v2/ticket_audits.json?limit=1",
        "/api/v2/ticket_audits.json?limit=1&cursor=fDE1MDE1NzUxMjJ8fA%3D%3D",
    ]


@pytest.mark.parametrize(
    ("credentials", "header"),
    [
        (OAUTH, "Bearer bearing"),
        (API_TOKEN, f"Basic {b64encode(b'ada@example.com/token:secret').decode()}"),
    ],
)
async def test_a_request_carries_the_credentials_of_its_method(upstream, connect, credentials, header):
    upstream.answers({"tickets": []})

    await connect("support-desk", credentials, **ENVIRONMENT).check()

    [asked] = upstream.received
    assert (asked.method, asked.url.raw_path_qs) == ("GET", "/api/v2/tickets.json?per_page=1")
    assert asked.headers["Authorization"] == header


@pytest.mark.parametrize(
    ("credentials", "field"),
    [
        ({"email": "ada@example.com"}, "api_token"),
        ({"api_token": "secret"}, "email"),
        ({"access_token": "x", "token": "y"}, "token"),
        ({"access_token": "x\r\nX-Injected: y"}, "access_token"),
        ({}, "access_token"),
    ],
)
def test_credentials_that_do_not_fit_are_named(credentials, field):
    with pytest.raises(InvalidCredentials) as refused:
        checked_credentials(KIND.spec, credentials)

    assert field in [fault.field for fault in refused.value.faults]


@pytest.mark.parametrize(
    "subdomain", ["", "a.b", "acme.evil.example/", "acme#", "acme@evil", "-acme", "acme-", "ACME", "a" * 64, "acme\n"]
)
def test_a_subdomain_is_one_dns_label(subdomain):
    with pytest.raises(InvalidCredentials, match="DNS label"):
        checked_environment(KIND.spec, {"subdomain": subdomain})


@pytest.mark.parametrize(
    ("entity", "record"), [("attachments", "attachment"), ("article_attachments", "article_attachment")]
)
def test_a_files_address_lies_in_its_record(entity, record):
    download = KIND.operation(entity, "download").action.download

    assert (download.url, download.size, download.name, download.content_type) == (
        (record, "content_url"),
        (record, "size"),
        (record, "file_name"),
        (record, "content_type"),
    )
