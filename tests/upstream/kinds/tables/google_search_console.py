"""The cases of Google Search Console: addresses in paths, queries by POST with days, rows from an offset."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Pages, Refused, google_failure

SITE = {"siteUrl": "https://www.example.com/"}
FEED = {"feedpath": "https://www.example.com/sitemap.xml"}
#: as `yarl` shows it; the colon is sent as %3A
SITE_PATH = "/sites/https:%2F%2Fwww.example.com%2F"
FEED_PATH = f"{SITE_PATH}/sitemaps/https:%2F%2Fwww.example.com%2Fsitemap.xml"
QUERY = f"{SITE_PATH}/searchAnalytics/query"
DAYS = {"startDate": "2026-01-01", "endDate": "2026-01-31"}
USUAL = {"rowLimit": 1000, "startRow": 0, "type": "web", "aggregationType": "auto", "dataState": "final"}
FILTERS = [{"filters": [{"dimension": "country", "operator": "equals", "expression": "deu"}]}]
DIMENSIONS = {
    "by_date": ["date"],
    "by_country": ["date", "country"],
    "by_device": ["date", "device"],
    "by_page": ["date", "page"],
    "by_query": ["date", "query"],
    "all_fields": ["date", "country", "device", "page", "query"],
}
CALLS = [
    Call("sites.list", {}, "/sites"),
    Call("sites.get", SITE, SITE_PATH),
    Call("sites.get", {"siteUrl": "sc-domain:example.com"}, "/sites/sc-domain:example.com"),
    Call("sites.create", SITE, SITE_PATH, method="PUT"),
    Call("sites.delete", SITE, SITE_PATH, method="DELETE"),
    Call("sitemaps.list", SITE, f"{SITE_PATH}/sitemaps"),
    Call("sitemaps.get", {**SITE, **FEED}, FEED_PATH),
    Call("sitemaps.create", {**SITE, **FEED}, FEED_PATH, method="PUT"),
    Call("sitemaps.delete", {**SITE, **FEED}, FEED_PATH, method="DELETE"),
    *(
        Call(f"search_analytics_{name}.list", {**SITE, **DAYS}, QUERY, method="POST",
             body={**DAYS, "dimensions": dimensions, **USUAL})
        for name, dimensions in DIMENSIONS.items()
    ),
    Call("search_analytics_by_page.list", {**SITE, **DAYS, "type": "image", "rowLimit": 5, "startRow": 10}, QUERY,
         method="POST", body={**DAYS, "dimensions": ["date", "page"], **USUAL, "type": "image", "rowLimit": 5,
                              "startRow": 10}),
    Call("search_analytics_by_query.list", {**SITE, **DAYS, "dimensionFilterGroups": FILTERS}, QUERY, method="POST",
         body={**DAYS, "dimensions": ["date", "query"], **USUAL, "dimensionFilterGroups": FILTERS}),
    Call("url_inspections.inspect", {"inspectionUrl": "https://www.example.com/a", **SITE},
         "https://searchconsole.googleapis.com/v1/urlInspection/index:inspect", method="POST",
         body={"inspectionUrl": "https://www.example.com/a", **SITE}),
]  # fmt: skip
REFUSED = [
    Refused("search_analytics_by_date.list", {**SITE, "rowLimit": 25001}, "rowLimit", "at most 25000"),
    Refused("search_analytics_by_date.list", DAYS, "siteUrl", "siteUrl is missing"),
    Refused("search_analytics_by_date.list", {**SITE, "startDate": "yesterday"}, "startDate", "such as 2026-01-31"),
    Refused("sitemaps.get", SITE, "feedpath", "feedpath is missing"),
]
ROW = {"keys": ["2026-01-01"], "clicks": 3, "impressions": 40, "ctr": 0.075, "position": 8.5}
ANSWERS = [
    Answer("sites.list", {"siteEntry": [{"siteUrl": "sc-domain:a.b"}]}, [{"siteUrl": "sc-domain:a.b"}], None),
    Answer("sites.list", {}, [], None),
    Answer("search_analytics_by_date.list", {"rows": [ROW], "responseAggregationType": "byProperty"}, [ROW],
           {"response_aggregation_type": "byProperty"}),
    Answer("url_inspections.inspect", {"inspectionResult": {"indexStatusResult": {"verdict": "PASS"}}},
           {"indexStatusResult": {"verdict": "PASS"}}, None),
]  # fmt: skip
FAILURES = [
    google_failure("sites.get", 400, "invalidParameter", UpstreamRejected),
    google_failure("sites.get", 401, "authError", ReauthorizationRequired),
    google_failure("sites.get", 403, "forbidden", UpstreamRejected),
    google_failure("sites.get", 403, "quotaExceeded", UpstreamRateLimited, retry_after=900),
    google_failure("sites.get", 403, "dailyLimitExceeded", UpstreamRateLimited),
    google_failure("sites.get", 404, "notFound", UpstreamNotFound),
    google_failure("sites.get", 429, "rateLimitExceeded", UpstreamRateLimited, headers={"retry-after": "7"},
                   retry_after=7),
    google_failure("sites.get", 500, "backendError", UpstreamError),
]  # fmt: skip
PAGES = [
    Pages(
        "search_analytics_by_date.list",
        {**SITE, **DAYS, "rowLimit": 1},
        [{"rows": [ROW]}, {"responseAggregationType": "byProperty"}],
        [[ROW], []],
        [f"/webmasters/v3{QUERY}".replace(":", "%3A")] * 2,
        sent=[
            {**DAYS, "dimensions": ["date"], **USUAL, "rowLimit": 1},
            {**DAYS, "dimensions": ["date"], **USUAL, "rowLimit": 1, "startRow": 1},
        ],
    ),
]
TOKENS = {"refresh_token": "r", "access_token": "t", "client_id": "app", "client_secret": "s"}
CASES = Cases(
    "google-search-console",
    "https://www.googleapis.com/webmasters/v3",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(TOKENS, "Bearer t")],
    check=("/webmasters/v3/sites", {"siteEntry": []}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"access_token": "t"}, "refresh_token")],
)
