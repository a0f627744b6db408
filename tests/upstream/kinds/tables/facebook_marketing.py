"""The cases of Facebook Marketing: cursors, forms, ids as whole paths, errors with subcodes."""

from functools import partial
from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamBusy,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.kinds.members import FORM
from tests.harness.catalog import shipped_catalog
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ACCOUNT, ID = "1234567890", "42"
IN = {"account_id": ACCOUNT}
PAGE = {"limit": "25"}
#: entity → the application's name of its collection
EDGES = {
    "campaigns": "campaigns",
    "ad_sets": "adsets",
    "ads": "ads",
    "ad_creatives": "adcreatives",
    "custom_conversions": "customconversions",
    "images": "adimages",
    "videos": "advideos",
    "pixels": "adspixels",
}
OBJECTS = {"campaigns": "campaign_id", "ad_sets": "adset_id", "ads": "ad_id", "pixels": "pixel_id"}
LIBRARY = {"ad_type": "ALL", "ad_active_status": "ACTIVE", "search_type": "KEYWORD_UNORDERED"}
TARGETING = '{"geo_locations":{"countries":["US"]}}'
WEEK = '{"since":"2026-01-01","until":"2026-01-07"}'


def usual(entity: str, action: str = "list") -> dict[str, Any]:
    """The members that are requested by default."""
    params = shipped_catalog().kind("facebook-marketing").operation(entity, action).action.params
    return {"fields": params["fields"]["default"]}


write = partial(Call, method="POST", content_type=FORM)
CALLS = [
    Call("current_user.get", {}, "/me", {"fields": "id,name"}),
    Call("ad_accounts.list", {}, "/me/adaccounts", {**usual("ad_accounts"), **PAGE}),
    Call("ad_accounts.get", IN, f"/act_{ACCOUNT}", usual("ad_accounts", "get")),
    *(Call(f"{entity}.list", IN, f"/act_{ACCOUNT}/{edge}", {**usual(entity), **PAGE})
      for entity, edge in EDGES.items()),
    *(Call(f"{entity}.get", {named: ID}, f"/{ID}", usual(entity, "get")) for entity, named in OBJECTS.items()),
    Call("campaigns.list", {**IN, "fields": "id", "limit": 5, "after": "c1"}, f"/act_{ACCOUNT}/campaigns",
         {"fields": "id", "limit": "5", "after": "c1"}),
    Call("ads_insights.list", {**IN, "level": "campaign", "date_preset": "last_7d", "time_increment": "1"},
         f"/act_{ACCOUNT}/insights",
         {**usual("ads_insights"), "level": "campaign", "date_preset": "last_7d", "time_increment": "1", **PAGE}),
    Call("ads_insights.list", {**IN, "time_range": WEEK}, f"/act_{ACCOUNT}/insights",
         {**usual("ads_insights"), "level": "account", "time_range": WEEK, **PAGE}),
    Call("pixel_stats.list", {"pixel_id": ID, "start_time": "2026-01-01"}, f"/{ID}/stats",
         {"aggregation": "event", "start_time": "2026-01-01"}),
    Call("ad_library.list", {"ad_reached_countries": "US", "search_terms": "coffee"}, "/ads_archive",
         {"ad_reached_countries": "US", "search_terms": "coffee", **LIBRARY, **usual("ad_library"), **PAGE}),
    write("campaigns.create", {**IN, "name": "Spring", "objective": "OUTCOME_TRAFFIC", "status": "PAUSED",
                               "special_ad_categories": "[]", "is_adset_budget_sharing_enabled": False},
          f"/act_{ACCOUNT}/campaigns",
          body="name=Spring&objective=OUTCOME_TRAFFIC&status=PAUSED&special_ad_categories=[]"
               "&is_adset_budget_sharing_enabled=false"),
    write("campaigns.update", {"campaign_id": ID, "status": "PAUSED"}, f"/{ID}", body="status=PAUSED"),
    write("ad_sets.create", {**IN, "name": "Readers", "campaign_id": "7", "daily_budget": "5000",
                             "billing_event": "IMPRESSIONS", "optimization_goal": "LINK_CLICKS",
                             "targeting": TARGETING, "status": "PAUSED"}, f"/act_{ACCOUNT}/adsets",
          body="name=Readers&campaign_id=7&daily_budget=5000&billing_event=IMPRESSIONS&optimization_goal=LINK_CLICKS"
               f"&targeting={TARGETING}&status=PAUSED"),
    write("ad_sets.update", {"adset_id": ID, "daily_budget": "10000"}, f"/{ID}", body="daily_budget=10000"),
    write("ads.create", {**IN, "name": "Blue", "adset_id": "8", "creative": '{"creative_id":"3"}', "status": "PAUSED"},
          f"/act_{ACCOUNT}/ads", body='name=Blue&adset_id=8&creative={"creative_id":"3"}&status=PAUSED'),
    write("ads.update", {"ad_id": ID, "name": "Red"}, f"/{ID}", body="name=Red"),
]  # fmt: skip
REFUSED = [
    Refused("campaigns.list", {**IN, "limit": 101}, "limit", "at most 100"),
    Refused("ads.list", {"account_id": "act_1"}, "account_id", "must match"),
    Refused("campaigns.update", {"campaign_id": ID}, "", "at least 2 members"),
    Refused("ad_sets.update", {"adset_id": ID, "daily_budget": "5.00"}, "daily_budget", "must match"),
    Refused("ads_insights.list", {**IN, "level": "page"}, "level", "campaign"),
]
MORE = {"paging": {"cursors": {"before": "c0", "after": "c1"}, "next": "https://graph.facebook.com/v25.0/act_1/ads"}}
ANSWERS = [
    Answer("campaigns.list", {"data": [{"id": ID}], **MORE}, [{"id": ID}], {"after": "c1"}),
    Answer("ads.list", {"data": []}, [], {"after": None}),
    Answer("pixel_stats.list", {"data": [{"event": "Purchase"}]}, [{"event": "Purchase"}], None),
    Answer("campaigns.get", {"id": ID, "name": "Spring"}, {"id": ID, "name": "Spring"}, None),
    Answer("campaigns.update", {"success": True}, {"success": True}, None),
]


