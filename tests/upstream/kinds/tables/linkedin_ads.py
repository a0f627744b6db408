"""The cases of LinkedIn Ads: Rest.li in queries and paths, partial updates, ids of new records in a header."""

from functools import partial

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

IN, HERE = {"account_id": 512}, "/adAccounts/512"
ACCOUNT, USER = "urn:li:sponsoredAccount:512", "urn:li:person:a1"
CAMPAIGN, CREATIVE = "urn:li:sponsoredCampaign:7", "urn:li:sponsoredCreative:9"
RULE = "urn:lla:llaPartnerConversion:4"
PAGE, OFFSET = {"pageSize": "100"}, {"count": "100", "start": "0"}
SEARCH, SAVED = {"q": "search"}, {"patch": {"$set": {"name": "B"}}}
VERSIONS = {"LinkedIn-Version": "202606", "X-Restli-Protocol-Version": "2.0.0"}
COLONS = "Rest.li 2.0 writes keys in paths with colons"
#: entity → its collection
OF_ACCOUNTS = {"campaign_groups": "adCampaignGroups", "campaigns": "adCampaigns"}
#: entity → what the metrics are split by
PIVOTS = {
    "ad_campaign_analytics": "CAMPAIGN",
    "ad_impression_device_analytics": "IMPRESSION_DEVICE_TYPE",
    "ad_member_company_analytics": "MEMBER_COMPANY",
    "ad_member_company_size_analytics": "MEMBER_COMPANY_SIZE",
    "ad_member_country_analytics": "MEMBER_COUNTRY_V2",
    "ad_member_industry_analytics": "MEMBER_INDUSTRY",
    "ad_member_job_function_analytics": "MEMBER_JOB_FUNCTION",
    "ad_member_job_title_analytics": "MEMBER_JOB_TITLE",
    "ad_member_region_analytics": "MEMBER_REGION_V2",
    "ad_member_seniority_analytics": "MEMBER_SENIORITY",
}
JANUARY = "(start:(year:2026,month:1,day:1),end:(year:2026,month:1,day:31))"


def analytics(entity: str, pivot: str, param: str, urn: str) -> Call:
    """A call of metrics in January."""
    params = {param: f"List({urn})", "dateRange": JANUARY, "fields": "impressions,clicks"}
    query = {"q": "analytics", "pivot": pivot, "timeGranularity": "DAILY", **params}
    return Call(f"{entity}.list", params, "/adAnalytics", query)


