"""The cases of Google Ads: queries by POST, names of accounts, lists of operations, optional headers."""

from functools import partial
from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.harness.catalog import shipped_catalog
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID = "1234567890"
IN, HERE = {"customer_id": ID}, f"customers/{ID}"
SEARCH = f"/customers/{ID}/googleAds:search"
QUERY = "SELECT campaign.name, metrics.clicks FROM campaign"
LISTS = (
    *("accounts", "campaigns", "campaign_budgets", "ad_groups", "ad_group_ads", "keywords"),
    *("campaign_labels", "ad_group_labels", "ad_group_ad_labels"),
)
post = partial(Call, method="POST")


def usual(entity: str) -> str:
    """The query of a list by default."""
    return shipped_catalog().kind("google-ads").operation(entity, "list").action.params["query"]["default"]


def mutate(operation: str, collection: str, change: dict[str, Any]) -> Call:
    """A call with one change."""
    body = {"operations": [change]}
    return post(operation, {**IN, **body}, f"/customers/{ID}/{collection}:mutate", body=body)


CAMPAIGN = {"name": "Spring", "advertisingChannelType": "SEARCH", "campaignBudget": f"{HERE}/campaignBudgets/5"}
NAMED = {"resourceName": f"{HERE}/campaigns/7"}
GROUP = {"resourceName": f"{HERE}/adGroups/8", "cpcBidMicros": "1200000"}
WORD = {"adGroup": f"{HERE}/adGroups/8", "keyword": {"text": "shoes", "matchType": "EXACT"}}
LABEL = f"{HERE}/labels/3"
CALLS = [
    Call("accessible_customers.list", {}, "/customers:listAccessibleCustomers"),
    *(post(f"{entity}.list", IN, SEARCH, body={"query": usual(entity)}) for entity in LISTS),
    post("campaigns.list", {**IN, "query": QUERY, "pageToken": "t1"}, SEARCH,
         body={"query": QUERY, "pageToken": "t1"}),
    post("reports.list", {**IN, "query": QUERY}, SEARCH, body={"query": QUERY}),
    mutate("campaigns.create", "campaigns", {"create": {**CAMPAIGN, "manualCpc": {}}}),
    mutate("campaigns.update", "campaigns", {"updateMask": "status", "update": {**NAMED, "status": "PAUSED"}}),
    mutate("campaigns.delete", "campaigns", {"remove": NAMED["resourceName"]}),
    mutate("campaign_budgets.create", "campaignBudgets", {"create": {"name": "B", "amountMicros": "20000000"}}),
    mutate("campaign_budgets.update", "campaignBudgets",
           {"updateMask": "name", "update": {"resourceName": f"{HERE}/campaignBudgets/5", "name": "A"}}),
    mutate("ad_groups.create", "adGroups", {"create": {"name": "Shoes", "campaign": NAMED["resourceName"]}}),
    mutate("ad_groups.update", "adGroups", {"updateMask": "cpcBidMicros", "update": GROUP}),
    mutate("ad_group_ads.update", "adGroupAds",
           {"updateMask": "status", "update": {"resourceName": f"{HERE}/adGroupAds/8~9", "status": "PAUSED"}}),
    mutate("keywords.create", "adGroupCriteria", {"create": {**WORD, "negative": True}}),
    mutate("keywords.update", "adGroupCriteria",
           {"updateMask": "status", "update": {"resourceName": f"{HERE}/adGroupCriteria/8~11", "status": "ENABLED"}}),
    mutate("campaign_labels.create", "campaignLabels",
           {"create": {"campaign": NAMED["resourceName"], "label": LABEL}}),
    mutate("ad_group_labels.create", "adGroupLabels", {"create": {"adGroup": f"{HERE}/adGroups/8", "label": LABEL}}),
    mutate("labels.create", "labels", {"create": {"name": "Spring", "textLabel": {"backgroundColor": "#FF0000"}}}),
]  # fmt: skip
REFUSED = [
    Refused("campaigns.list", {"customer_id": "123-456-7890"}, "customer_id", "must match"),
    Refused("campaigns.list", {**IN, "query": "DELETE campaign"}, "query", "must match"),
    Refused("reports.list", IN, "query", "query is missing"),
    Refused("campaigns.update", {**IN, "operations": []}, "operations", "at least 1"),
    Refused("campaigns.update", {**IN, "operations": [{"update": {"name": "x"}}]}, "operations.0.update.resourceName",
            "is missing"),
    Refused("campaigns.delete", {**IN, "operations": [{"remove": "7"}]}, "operations.0.remove", "must match"),
]  # fmt: skip
ROW = {"campaign": {"id": "7", "resourceName": NAMED["resourceName"]}}
ANSWERS = [
    Answer("campaigns.list", {"results": [ROW], "nextPageToken": "t1"}, [ROW], {"next_page_token": "t1"}),
    Answer("keywords.list", {"fieldMask": "adGroup.id"}, [], {"next_page_token": None}),
    Answer("campaigns.update", {"results": [NAMED]}, {"results": [NAMED]}, None),
]
DETAILS = [{"errors": [{"errorCode": {"queryError": "BAD"}, "message": "at campaign.nam"}], "requestId": "r1"}]
FAILURES = [
    Failure("campaigns.list", status,
            {"error": {"code": status, "message": "It failed", "status": code, "details": DETAILS}}, error, code,
            "It failed; at campaign.nam", "r1", **more)
    for status, code, error, more in [
        (400, "INVALID_ARGUMENT", UpstreamRejected, {}),
        (401, "UNAUTHENTICATED", ReauthorizationRequired, {}),
        (403, "PERMISSION_DENIED", UpstreamRejected, {}),
        (404, "NOT_FOUND", UpstreamNotFound, {}),
        (429, "RESOURCE_EXHAUSTED", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "INTERNAL", UpstreamError, {}),
    ]
]  # fmt: skip
PAGES = [
    Pages(
        "accessible_customers.list",
        {},
        [{"resourceNames": [HERE]}],
        [[{"customer_id": ID, "resource_name": HERE}]],
        ["/v23/customers:listAccessibleCustomers"],
    ),
    Pages(
        "reports.list",
        {**IN, "query": QUERY},
        [{"results": [ROW], "nextPageToken": "t1"}, {"results": [{"campaign": {"id": "8"}}]}],
        [[ROW], [{"campaign": {"id": "8"}}]],
        [f"/v23{SEARCH}", f"/v23{SEARCH}"],
        sent=[{"query": QUERY}, {"query": QUERY, "pageToken": "t1"}],
    ),
]
TOKENS = {"refresh_token": "r", "access_token": "t", "client_id": "app", "client_secret": "s", "developer_token": "d"}
CASES = Cases(
    "google-ads",
    "https://googleads.googleapis.com/v23",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(TOKENS, "Bearer t"), ({"refresh_token": "r", "access_token": "t"}, "Bearer t")],
    check=("/v23/customers:listAccessibleCustomers", {"resourceNames": []}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"access_token": "t"}, "refresh_token")],
)
