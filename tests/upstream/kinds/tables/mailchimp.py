"""The cases of Mailchimp: an address that names the data center, offsets with a total, lists within lists."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

LIST, CAMPAIGN, ADA = "a1b2c3d4e5", "42694e9e57", "ada@example.com"
IN_LIST: dict[str, Any] = {"list_id": LIST}
OF_CAMPAIGN = {"campaign_id": CAMPAIGN}
CATEGORY = {**IN_LIST, "interest_category_id": "cat1"}
SEGMENT = {**IN_LIST, "segment_id": "17"}
MEMBER = {**IN_LIST, "subscriber_hash": ADA}
SINCE = {"since_send_time": "2026-02-01T00:00:00Z"}
PAGE = {"count": "10"}
#: entity → params that name what its records lie in, and the path of the list
LISTS: dict[str, tuple[dict[str, Any], str]] = {
    "campaigns": ({}, "/campaigns"),
    "lists": ({}, "/lists"),
    "list_members": (IN_LIST, f"/lists/{LIST}/members"),
    "reports": ({}, "/reports"),
    "email_activity": (OF_CAMPAIGN, f"/reports/{CAMPAIGN}/email-activity"),
    "automations": ({}, "/automations"),
    "interest_categories": (IN_LIST, f"/lists/{LIST}/interest-categories"),
    "interests": (CATEGORY, f"/lists/{LIST}/interest-categories/cat1/interests"),
    "segments": (IN_LIST, f"/lists/{LIST}/segments"),
    "segment_members": (SEGMENT, f"/lists/{LIST}/segments/17/members"),
    "unsubscribes": (OF_CAMPAIGN, f"/reports/{CAMPAIGN}/unsubscribed"),
}
SETTINGS = {"settings": {"subject_line": "News"}}


def sent(action: str, params: dict[str, Any], path: str, body: Any = None, method: str = "POST") -> Call:
    return Call(action, params, path, method=method, body=body)


CALLS = [
    *(Call(f"{entity}.list", place, path, PAGE) for entity, (place, path) in LISTS.items()),
    *(
        Call(f"{entity}.list", {**place, "count": 5, "offset": 10}, path, {"count": "5", "offset": "10"})
        for entity, (place, path) in LISTS.items()
    ),
    Call("campaigns.list", {"status": "sent", "sort_field": "send_time", "sort_dir": "DESC", **SINCE}, "/campaigns",
         {**PAGE, "status": "sent", "sort_field": "send_time", "sort_dir": "DESC", **SINCE}),
    Call("list_members.list", {**IN_LIST, "vip_only": True, "interest_match": "all"}, f"/lists/{LIST}/members",
         {**PAGE, "vip_only": "true", "interest_match": "all"}),
    Call("tags.list", {**IN_LIST, "name": "buy"}, f"/lists/{LIST}/tag-search", {"name": "buy"}),
    Call("campaigns.get", OF_CAMPAIGN, f"/campaigns/{CAMPAIGN}"),
    Call("lists.get", IN_LIST, f"/lists/{LIST}"),
    Call("list_members.get", {**IN_LIST, "subscriber_hash": "5ee2"}, f"/lists/{LIST}/members/5ee2"),
    Call("reports.get", OF_CAMPAIGN, f"/reports/{CAMPAIGN}"),
    Call("interest_categories.get", CATEGORY, f"/lists/{LIST}/interest-categories/cat1"),
    Call("interests.get", {**CATEGORY, "interest_id": "i"}, f"/lists/{LIST}/interest-categories/cat1/interests/i"),
    Call("segments.get", SEGMENT, f"/lists/{LIST}/segments/17"),
    sent("campaigns.create", {"type": "regular", "recipients": IN_LIST, **SETTINGS}, "/campaigns",
         {"type": "regular", "recipients": IN_LIST, **SETTINGS}),
    sent("campaigns.update", {**OF_CAMPAIGN, **SETTINGS}, f"/campaigns/{CAMPAIGN}", SETTINGS, "PATCH"),
    sent("campaigns.set_content", {**OF_CAMPAIGN, "html": "<p>Hi</p>"}, f"/campaigns/{CAMPAIGN}/content",
         {"html": "<p>Hi</p>"}, "PUT"),
    sent("campaigns.send", OF_CAMPAIGN, f"/campaigns/{CAMPAIGN}/actions/send"),
    sent("campaigns.schedule", {**OF_CAMPAIGN, "schedule_time": "2026-05-04T09:15:00Z"},
         f"/campaigns/{CAMPAIGN}/actions/schedule", {"schedule_time": "2026-05-04T09:15:00Z"}),
    sent("campaigns.unschedule", OF_CAMPAIGN, f"/campaigns/{CAMPAIGN}/actions/unschedule"),
    sent("campaigns.send_test", {**OF_CAMPAIGN, "test_emails": [ADA]}, f"/campaigns/{CAMPAIGN}/actions/test",
         {"test_emails": [ADA], "send_type": "html"}),
    sent("list_members.create", {**IN_LIST, "email_address": ADA, "status": "pending", "tags": ["buyer"]},
         f"/lists/{LIST}/members", {"email_address": ADA, "status": "pending", "tags": ["buyer"]}),
    sent("list_members.update", {**IN_LIST, "subscriber_hash": "5ee2", "status": "unsubscribed"},
         f"/lists/{LIST}/members/5ee2", {"status": "unsubscribed"}, "PATCH"),
    sent("list_members.archive", {**IN_LIST, "subscriber_hash": "5ee2"}, f"/lists/{LIST}/members/5ee2",
         method="DELETE"),
    sent("list_members.set_tags", {**IN_LIST, "subscriber_hash": "5ee2", "tags": [{"name": "b", "status": "active"}]},
         f"/lists/{LIST}/members/5ee2/tags", {"tags": [{"name": "b", "status": "active"}]}),
    sent("list_members.add_note", {**IN_LIST, "subscriber_hash": "5ee2", "note": "Met"},
         f"/lists/{LIST}/members/5ee2/notes", {"note": "Met"}),
    sent("segments.create", {**IN_LIST, "name": "Buyers", "static_segment": []}, f"/lists/{LIST}/segments",
         {"name": "Buyers", "static_segment": []}),
    sent("segment_members.add", {**SEGMENT, "email_address": ADA}, f"/lists/{LIST}/segments/17/members",
         {"email_address": ADA}),
    sent("segment_members.remove", {**SEGMENT, "subscriber_hash": "5ee2"}, f"/lists/{LIST}/segments/17/members/5ee2",
         method="DELETE"),
]  # fmt: skip
REFUSED = [
    Refused("campaigns.list", {"count": 1001}, "count", "at most 1000"),
    Refused("campaigns.list", {"status": "draft"}, "status", "schedule"),
    Refused("campaigns.update", OF_CAMPAIGN, "", "at least 2"),
    Refused("list_members.list", {}, "list_id", "list_id is missing"),
    Refused("list_members.create", {**IN_LIST, "email_address": ADA}, "status", "status is missing"),
    Refused("list_members.set_tags", {**MEMBER, "tags": []}, "tags", "at least 1"),
]
LINKS = [{"rel": "self", "href": "https://us6.api.mailchimp.com/3.0/campaigns", "method": "GET"}]
ANSWERS = [
    Answer("campaigns.list", {"campaigns": [{"id": CAMPAIGN}], "total_items": 1, "_links": LINKS}, [{"id": CAMPAIGN}],
           {"links": LINKS, "total_items": 1}),
    Answer("interest_categories.list", {"list_id": LIST, "categories": [], "total_items": 0}, [],
           {"links": None, "total_items": 0}),
    Answer("email_activity.list", {"emails": [{"email_id": "5ee2", "activity": []}], "total_items": 1},
           [{"email_id": "5ee2", "activity": []}], {"links": None, "total_items": 1}),
    Answer("tags.list", {"tags": [{"id": 1, "name": "buyer"}], "total_items": 1}, [{"id": 1, "name": "buyer"}], None),
    Answer("lists.get", {"id": LIST, "name": "News"}, {"id": LIST, "name": "News"}, None),
]  # fmt: skip
FAILURES = [
    Failure("campaigns.get", status, {"type": "https://mailchimp.com/developer/marketing/docs/errors/", "title": title,
            "status": status, "detail": "It failed", "instance": "r1"}, error, title, "It failed", "r1", **more)
    for status, title, error, more in [
        (400, "Bad Request", UpstreamRejected, {}),
        (401, "API Key Invalid", ReauthorizationRequired, {}),
        (403, "Forbidden", UpstreamRejected, {}),
        (404, "Resource Not Found", UpstreamNotFound, {}),
        (429, "Too Many Requests", UpstreamRateLimited, {"retry_after": 60}),
        (500, "Internal Server Error", UpstreamError, {}),
    ]
]  # fmt: skip
INVALID = {"field": "email_address", "message": "is not an address"}
FAILURES += [
    Failure("list_members.create", 400, {"title": "Invalid Resource", "detail": "It failed", "instance": "r1",
            "errors": [INVALID]}, UpstreamRejected, "Invalid Resource", "It failed; is not an address", "r1",
            "email_address"),
]  # fmt: skip
PAGES = [
    Pages(
        "campaigns.list",
        {"count": 1},
        [{"campaigns": [{"id": "2"}], "total_items": 2}, {"campaigns": [{"id": "1"}], "total_items": 2}],
        [[{"id": "2"}], [{"id": "1"}]],
        ["/3.0/campaigns?count=1", "/3.0/campaigns?count=1&offset=1"],
    ),
]
CASES = Cases(
    "mailchimp",
    "https://us6.api.mailchimp.com/3.0",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"api_key": "t-us6"}, "Basic YW55c3RyaW5nOnQtdXM2")],
    check=("/3.0/campaigns?count=1", {"campaigns": [], "total_items": 0}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "api_key")],
    environment={"data_center": "us6"},
)
