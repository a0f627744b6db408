"""The cases of Amazon Ads: lists by POST with the vendor's media types, the app's id and a profile in headers."""

from functools import partial
from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ADDRESS = "https://advertising-api.amazon.com"
ID, PROFILE = "111222333444555", "222333444555666"
SCOPE = {"Amazon-Advertising-API-Scope": PROFILE}
#: entity → path and media type
LISTS = {
    "sponsored_product_campaigns": ("/sp/campaigns", "spCampaign.v3"),
    "sponsored_product_ad_groups": ("/sp/adGroups", "spAdGroup.v3"),
    "sponsored_product_keywords": ("/sp/keywords", "spKeyword.v3"),
    "sponsored_product_product_ads": ("/sp/productAds", "spProductAd.v3"),
    "sponsored_product_targets": ("/sp/targets", "spTargetingClause.v3"),
    "sponsored_product_negative_keywords": ("/sp/negativeKeywords", "spNegativeKeyword.v3"),
    "sponsored_product_negative_targets": ("/sp/negativeTargets", "spNegativeTargetingClause.v3"),
    "sponsored_brands_campaigns": ("/sb/v4/campaigns", "sbcampaignresource.v4"),
    "sponsored_brands_ad_groups": ("/sb/v4/adGroups", "sbadgroupresource.v4"),
}
RETURNED = {"Prefer": "return=representation"}
post = partial(Call, method="POST")


def typed(entity: str, action: str, params: dict[str, Any], path: str, body: Any, **more: Any) -> Call:
    """A call with the media type of its entity, and a profile."""
    media = f"application/vnd.{LISTS[entity][1]}+json"
    headers = {"Accept": media, **SCOPE, **more.pop("headers", {})}
    more = {"method": "POST", **more}
    return Call(f"{entity}.{action}", {**SCOPE, **params}, path, body=body, content_type=media, headers=headers, **more)


