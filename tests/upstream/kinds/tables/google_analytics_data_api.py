"""The cases of Google Analytics: reports by POST with dimensions and metrics, rows from an offset."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.harness.signing_keys import key_file
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

PROPERTY = {"property_id": "123"}
RUN = "/properties/123:runReport"
SESSIONS = [
    *("totalUsers", "newUsers", "sessions", "sessionsPerUser", "averageSessionDuration", "screenPageViews"),
    *("screenPageViewsPerSession", "bounceRate"),
]
REPORTS = {
    "website_overview": (["date"], SESSIONS),
    "daily_active_users": (["date"], ["active1DayUsers"]),
    "weekly_active_users": (["date"], ["active7DayUsers"]),
    "four_weekly_active_users": (["date"], ["active28DayUsers"]),
    "traffic_sources": (["date", "sessionSource", "sessionMedium"], SESSIONS),
    "pages": (["date", "hostName", "pagePathPlusQueryString"], ["screenPageViews", "bounceRate"]),
    "devices": (["date", "deviceCategory", "operatingSystem", "browser"], SESSIONS),
    "locations": (["region", "country", "city", "date"], SESSIONS),
}


def named(names):
    return [{"name": name} for name in names]


USUAL = {
    "dateRanges": [{"startDate": "30daysAgo", "endDate": "today"}],
    "keepEmptyRows": False,
    "returnPropertyQuota": True,
    "limit": 10000,
}
WEEK = [{"startDate": "7daysAgo", "endDate": "yesterday"}]
EVENTS = {"dimensions": [{"name": "eventName"}], "metrics": [{"name": "eventCount"}]}
GERMANY = {"filter": {"fieldName": "country", "stringFilter": {"value": "Germany"}}}
CALLS = [
    *(
        Call(f"{name}.list", PROPERTY, RUN, method="POST",
             body={"dimensions": named(dimensions), "metrics": named(metrics), **USUAL})
        for name, (dimensions, metrics) in REPORTS.items()
    ),
    Call("pages.list", {**PROPERTY, "dateRanges": WEEK, "dimensions": [{"name": "pagePath"}], "limit": 5}, RUN,
         method="POST", body={**USUAL, "dateRanges": WEEK, "dimensions": [{"name": "pagePath"}],
                              "metrics": named(REPORTS["pages"][1]), "limit": 5}),
    Call("reports.list", {**PROPERTY, **EVENTS, "dimensionFilter": GERMANY, "offset": 20}, RUN, method="POST",
         body={**USUAL, **EVENTS, "dimensionFilter": GERMANY, "offset": 20}),
    Call("realtime_reports.list", {**PROPERTY, "dimensions": [{"name": "country"}]},
         "/properties/123:runRealtimeReport", method="POST",
         body={"dimensions": [{"name": "country"}], "metrics": [{"name": "activeUsers"}], "limit": 10000}),
    Call("metadata.get", PROPERTY, "/properties/123/metadata"),
]  # fmt: skip
REFUSED = [
    Refused("pages.list", {**PROPERTY, "limit": 250001}, "limit", "at most 250000"),
    Refused("pages.list", {"property_id": "properties/123"}, "property_id", "such as 123456789"),
    Refused("reports.list", PROPERTY, "metrics", "metrics is missing"),
    Refused("pages.list", {**PROPERTY, "dateRanges": [{"startDate": "today"}]}, "dateRanges.0.endDate", "is missing"),
]
ROW = {"dimensionValues": [{"value": "20260101"}], "metricValues": [{"value": "12"}]}
HEADERS = {
    "dimensionHeaders": [{"name": "date"}],
    "metricHeaders": [{"name": "active1DayUsers", "type": "TYPE_INTEGER"}],
}
META = {"dimension_headers": HEADERS["dimensionHeaders"], "metric_headers": HEADERS["metricHeaders"]}
ANSWERS = [
    Answer("daily_active_users.list", {**HEADERS, "rows": [ROW], "rowCount": 1}, [ROW],
           {**META, "row_count": 1, "property_quota": None}),
    Answer("daily_active_users.list", HEADERS, [], {**META, "row_count": None, "property_quota": None}),
    Answer("metadata.get", {"name": "properties/123/metadata"}, {"name": "properties/123/metadata"}, None),
]  # fmt: skip
FAILURES = [
    Failure("pages.list", status, {"error": {"code": status, "message": "no", "status": code}}, error, code, "no",
            **more)
    for status, code, error, more in [
        (400, "INVALID_ARGUMENT", UpstreamRejected, {}),
        (401, "UNAUTHENTICATED", ReauthorizationRequired, {}),
        (403, "PERMISSION_DENIED", UpstreamRejected, {}),
        (404, "NOT_FOUND", UpstreamNotFound, {}),
        (429, "RESOURCE_EXHAUSTED", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "INTERNAL", UpstreamError, {}),
    ]
]  # fmt: skip
REPORT = {**USUAL, **EVENTS, "limit": 1}
PAGES = [
    Pages(
        "reports.list",
        {**PROPERTY, **EVENTS, "limit": 1},
        [{**HEADERS, "rows": [ROW], "rowCount": 2}] * 2,
        [[ROW], [ROW]],
        [f"/v1beta{RUN}"] * 2,
        sent=[REPORT, {**REPORT, "offset": 1}],
    ),
]
TOKENS = {"refresh_token": "r", "access_token": "t", "client_id": "app", "client_secret": "s"}
CASES = Cases(
    "google-analytics-data-api",
    "https://analyticsdata.googleapis.com/v1beta",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(TOKENS, "Bearer t"), ({"credentials_json": key_file(), "access_token": "s"}, "Bearer s")],
    check=("/v1beta/properties/0/metadata", {"name": "properties/0/metadata"}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[
        BadCredentials({"access_token": "t"}, "refresh_token"),
        BadCredentials({"credentials_json": "key.json"}, "credentials_json"),
    ],
)