def failed(status: int, code: int, subcode: int | None, error: type, **more: Any) -> Failure:
    body = {"message": "It failed", "type": "OAuthException", "code": code, "fbtrace_id": "A1"}
    body |= {} if subcode is None else {"error_subcode": subcode}
    return Failure("campaigns.get", status, {"error": body}, error, str(subcode or code), "It failed", "A1", **more)


FAILURES = [
    failed(400, 100, None, UpstreamRejected),
    failed(400, 100, 33, UpstreamNotFound),
    failed(404, 803, None, UpstreamNotFound),
    failed(401, 190, 463, ReauthorizationRequired),
    failed(400, 190, None, ReauthorizationRequired),
    failed(403, 200, None, UpstreamRejected),
    failed(400, 17, 2446079, UpstreamRateLimited, retry_after=300),
    failed(400, 80004, None, UpstreamRateLimited, retry_after=300),
    failed(400, 4, 99, UpstreamBusy, retry_after=300),
    failed(429, 4, None, UpstreamRateLimited, headers={"retry-after": "7"}, retry_after=7),
    failed(500, 1, None, UpstreamError),
]
PAGES = [
    Pages(
        "campaigns.list",
        {**IN, "fields": "id", "limit": 1},
        [{"data": [{"id": "2"}], **MORE}, {"data": []}],
        [[{"id": "2"}], []],
        [
            f"/v25.0/act_{ACCOUNT}/campaigns?fields=id&limit=1",
            f"/v25.0/act_{ACCOUNT}/campaigns?fields=id&limit=1&after=c1",
        ],
    ),
]
CASES = Cases(
    "facebook-marketing",
    "https://graph.facebook.com/v25.0",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[
        ({"access_token": "t", "client_id": "app", "client_secret": "s"}, "Bearer t"),
        ({"account_key": "k"}, "Bearer k"),
    ],
    check=("/v25.0/me?fields=id%2Cname", {"id": "1", "name": "Ada"}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"client_id": "app"}, "access_token")],
)
