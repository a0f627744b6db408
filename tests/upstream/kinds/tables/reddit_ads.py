"""The cases of Reddit Ads: lists by links with page.token, bodies within data."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ACCOUNT, ID = "t2_abc123", "1234567890"
IN = {"ad_account_id": ACCOUNT}
SIZE = {"page.size": "100"}
TURNED = {"page.size": 5, "page.token": "p2"}
SPAN = {"starts_at": "2026-01-01T00:00:00Z", "ends_at": "2026-02-01T00:00:00Z"}
METRICS = ["IMPRESSIONS", "CLICKS", "SPEND", "CTR", "CPC"]
NAMED = {"name": "Spring", "objective": "CLICKS", "configured_status": "PAUSED"}
CALLS = [
    Call("businesses.list", {}, "/me/businesses", SIZE),
    Call("businesses.list", TURNED, "/me/businesses", {"page.size": "5", "page.token": "p2"}),
    Call("ad_accounts.list", {"business_id": "b1"}, "/businesses/b1/ad_accounts", SIZE),
    Call("ad_accounts.get", IN, f"/ad_accounts/{ACCOUNT}"),
    *(Call(f"{entity}.list", IN, f"/ad_accounts/{ACCOUNT}/{entity}", SIZE)
      for entity in ("campaigns", "ad_groups", "ads")),
    *(Call(f"{entity}.get", {f"{entity[:-1]}_id": ID}, f"/{entity}/{ID}")
      for entity in ("campaigns", "ad_groups", "ads")),
    Call("campaigns.list", {**IN, "id": ["1", "2"]}, f"/ad_accounts/{ACCOUNT}/campaigns", {"id": "1,2", **SIZE}),
    Call("ad_groups.list", {**IN, "campaign_id": ID}, f"/ad_accounts/{ACCOUNT}/ad_groups",
         {"campaign_id": ID, **SIZE}),
    Call("ads.list", {**IN, "configured_status": ["ACTIVE", "PAUSED"], "effective_status": ["REJECTED"],
                      "campaign_id": [ID], "ad_group_id": ["2"]}, f"/ad_accounts/{ACCOUNT}/ads",
         {"configured_status": "ACTIVE,PAUSED", "effective_status": "REJECTED", "campaign_id": ID,
          "ad_group_id": "2", **SIZE}),
    Call("campaigns.create", {**IN, **NAMED, "goal_type": "DAILY_SPEND", "goal_value": 5_000_000},
         f"/ad_accounts/{ACCOUNT}/campaigns", method="POST",
         body={"data": {**NAMED, "goal_type": "DAILY_SPEND", "goal_value": 5_000_000}}),
    Call("campaigns.update", {"campaign_id": ID, "configured_status": "PAUSED"}, f"/campaigns/{ID}", method="PATCH",
         body={"data": {"configured_status": "PAUSED"}}),
    Call("ad_groups.update", {"ad_group_id": ID, "bid_value": 1_500_000, "targeting": {"communities": ["python"]}},
         f"/ad_groups/{ID}", method="PATCH",
         body={"data": {"bid_value": 1_500_000, "targeting": {"communities": ["python"]}}}),
    Call("ads.update", {"ad_id": ID, "name": "Blue"}, f"/ads/{ID}", method="PATCH", body={"data": {"name": "Blue"}}),
    Call("reports.list", {**IN, **SPAN}, f"/ad_accounts/{ACCOUNT}/reports", SIZE, method="POST",
         body={"data": {**SPAN, "fields": METRICS}}),
    Call("reports.list", {**IN, **SPAN, "fields": ["SPEND"], "breakdowns": ["DATE"], "page.token": "p2"},
         f"/ad_accounts/{ACCOUNT}/reports", {**SIZE, "page.token": "p2"}, method="POST",
         body={"data": {**SPAN, "fields": ["SPEND"], "breakdowns": ["DATE"]}}),
]  # fmt: skip
REFUSED = [
    Refused("businesses.list", {"page.size": 1001}, "page.size", "at most 1000"),
    Refused("campaigns.list", {}, "ad_account_id", "ad_account_id is missing"),
    Refused("campaigns.create", {**IN, **NAMED, "objective": "FAME"}, "objective", "CLICKS"),
    Refused("campaigns.update", {"campaign_id": ID}, "", "at least 2 members"),
    Refused("ads.list", {**IN, "configured_status": ["SLEEPING"]}, "configured_status.0", "PAUSED"),
    Refused("reports.list", {**IN, **SPAN, "ends_at": "today"}, "ends_at", "date-time"),
]
NEXT = f"https://ads-api.reddit.com/api/v3/ad_accounts/{ACCOUNT}/campaigns?page.size=1&page.token=p2"
MORE, LAST = {"pagination": {"next_url": NEXT}}, {"pagination": {"next_url": None}}
ANSWERS = [
    Answer("campaigns.list", {"data": [{"id": ID}], **MORE}, [{"id": ID}], {"next_link": NEXT}),
    Answer("ads.list", {"data": [], "pagination": {}}, [], {"next_link": None}),
    Answer("campaigns.get", {"data": {"id": ID, "name": "Spring"}}, {"id": ID, "name": "Spring"}, None),
    Answer("reports.list", {"data": {"metrics": [{"clicks": 5}]}, **LAST}, [{"clicks": 5}], {"next_link": None}),
]
FAILURES = [
    Failure("campaigns.update", status, {"error": {"code": status, "message": "It failed"}}, error, str(status),
            "It failed", **more)
    for status, error, more in [
        (401, ReauthorizationRequired, {}),
        (403, UpstreamRejected, {}),
        (404, UpstreamNotFound, {}),
        (429, UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, UpstreamError, {}),
    ]
] + [
    Failure("campaigns.update", 400, {"error": {"code": 400, "message": "It failed",
            "fields": [{"field": "name", "message": "It failed"}]}}, UpstreamRejected, "400", "It failed",
            field="name"),
]  # fmt: skip
PAGES = [
    Pages(
        "campaigns.list",
        {**IN, "page.size": 1},
        [{"data": [{"id": "2"}], **MORE}, {"data": [{"id": "1"}], **LAST}],
        [[{"id": "2"}], [{"id": "1"}]],
        [
            f"/api/v3/ad_accounts/{ACCOUNT}/campaigns?page.size=1",
            f"/api/v3/ad_accounts/{ACCOUNT}/campaigns?page.size=1&page.token=p2",
        ],
    ),
]
TOKENS = {"refresh_token": "r", "access_token": "t", "client_id": "app", "client_secret": "s"}
CASES = Cases(
    "reddit-ads",
    "https://ads-api.reddit.com/api/v3",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(TOKENS, "Bearer t")],
    check=("/api/v3/me/businesses?page.size=1", {"data": [], **LAST}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"access_token": "t"}, "refresh_token")],
)
