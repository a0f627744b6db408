"""The cases of Snapchat Marketing: records within items, links to the next page, bodies with a list of one item."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID, ACCOUNT, SQUAD = "5b3f92d0", "8adc3db7", "4c8e53c2"
IN = {"ad_account_id": ACCOUNT}
OF_ACCOUNTS = ("campaigns", "adsquads", "ads", "creatives", "media", "segments")
START = "2026-03-01T00:00:00Z"
CAMPAIGN = {"name": "Spring", "status": "PAUSED", "start_time": START}
SQUAD_MEMBERS = {
    "name": "Readers",
    "status": "PAUSED",
    "type": "SNAP_ADS",
    "placement_v2": {"config": "AUTOMATIC"},
    "targeting": {"geos": [{"country_code": "us"}]},
    "optimization_goal": "SWIPES",
    "bid_strategy": "AUTO_BID",
    "daily_budget_micro": 50_000_000,
}
AD = {"creative_id": "6ad4e432", "name": "Blue", "status": "PAUSED", "type": "SNAP_AD"}
SEGMENT = {"name": "Customers", "source_type": "FIRST_PARTY", "retention_in_days": 180}
CALLS = [
    Call("organizations.list", {}, "/me/organizations"),
    Call("organizations.get", {"id": ID}, f"/organizations/{ID}"),
    Call("adaccounts.list", {"organization_id": ID}, f"/organizations/{ID}/adaccounts"),
    Call("adaccounts.list", {"organization_id": ID, "page_size": 50, "cursor": "c1"}, f"/organizations/{ID}/adaccounts",
         {"limit": "50", "cursor": "c1"}),
    Call("adaccounts.get", {"id": ACCOUNT}, f"/adaccounts/{ACCOUNT}"),
    *(Call(f"{entity}.list", IN, f"/adaccounts/{ACCOUNT}/{entity}") for entity in OF_ACCOUNTS),
    *(Call(f"{entity}.get", {"id": ID}, f"/{entity}/{ID}") for entity in OF_ACCOUNTS),
    Call("campaigns.create", {**IN, **CAMPAIGN}, f"/adaccounts/{ACCOUNT}/campaigns", method="POST",
         body={"campaigns": [{**IN, **CAMPAIGN}]}),
    Call("campaigns.update", {"id": ID, **IN, **CAMPAIGN}, f"/adaccounts/{ACCOUNT}/campaigns", method="PUT",
         body={"campaigns": [{"id": ID, **IN, **CAMPAIGN}]}),
    Call("campaigns.delete", {"id": ID}, f"/campaigns/{ID}", method="DELETE"),
    Call("adsquads.create", {"campaign_id": ID, **SQUAD_MEMBERS}, f"/campaigns/{ID}/adsquads", method="POST",
         body={"adsquads": [{"campaign_id": ID, "billing_event": "IMPRESSION", **SQUAD_MEMBERS}]}),
    Call("adsquads.update", {"id": SQUAD, "campaign_id": ID, **SQUAD_MEMBERS}, f"/campaigns/{ID}/adsquads",
         method="PUT",
         body={"adsquads": [{"id": SQUAD, "campaign_id": ID, "billing_event": "IMPRESSION", **SQUAD_MEMBERS}]}),
    Call("adsquads.delete", {"id": SQUAD}, f"/adsquads/{SQUAD}", method="DELETE"),
    Call("ads.create", {"ad_squad_id": SQUAD, **AD}, f"/adsquads/{SQUAD}/ads", method="POST",
         body={"ads": [{"ad_squad_id": SQUAD, **AD}]}),
    Call("ads.update", {"id": ID, "ad_squad_id": SQUAD, **AD}, f"/adsquads/{SQUAD}/ads", method="PUT",
         body={"ads": [{"id": ID, "ad_squad_id": SQUAD, **AD}]}),
    Call("ads.delete", {"id": ID}, f"/ads/{ID}", method="DELETE"),
    Call("segments.create", {**IN, **SEGMENT}, f"/adaccounts/{ACCOUNT}/segments", method="POST",
         body={"segments": [{**IN, **SEGMENT}]}),
]  # fmt: skip
REFUSED = [
    Refused("campaigns.list", {}, "ad_account_id", "ad_account_id is missing"),
    Refused("ads.list", {**IN, "page_size": 10}, "page_size", "at least 50"),
    Refused("campaigns.create", {**IN, **CAMPAIGN, "status": "DELETED"}, "status", "PAUSED"),
    Refused("adsquads.create", {"campaign_id": ID, **SQUAD_MEMBERS, "lifetime_budget_micro": 1}, "", "one of"),
]
DONE = {"request_status": "SUCCESS", "request_id": "r1"}
NEXT = "https://adsapi.snapchat.com/v1/adaccounts/8adc3db7/campaigns?cursor=c1&limit=50"


def item(identifier: str) -> dict[str, object]:
    """A campaign as lists have it."""
    return {"sub_request_status": "SUCCESS", "campaign": {"id": identifier}}


ANSWERS = [
    Answer("campaigns.list", {**DONE, "paging": {}, "campaigns": [item("1"), item("2")]}, [{"id": "1"}, {"id": "2"}],
           {"next_link": None}),
    Answer("campaigns.get", {**DONE, "campaigns": [item("1")]}, {"id": "1"}, None),
    Answer("campaigns.create", {**DONE, "campaigns": [item("1")]}, {"id": "1"}, None),
    Answer("campaigns.delete", DONE, DONE, None),
]  # fmt: skip
FAILURES = [
    Failure(
        "campaigns.get",
        status,
        {"request_status": "ERROR", "request_id": "r1", "debug_message": "It failed", "error_code": code},
        error,
        code,
        "It failed",
        "r1",
        **more,
    )
    for status, code, error, more in [
        (400, "E1001", UpstreamRejected, {}),
        (200, "E1001", UpstreamRejected, {}),
        (401, "E1101", ReauthorizationRequired, {}),
        (403, "E1102", UpstreamRejected, {}),
        (404, "E1003", UpstreamNotFound, {}),
        (429, "E1104", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "E2001", UpstreamError, {}),
    ]
]
FAILED = {"sub_request_status": "ERROR", "sub_request_error_reason": "The name is taken"}
FAILURES += [
    Failure("campaigns.create", 200, {**DONE, "request_status": "PARTIAL", "campaigns": [FAILED]}, UpstreamRejected,
            None, "The name is taken", "r1"),
]  # fmt: skip
PAGES = [
    Pages(
        "campaigns.list",
        {**IN, "page_size": 50},
        [
            {**DONE, "paging": {"next_link": NEXT}, "campaigns": [item("1")]},
            {**DONE, "paging": {}, "campaigns": [item("2")]},
        ],
        [[{"id": "1"}], [{"id": "2"}]],
        [
            f"/v1/adaccounts/{ACCOUNT}/campaigns?limit=50",
            f"/v1/adaccounts/{ACCOUNT}/campaigns?limit=50&cursor=c1",
        ],
    ),
]
TOKENS = {"refresh_token": "r", "access_token": "t", "client_id": "app", "client_secret": "s"}
CASES = Cases(
    "snapchat-marketing",
    "https://adsapi.snapchat.com/v1",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(TOKENS, "Bearer t")],
    check=("/v1/me/organizations", {**DONE, "organizations": []}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"access_token": "t"}, "refresh_token")],
)
