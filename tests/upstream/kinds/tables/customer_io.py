"""The cases of Customer.io: lists without pages and lists by `start`, records within an object, transactional sends."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

#: entity → path of its list without pages
WHOLE = {
    "campaigns": "/v1/campaigns",
    "segments": "/v1/segments",
    "snippets": "/v1/snippets",
    "collections": "/v1/collections",
    "reporting_webhooks": "/v1/reporting_webhooks",
    "exports": "/v1/exports",
    "transactional_messages": "/v1/transactional",
}
#: entity → path of its list with pages, and the size that is sent
PAGED: dict[str, tuple[str, dict[str, str]]] = {
    "newsletters": ("/v1/newsletters", {"limit": "100"}),
    "messages": ("/v1/messages", {"limit": "50"}),
    "activities": ("/v1/activities", {"limit": "10"}),
    "sender_identities": ("/v1/sender_identities", {}),
}
#: entity → param of get, and path
RECORDS = {
    "campaigns": ("campaign_id", "/v1/campaigns/7"),
    "newsletters": ("newsletter_id", "/v1/newsletters/7"),
    "segments": ("segment_id", "/v1/segments/7"),
    "sender_identities": ("sender_id", "/v1/sender_identities/7"),
    "collections": ("collection_id", "/v1/collections/7"),
    "reporting_webhooks": ("webhook_id", "/v1/reporting_webhooks/7"),
    "exports": ("export_id", "/v1/exports/7"),
    "transactional_messages": ("transactional_id", "/v1/transactional/7"),
}
ADA = {"identifiers": {"email": "ada@example.com"}}
HOOK = {"name": "Bounces", "endpoint": "https://hooks.example.com/cio", "events": ["email_bounced"]}
FILTERS = {"filters": {"and": [{"segment": {"id": 3}}]}}
SEGMENT = {"segment": {"name": "Testers"}}
SNIPPET = {"name": "footer", "value": "Bye"}
EMAIL = {"transactional_message_id": "receipt", "to": "ada@example.com", **ADA}
SMS = {"transactional_message_id": 8, "to": "+15005550006", **ADA}
PUSH = {"transactional_message_id": 10, "to": "last_used", **ADA}
INBOX = {"transactional_message_id": 11, **ADA}


def sent(action: str, params: dict[str, Any], path: str, body: Any, method: str = "POST") -> Call:
    return Call(action, params, path, method=method, body=body)


CALLS = [
    *(Call(f"{entity}.list", {}, path) for entity, path in WHOLE.items()),
    *(Call(f"{entity}.list", {}, path, size) for entity, (path, size) in PAGED.items()),
    *(
        Call(f"{entity}.list", {"limit": 5, "start": "s1"}, path, {"limit": "5", "start": "s1"})
        for entity, (path, _) in PAGED.items()
    ),
    *(Call(f"{entity}.get", {name: 7}, path) for entity, (name, path) in RECORDS.items()),
    Call("campaign_actions.list", {"campaign_id": 7}, "/v1/campaigns/7/actions"),
    Call("campaign_actions.list", {"campaign_id": 7, "start": "s1"}, "/v1/campaigns/7/actions", {"start": "s1"}),
    Call("campaign_actions.get", {"campaign_id": 7, "action_id": 38}, "/v1/campaigns/7/actions/38"),
    Call("newsletters.list", {"sort": "desc"}, "/v1/newsletters", {"limit": "100", "sort": "desc"}),
    Call("messages.list", {"type": "email", "metric": "bounced", "campaign_id": 7, "newsletter_id": 8}, "/v1/messages",
         {"limit": "50", "type": "email", "metric": "bounced", "campaign_id": "7", "newsletter_id": "8"}),
    Call("activities.list", {"type": "event", "name": "purchase"}, "/v1/activities",
         {"limit": "10", "type": "event", "name": "purchase"}),
    Call("messages.get", {"message_id": "dgOq"}, "/v1/messages/dgOq"),
    Call("transactional_message_contents.list", {"transactional_id": 6}, "/v1/transactional/6/contents"),
    sent("segments.create", SEGMENT, "/v1/segments", SEGMENT),
    sent("snippets.create", SNIPPET, "/v1/snippets", SNIPPET),
    sent("snippets.update", SNIPPET, "/v1/snippets", SNIPPET, "PUT"),
    sent("collections.create", {"name": "p", "data": [{"sku": "a"}]}, "/v1/collections",
         {"name": "p", "data": [{"sku": "a"}]}),
    sent("collections.update", {"collection_id": 5, "url": "https://files.example.com/p.csv"}, "/v1/collections/5",
         {"url": "https://files.example.com/p.csv"}, "PUT"),
    sent("reporting_webhooks.create", HOOK, "/v1/reporting_webhooks", HOOK),
    sent("reporting_webhooks.update", {"webhook_id": 9, **HOOK, "disabled": True}, "/v1/reporting_webhooks/9",
         {**HOOK, "disabled": True}, "PUT"),
    sent("exports.create", FILTERS, "/v1/exports/customers", FILTERS),
    sent("transactional_message_contents.update", {"transactional_id": 6, "content_id": 14, "subject": "Hi"},
         "/v1/transactional/6/content/14", {"subject": "Hi"}, "PUT"),
    sent("transactional_email.create", EMAIL, "/v1/send/email", EMAIL),
    sent("transactional_sms.create", SMS, "/v1/send/sms", SMS),
    sent("transactional_push.create", PUSH, "/v1/send/push", PUSH),
    sent("transactional_inbox_message.create", INBOX, "/v1/send/inbox_message", INBOX),
    sent("broadcast_trigger.create", {"campaign_id": 7, "emails": ["a@b.c"], "data": {"x": 1}},
         "/v1/campaigns/7/triggers", {"emails": ["a@b.c"], "data": {"x": 1}}),
]  # fmt: skip
REFUSED = [
    Refused("messages.list", {"limit": 101}, "limit", "at most 100"),
    Refused("messages.list", {"metric": "seen"}, "metric", "opened"),
    Refused("segments.create", {"segment": {}}, "segment.name", "name is missing"),
    Refused("transactional_email.create", {"to": "a@b.c", **ADA}, "", "transactional_message_id"),
    Refused("transactional_sms.create", {**SMS, "identifiers": {}}, "identifiers", "at least 1"),
]
ANSWERS = [
    Answer("campaigns.list", {"campaigns": [{"id": 7}]}, [{"id": 7}], None),
    Answer("campaigns.get", {"campaign": {"id": 7, "name": "Welcome"}}, {"id": 7, "name": "Welcome"}, None),
    Answer("newsletters.list", {"newsletters": [{"id": 1}], "next": "s1"}, [{"id": 1}], {"next": "s1"}),
    Answer("messages.list", {"messages": [], "next": ""}, [], {"next": None}),
    Answer("transactional_messages.list", {"messages": [{"id": 6}]}, [{"id": 6}], None),
    Answer("transactional_email.create", {"delivery_id": "d", "queued_at": 1},
           {"delivery_id": "d", "queued_at": 1}, None),
    Answer("segments.create", {"segment": {"id": 4, "name": "Testers"}}, {"id": 4, "name": "Testers"}, None),
]  # fmt: skip
FAILURES = [
    Failure("campaigns.get", status, {"errors": [{"detail": "It failed", "status": str(status)}]}, error, str(status),
            "It failed", **more)
    for status, error, more in [
        (400, UpstreamRejected, {}),
        (401, ReauthorizationRequired, {}),
        (404, UpstreamNotFound, {}),
        (422, UpstreamRejected, {}),
        (429, UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, UpstreamError, {}),
    ]
]  # fmt: skip
FAILURES += [
    Failure("campaigns.list", 401, {"meta": {"error": "Unauthorized"}}, ReauthorizationRequired, None, "Unauthorized"),
]
PAGES = [
    Pages(
        "newsletters.list",
        {"limit": 1},
        [{"newsletters": [{"id": 2}], "next": "s1"}, {"newsletters": [{"id": 1}], "next": ""}],
        [[{"id": 2}], [{"id": 1}]],
        ["/v1/newsletters?limit=1", "/v1/newsletters?start=s1&limit=1"],
    ),
]
CASES = Cases(
    "customer-io",
    "https://api.customer.io",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"app_api_key": "t"}, "Bearer t")],
    check=("/v1/campaigns", {"campaigns": []}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "app_api_key")],
)