ENABLED, ONE = {"stateFilter": {"include": ["ENABLED"]}}, {"include": [ID]}
IN = {"campaignId": ID, "adGroupId": "2"}
GROUP = {"campaignId": ID, "name": "Shoes", "state": "ENABLED", "defaultBid": 0.75}
KEYWORD = {**IN, "keywordText": "running shoes", "matchType": "PHRASE", "state": "ENABLED", "bid": 0.8}
NEGATIVE = {**IN, "keywordText": "free", "matchType": "NEGATIVE_EXACT", "state": "ENABLED"}
AD = {**IN, "sku": "SHOE-42", "state": "ENABLED"}
CAMPAIGN = {"name": "Spring", "targetingType": "MANUAL", "state": "PAUSED", "startDate": "2026-03-01"}
CREATED = {**CAMPAIGN, "budget": {"budgetType": "DAILY", "budget": 20}, "dynamicBidding": {"strategy": "MANUAL"}}
write = partial(typed, headers=RETURNED)
change = partial(write, method="PUT")
EXTENDED = {"includeExtendedDataFields": "true"}
CALLS = [
    Call("profiles.list", {}, "/v2/profiles", {"profileTypeFilter": "seller,vendor"}),
    Call("profiles.get", {"profileId": 7}, "/v2/profiles/7"),
    post("portfolios.list", SCOPE, "/portfolios/list", body=EXTENDED, headers=SCOPE),
    post("portfolios.get", {**SCOPE, "portfolioIdFilter": ONE}, "/portfolios/list",
         body={"portfolioIdFilter": ONE, **EXTENDED}, headers=SCOPE),
    *(typed(entity, "list", ENABLED, f"{path}/list", {**ENABLED, "maxResults": 100})
      for entity, (path, _) in LISTS.items()),
    typed("sponsored_product_campaigns", "list", {"maxResults": 5, "nextToken": "t1"}, "/sp/campaigns/list",
          {"maxResults": 5, "nextToken": "t1"}),
    typed("sponsored_product_keywords", "list", {"adGroupIdFilter": ONE}, "/sp/keywords/list",
          {"adGroupIdFilter": ONE, "maxResults": 100}),
    typed("sponsored_product_campaigns", "get", {"campaignIdFilter": ONE}, "/sp/campaigns/list",
          {"campaignIdFilter": ONE}),
    write("sponsored_product_campaigns", "create", {**CAMPAIGN, "daily_budget": 20, "bidding_strategy": "MANUAL"},
          "/sp/campaigns", {"campaigns": [CREATED]}),
    change("sponsored_product_campaigns", "update", {"campaignId": ID, "state": "PAUSED"}, "/sp/campaigns",
           {"campaigns": [{"campaignId": ID, "state": "PAUSED"}]}),
    typed("sponsored_product_campaigns", "delete", {"campaignId": ID}, "/sp/campaigns/delete",
          {"campaignIdFilter": ONE}),
    write("sponsored_product_ad_groups", "create", GROUP, "/sp/adGroups", {"adGroups": [GROUP]}),
    change("sponsored_product_ad_groups", "update", {"adGroupId": "2", "defaultBid": 0.9}, "/sp/adGroups",
           {"adGroups": [{"adGroupId": "2", "defaultBid": 0.9}]}),
    write("sponsored_product_keywords", "create", KEYWORD, "/sp/keywords", {"keywords": [KEYWORD]}),
    change("sponsored_product_keywords", "update", {"keywordId": "3", "bid": 1.1}, "/sp/keywords",
           {"keywords": [{"keywordId": "3", "bid": 1.1}]}),
    write("sponsored_product_negative_keywords", "create", NEGATIVE, "/sp/negativeKeywords",
          {"negativeKeywords": [NEGATIVE]}),
    write("sponsored_product_product_ads", "create", AD, "/sp/productAds", {"productAds": [AD]}),
    change("sponsored_product_product_ads", "update", {"adId": "4", "state": "PAUSED"}, "/sp/productAds",
           {"productAds": [{"adId": "4", "state": "PAUSED"}]}),
]  # fmt: skip
REFUSED = [
    Refused("sponsored_product_campaigns.list", {}, "Amazon-Advertising-API-Scope", "is missing"),
    Refused("sponsored_product_campaigns.list", {**SCOPE, "stateFilter": {"include": ["on"]}}, "stateFilter.include.0",
            "ENABLED"),
    Refused("sponsored_product_ad_groups.list", {**SCOPE, "maxResults": 101}, "maxResults", "at most 100"),
    Refused("sponsored_product_campaigns.update", {**SCOPE, "campaignId": ID}, "", "at least 3 members"),
    Refused("sponsored_product_product_ads.create", {**SCOPE, **AD, "asin": "B01"}, "", "one of"),
    Refused("profiles.list", {"Amazon-Advertising-API-ClientId": "app"}, "Amazon-Advertising-API-ClientId",
            "leave it out"),
]  # fmt: skip
DONE = {"campaigns": {"success": [{"index": 0, "campaignId": ID, "campaign": {"campaignId": ID}}], "error": []}}
ANSWERS = [
    Answer("profiles.list", [{"profileId": 7}], [{"profileId": 7}], None),
    Answer("sponsored_product_campaigns.list", {"campaigns": [{"campaignId": ID}], "nextToken": "t1"},
           [{"campaignId": ID}], {"next_token": "t1"}),
    Answer("sponsored_product_targets.list", {"targetingClauses": []}, [], {"next_token": None}),
    Answer("sponsored_product_campaigns.get", {"campaigns": [{"campaignId": ID}]}, {"campaignId": ID}, None),
    Answer("sponsored_product_campaigns.create", DONE, {"campaignId": ID}, None),
]  # fmt: skip
FAILURES = [
    Failure("profiles.get", status, {"code": code, "details": "It failed"}, error, code, "It failed", **more)
    for status, code, error, more in [
        (400, "INVALID_ARGUMENT", UpstreamRejected, {}),
        (401, "UNAUTHORIZED", ReauthorizationRequired, {}),
        (403, "ACCESS_DENIED", UpstreamRejected, {}),
        (404, "NOT_FOUND", UpstreamNotFound, {}),
        (429, "THROTTLED", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "INTERNAL_ERROR", UpstreamError, {}),
    ]
]
REASON = {"errorType": "rangeError", "errorValue": {"rangeError": {"message": "The budget is too low"}}}
FAILURES += [
    Failure("sponsored_product_campaigns.create", 207,
            {"campaigns": {"success": [], "error": [{"index": 0, "errors": [REASON]}]}}, UpstreamRejected,
            "rangeError", "The budget is too low"),
]  # fmt: skip
PAGES = [
    Pages(
        "sponsored_product_campaigns.list",
        {**SCOPE, "maxResults": 1},
        [{"campaigns": [{"campaignId": "2"}], "nextToken": "t1"}, {"campaigns": [{"campaignId": "1"}]}],
        [[{"campaignId": "2"}], [{"campaignId": "1"}]],
        ["/sp/campaigns/list", "/sp/campaigns/list"],
        sent=[{"maxResults": 1}, {"maxResults": 1, "nextToken": "t1"}],
    ),
]
TOKENS = {"refresh_token": "r", "access_token": "t", "client_id": "app", "client_secret": "s"}
CASES = Cases(
    "amazon-ads",
    ADDRESS,
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(TOKENS, "Bearer t")],
    check=("/v2/profiles?profileTypeFilter=seller%2Cvendor", []),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"access_token": "t"}, "refresh_token")],
    environment={"region": ADDRESS},
)
