"""The cases of SendGrid: tokens in links, offsets in the Link header, a map of what was found, mail."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID, ADA = "47ab1c6e", "ada@example.com"
#: entity → path of its list, and the default size of its pages
TOKENS = {
    "lists": ("/v3/marketing/lists", "100"),
    "campaigns": ("/v3/marketing/campaigns", "50"),
    "singlesends": ("/v3/marketing/singlesends", "50"),
    "singlesend_stats": ("/v3/marketing/stats/singlesends", "50"),
}
#: entity → path of its list, and of one of its records
SUPPRESSIONS = {
    "bounces": ("/v3/suppression/bounces", "/v3/suppression/bounces"),
    "blocks": ("/v3/suppression/blocks", "/v3/suppression/blocks"),
    "spam_reports": ("/v3/suppression/spam_reports", "/v3/suppression/spam_reports"),
    "invalid_emails": ("/v3/suppression/invalid_emails", "/v3/suppression/invalid_emails"),
    "global_suppressions": ("/v3/suppression/unsubscribes", "/v3/asm/suppressions/global"),
}
GENERATIONS = {"generations": "legacy,dynamic"}
MAIL = {
    "personalizations": [{"to": [{"email": ADA}]}],
    "from": {"email": "shop@example.com"},
    "subject": "Order",
    "content": [{"type": "text/plain", "value": "Thanks"}],
}


def sent(action: str, params: dict[str, Any], path: str, body: Any = None, method: str = "POST") -> Call:
    return Call(action, params, path, method=method, body=body)


CALLS = [
    *(Call(f"{entity}.list", {}, path, {"page_size": size}) for entity, (path, size) in TOKENS.items()),
    *(
        Call(f"{entity}.list", {"page_size": 5, "page_token": "t1"}, path, {"page_size": "5", "page_token": "t1"})
        for entity, (path, _) in TOKENS.items()
    ),
    *(Call(f"{entity}.list", {}, path, {"limit": "500"}) for entity, (path, _) in SUPPRESSIONS.items()),
    *(
        Call(f"{entity}.list", {"limit": 5, "offset": 10}, path, {"limit": "5", "offset": "10"})
        for entity, (path, _) in SUPPRESSIONS.items()
    ),
    *(sent(f"{entity}.delete", {"email": ADA}, f"{path}/{ADA}", method="DELETE")
      for entity, (_, path) in SUPPRESSIONS.items()),
    Call("bounces.list", {"start_time": 1, "end_time": 2, "email": ADA}, "/v3/suppression/bounces",
         {"limit": "500", "start_time": "1", "end_time": "2", "email": ADA}),
    Call("templates.list", {}, "/v3/templates", {**GENERATIONS, "page_size": "50"}),
    Call("templates.list", {"generations": "dynamic", "page_size": 5}, "/v3/templates",
         {"generations": "dynamic", "page_size": "5"}),
    Call("contacts.list", {}, "/v3/marketing/contacts"),
    Call("segments.list", {}, "/v3/marketing/segments/2.0"),
    Call("suppression_groups.list", {}, "/v3/asm/groups"),
    Call("suppression_group_members.list", {"offset": 500}, "/v3/asm/suppressions", {"limit": "500", "offset": "500"}),
    Call("contacts.get", {"id": ID}, f"/v3/marketing/contacts/{ID}"),
    Call("lists.get", {"id": ID}, f"/v3/marketing/lists/{ID}"),
    Call("segments.get", {"segment_id": ID}, f"/v3/marketing/segments/2.0/{ID}"),
    Call("singlesends.get", {"id": ID}, f"/v3/marketing/singlesends/{ID}"),
    Call("templates.get", {"template_id": "d-1"}, "/v3/templates/d-1"),
    Call("suppression_groups.get", {"group_id": 7}, "/v3/asm/groups/7"),
    sent("contacts.api_search", {"query": "city = 'Rome'"}, "/v3/marketing/contacts/search",
         {"query": "city = 'Rome'"}),
    sent("contacts.find_by_emails", {"emails": [ADA]}, "/v3/marketing/contacts/search/emails", {"emails": [ADA]}),
    sent("contacts.create", {"contacts": [{"email": ADA}], "list_ids": [ID]}, "/v3/marketing/contacts",
         {"contacts": [{"email": ADA}], "list_ids": [ID]}, "PUT"),
    Call("contacts.delete", {"ids": ["a", "b"]}, "/v3/marketing/contacts", {"ids": "a,b"}, "DELETE"),
    sent("lists.create", {"name": "News"}, "/v3/marketing/lists", {"name": "News"}),
    sent("lists.update", {"id": ID, "name": "News"}, f"/v3/marketing/lists/{ID}", {"name": "News"}, "PATCH"),
    Call("lists.delete", {"id": ID, "delete_contacts": True}, f"/v3/marketing/lists/{ID}", {"delete_contacts": "true"},
         "DELETE"),
    Call("lists.remove_contacts", {"id": ID, "contact_ids": ["a", "b"]}, f"/v3/marketing/lists/{ID}/contacts",
         {"contact_ids": "a,b"}, "DELETE"),
    sent("segments.create", {"name": "Romans", "query_dsl": "SELECT 1"}, "/v3/marketing/segments/2.0",
         {"name": "Romans", "query_dsl": "SELECT 1"}),
    sent("singlesends.create", {"name": "May", "send_to": {"all": True}}, "/v3/marketing/singlesends",
         {"name": "May", "send_to": {"all": True}}),
    sent("singlesends.update", {"id": ID, "name": "June"}, f"/v3/marketing/singlesends/{ID}", {"name": "June"},
         "PATCH"),
    sent("singlesends.schedule", {"id": ID, "send_at": "now"}, f"/v3/marketing/singlesends/{ID}/schedule",
         {"send_at": "now"}, "PUT"),
    sent("singlesends.unschedule", {"id": ID}, f"/v3/marketing/singlesends/{ID}/schedule", method="DELETE"),
    sent("singlesends.delete", {"id": ID}, f"/v3/marketing/singlesends/{ID}", method="DELETE"),
    sent("templates.create", {"name": "Receipt"}, "/v3/templates", {"name": "Receipt", "generation": "dynamic"}),
    sent("templates.create_version", {"template_id": "d-1", "name": "First", "subject": "Hi", "active": 1},
         "/v3/templates/d-1/versions", {"name": "First", "subject": "Hi", "active": 1}),
    sent("global_suppressions.create", {"recipient_emails": [ADA]}, "/v3/asm/suppressions/global",
         {"recipient_emails": [ADA]}),
    sent("suppression_groups.create", {"name": "News", "description": "What is new"}, "/v3/asm/groups",
         {"name": "News", "description": "What is new"}),
    sent("suppression_group_members.create", {"group_id": 7, "recipient_emails": [ADA]},
         "/v3/asm/groups/7/suppressions", {"recipient_emails": [ADA]}),
    sent("suppression_group_members.delete", {"group_id": 7, "email": ADA}, f"/v3/asm/groups/7/suppressions/{ADA}",
         method="DELETE"),
    sent("mail.send", MAIL, "/v3/mail/send", MAIL),
]  # fmt: skip
REFUSED = [
    Refused("lists.list", {"page_size": 1001}, "page_size", "at most 1000"),
    Refused("singlesend_stats.list", {"page_size": 51}, "page_size", "at most 50"),
    Refused("bounces.list", {"limit": 501}, "limit", "at most 500"),
    Refused("singlesends.schedule", {"id": ID, "send_at": "tomorrow"}, "send_at", "must match"),
    Refused("mail.send", {"personalizations": MAIL["personalizations"], "from": MAIL["from"]}, "", "content"),
    Refused("mail.send", {"from": MAIL["from"], "template_id": "d-1"}, "personalizations",
            "personalizations is missing"),
]  # fmt: skip
NEXT = "https://api.sendgrid.com/v3/marketing/lists?page_size=1&page_token=t1"
BOUNCE = {"created": 1, "email": ADA, "reason": "550", "status": "5.1.1"}
ANSWERS = [
    Answer("lists.list", {"result": [{"id": ID}], "_metadata": {"next": NEXT}}, [{"id": ID}], {"next": NEXT}),
    # The SDK reads templates, which the application sends only without page_size.
    Answer("templates.list", {"result": [], "_metadata": {"count": 0}}, [], {"next": None}),
    Answer("segments.list", {"results": [{"id": ID}]}, [{"id": ID}], None),
    Answer("contacts.list", {"result": [{"id": ID}], "contact_count": 70}, [{"id": ID}],
           {"next": None, "contact_count": 70}),
    Answer("contacts.find_by_emails", {"result": {ADA: {"contact": {"id": ID}}}},
           [{"searched_email": ADA, "contact": {"id": ID}}], None),
    Answer("bounces.list", [BOUNCE], [BOUNCE], {"next": None}),
    Answer("suppression_groups.get", {"id": 7, "name": "News"}, {"id": 7, "name": "News"}, None),
]  # fmt: skip
FAILURES = [
    Failure("lists.get", status, {"errors": [{"message": "It failed", "field": "id", "error_id": code}]}, error, code,
            "It failed", field="id", **more)
    for status, code, error, more in [
        (400, "bad_request", UpstreamRejected, {}),
        (401, "unauthorized", ReauthorizationRequired, {}),
        (403, "forbidden", UpstreamRejected, {}),
        (404, "not_found", UpstreamNotFound, {}),
        (429, "too_many", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "internal", UpstreamError, {}),
    ]
]  # fmt: skip
FAILURES += [
    Failure("templates.get", 404, {"error": "template not found"}, UpstreamNotFound, None, "template not found"),
]
PAGES = [
    Pages(
        "lists.list",
        {"page_size": 1},
        [
            {"result": [{"id": "2"}], "_metadata": {"next": NEXT}},
            {"result": [{"id": "1"}], "_metadata": {"count": 2}},
        ],
        [[{"id": "2"}], [{"id": "1"}]],
        ["/v3/marketing/lists?page_size=1", "/v3/marketing/lists?page_size=1&page_token=t1"],
    ),
    Pages(
        "bounces.list",
        {"limit": 1},
        [[BOUNCE], [{**BOUNCE, "email": "b@example.com"}]],
        [[BOUNCE], [{**BOUNCE, "email": "b@example.com"}]],
        ["/v3/suppression/bounces?limit=1", "/v3/suppression/bounces?limit=1&offset=1"],
        headers=[{"Link": '<https://api.sendgrid.com/v3/suppression/bounces?limit=1&offset=1>; rel="next"; title="2"'}],
    ),
]
CASES = Cases(
    "sendgrid",
    "https://api.sendgrid.com",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"api_key": "SG.t"}, "Bearer SG.t")],
    check=("/v3/templates?generations=legacy%2Cdynamic&page_size=1", {"result": [], "_metadata": {"count": 0}}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "api_key")],
)