post = partial(Call, method="POST")
patch = partial(Call, method="POST", body=SAVED, headers={"X-RestLi-Method": "PARTIAL_UPDATE"})
delete = partial(Call, method="DELETE")
GROUP = {"account": ACCOUNT, "name": "Spring", "runSchedule": {"start": 1772323200000}}
NEW = {**GROUP, "offsiteDeliveryEnabled": False, "politicalIntent": "NOT_POLITICAL"}
BUDGET = {"dailyBudget": {"amount": "50.00", "currencyCode": "USD"}}
USED = {"account": ACCOUNT, "user": USER}
OF_USER = "/adAccountUsers/(account:urn:li:sponsoredAccount:512,user:urn:li:person:a1)"
COUNTED = {"campaign_urn": CAMPAIGN, "conversion_urn": RULE}
OF_RULE = f"/campaignConversions/(campaign:{CAMPAIGN},conversion:{RULE})"
EVENT = {"conversion": RULE, "conversionHappenedAt": 1772323200000, "user": {"userIds": []}}
SIGN_UP = {"account": ACCOUNT, "name": "Sign-up", "type": "SIGN_UP"}
OWNER = "(sponsoredAccount:urn:li:sponsoredAccount:512)"
CALLS = [
    Call("accounts.list", {}, "/adAccounts", {**SEARCH, **PAGE}),
    Call("accounts.get", {"id": 512}, "/adAccounts/512"),
    post("accounts.create", {"name": "Acme", "type": "BUSINESS"}, "/adAccounts",
         body={"name": "Acme", "type": "BUSINESS"}),
    patch("accounts.update", {"id": 512, **SAVED}, "/adAccounts/512"),
    delete("accounts.delete", {"id": 512}, "/adAccounts/512"),
    Call("account_users.list", {"accounts": ACCOUNT}, "/adAccountUsers",
         {"q": "accounts", "accounts": ACCOUNT, **OFFSET}),
    Call("account_users.create", {**USED, "role": "VIEWER"}, OF_USER, method="PUT", body={**USED, "role": "VIEWER"},
         sdk_differs=COLONS),
    patch("account_users.update", {**USED, **SAVED}, OF_USER, sdk_differs=COLONS),
    delete("account_users.delete", USED, OF_USER, sdk_differs=COLONS),
    *(Call(f"{entity}.list", IN, f"{HERE}/{name}", {**SEARCH, **PAGE}) for entity, name in OF_ACCOUNTS.items()),
    *(Call(f"{entity}.get", {**IN, "id": 7}, f"{HERE}/{name}/7") for entity, name in OF_ACCOUNTS.items()),
    *(patch(f"{entity}.update", {**IN, "id": 7, **SAVED}, f"{HERE}/{name}/7") for entity, name in OF_ACCOUNTS.items()),
    *(delete(f"{entity}.delete", {**IN, "id": 7}, f"{HERE}/{name}/7") for entity, name in OF_ACCOUNTS.items()),
    post("campaign_groups.create", {**IN, **GROUP}, f"{HERE}/adCampaignGroups", body=GROUP),
    post("campaigns.create", {**IN, **NEW, **BUDGET}, f"{HERE}/adCampaigns", body={**NEW, **BUDGET}),
    Call("campaigns.list", {**IN, "pageSize": 5, "pageToken": "t1"}, f"{HERE}/adCampaigns",
         {**SEARCH, "pageSize": "5", "pageToken": "t1"}),
    Call("creatives.list", IN, f"{HERE}/creatives", {"q": "criteria", **PAGE}, headers={"X-RestLi-Method": "FINDER"}),
    Call("creatives.get", {**IN, "id": CREATIVE}, f"{HERE}/creatives/{CREATIVE}"),
    post("creatives.create", {**IN, "campaign": CAMPAIGN, "intendedStatus": "DRAFT"}, f"{HERE}/creatives",
         body={"campaign": CAMPAIGN, "intendedStatus": "DRAFT"}),
    patch("creatives.update", {**IN, "id": CREATIVE, **SAVED}, f"{HERE}/creatives/{CREATIVE}"),
    delete("creatives.delete", {**IN, "id": CREATIVE}, f"{HERE}/creatives/{CREATIVE}"),
    Call("conversions.list", {"account": ACCOUNT}, "/conversions", {"q": "account", "account": ACCOUNT, **OFFSET}),
    Call("conversions.get", {"id": 4}, "/conversions/4"),
    Call("conversions.get", {"id": 4, "account": ACCOUNT}, "/conversions/4", {"account": ACCOUNT}),
    post("conversions.create", {**SIGN_UP, "autoAssociationType": "ALL_CAMPAIGNS"}, "/conversions",
         {"autoAssociationType": "ALL_CAMPAIGNS"}, body=SIGN_UP),
    patch("conversions.update", {"id": 4, "account": ACCOUNT, **SAVED}, "/conversions/4", {"account": ACCOUNT}),
    post("conversion_events.create", {"elements": [EVENT]}, "/conversionEvents", body={"elements": [EVENT]},
         headers={"X-RestLi-Method": "BATCH_CREATE"}),
    Call("campaign_conversions.create", {**COUNTED, "campaign": CAMPAIGN, "conversion": RULE}, OF_RULE, method="PUT",
         body={"campaign": CAMPAIGN, "conversion": RULE}, sdk_differs=COLONS),
    delete("campaign_conversions.delete", COUNTED, OF_RULE, sdk_differs=COLONS),
    *(analytics(entity, pivot, "campaigns", CAMPAIGN) for entity, pivot in PIVOTS.items()),
    analytics("ad_creative_analytics", "CREATIVE", "creatives", CREATIVE),
    Call("lead_forms.list", {"owner": OWNER}, "/leadForms", {"q": "owner", "owner": OWNER, **OFFSET}),
    Call("lead_form_responses.list", {"owner": OWNER}, "/leadFormResponses",
         {"q": "owner", "owner": OWNER, "leadType": "(leadType:SPONSORED)", **OFFSET}),
]  # fmt: skip
REFUSED = [
    Refused("campaigns.list", {**IN, "pageSize": 501}, "pageSize", "at most 500"),
    Refused("creatives.get", {**IN, "id": "9"}, "id", "must match"),
    Refused("ad_campaign_analytics.list", {"campaigns": CAMPAIGN}, "campaigns", "must match"),
    Refused("ad_campaign_analytics.list", {}, "campaigns", "campaigns is missing"),
    Refused("campaigns.update", {**IN, "id": 7, "patch": {"name": "B"}}, "patch.name", "not"),
]
ANSWERS = [
    Answer("accounts.list", {"elements": [{"id": 512}], "metadata": {"nextPageToken": "t1"}}, [{"id": 512}],
           {"nextPageToken": "t1"}),
    Answer("conversions.list", {"elements": [], "paging": {"start": 0, "count": 100, "total": 0}}, [],
           {"start": 0, "count": 100, "total": 0}),
    Answer("campaigns.get", {"id": 7}, {"id": 7}, None),
]  # fmt: skip
FAILURES = [
    Failure("campaigns.get", status, {"status": status, "code": code, "message": "It failed"}, error, code, "It failed",
            **more)
    for status, code, error, more in [
        (400, "ILLEGAL_ARGUMENT", UpstreamRejected, {}),
        (401, "EXPIRED_ACCESS_TOKEN", ReauthorizationRequired, {}),
        (403, "ACCESS_DENIED", UpstreamRejected, {}),
        (404, "RESOURCE_NOT_FOUND", UpstreamNotFound, {}),
        (429, "TOO_MANY_REQUESTS", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "INTERNAL_ERROR", UpstreamError, {}),
    ]
]  # fmt: skip
PAGES = [
    Pages(
        "campaigns.list",
        {**IN, "pageSize": 1},
        [{"elements": [{"id": 2}], "metadata": {"nextPageToken": "t1"}}, {"elements": [{"id": 1}], "metadata": {}}],
        [[{"id": 2}], [{"id": 1}]],
        [
            "/rest/adAccounts/512/adCampaigns?q=search&pageSize=1",
            "/rest/adAccounts/512/adCampaigns?q=search&pageSize=1&pageToken=t1",
        ],
    ),
    Pages(
        "ad_campaign_analytics.list",
        {"campaigns": f"List({CAMPAIGN})", "dateRange": JANUARY, "fields": "impressions,clicks"},
        [{"elements": [{"impressions": 3}], "paging": {"start": 0, "count": 10}}],
        [[{"impressions": 3}]],
        [
            f"/rest/adAnalytics?q=analytics&pivot=CAMPAIGN&timeGranularity=DAILY&dateRange={JANUARY}"
            "&campaigns=List(urn%3Ali%3AsponsoredCampaign%3A7)&fields=impressions,clicks"
        ],
    ),
]
TOKENS = {"refresh_token": "r", "access_token": "t", "client_id": "app", "client_secret": "s"}
CASES = Cases(
    "linkedin-ads",
    "https://api.linkedin.com/rest",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"access_token": "t"}, "Bearer t"), (TOKENS, "Bearer t")],
    check=("/rest/adAccounts?q=search&pageSize=1", {"elements": [], "metadata": {}}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"client_id": "app", "client_secret": "s"}, "refresh_token")],
    headers=VERSIONS,
)
