"""The cases of TikTok Marketing: numbered pages, errors with the status 200, reports by their dimensions."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID = "7001234567890123456"
IN = {"advertiser_id": ID}
CAMPAIGN = "1781234567890123"
LISTS = {
    "campaigns": ("/campaign/get/", "1000"),
    "ad_groups": ("/adgroup/get/", "1000"),
    "ads": ("/ad/get/", "1000"),
    "audiences": ("/dmp/custom_audience/list/", "100"),
    "creative_assets_images": ("/file/image/ad/search/", "100"),
    "creative_assets_videos": ("/file/video/ad/search/", "100"),
    "spark_ads": ("/tt_video/list/", "20"),
    "catalogs": ("/catalog/get/", "100"),
}
REPORTS = {
    "advertisers_reports_daily": ("AUCTION_ADVERTISER", '["advertiser_id", "stat_time_day"]'),
    "campaigns_reports_daily": ("AUCTION_CAMPAIGN", '["campaign_id", "stat_time_day"]'),
    "ad_groups_reports_daily": ("AUCTION_ADGROUP", '["adgroup_id", "stat_time_day"]'),
    "ads_reports_daily": ("AUCTION_AD", '["ad_id", "stat_time_day"]'),
    "ads_reports_hourly": ("AUCTION_AD", '["ad_id", "stat_time_hour"]'),
    "ads_reports_lifetime": ("AUCTION_AD", '["ad_id"]'),
}
METRICS = '["spend", "clicks"]'
DAYS = {"start_date": "2026-01-01", "end_date": "2026-01-31"}
FIRST = {"page": "1", "page_size": "1000"}
LIFETIME = "the whole life of an ad is requested by query_lifetime; the SDK sends the dates of a year"
PAUSED = {"operation_status": "DISABLE"}


def report(entity: str, level: str, dimensions: str) -> Call:
    """The call of a report."""
    is_lifetime = entity.endswith("lifetime")
    days = {} if is_lifetime else DAYS
    query = {**IN, "service_type": "AUCTION", "report_type": "BASIC", "data_level": level, "dimensions": dimensions,
             "metrics": METRICS, **days, **({"query_lifetime": "true"} if is_lifetime else {}), **FIRST}  # fmt: skip
    params = {**IN, "metrics": METRICS, **days}
    return Call(f"{entity}.list", params, "/report/integrated/get/", query, sdk_differs=LIFETIME * is_lifetime)


CALLS = [
    Call("users.get", {}, "/user/info/"),
    Call("advertisers.list", {"advertiser_ids": f'["{ID}"]'}, "/advertiser/info/",
         {"advertiser_ids": f'["{ID}"]', "page": "1", "page_size": "100"}),
    *(Call(f"{entity}.list", IN, path, {**IN, "page": "1", "page_size": size})
      for entity, (path, size) in LISTS.items()),
    *(report(entity, *of) for entity, of in REPORTS.items()),
    Call("campaigns.list", {**IN, "filtering": {"campaign_ids": [CAMPAIGN]}, "page": 2, "page_size": 10},
         "/campaign/get/", {**IN, "filtering": f'{{"campaign_ids":["{CAMPAIGN}"]}}', "page": "2", "page_size": "10"}),
    Call("catalogs.list", {**IN, "bc_id": "9"}, "/catalog/get/",
         {**IN, "bc_id": "9", "page": "1", "page_size": "100"}),
    Call("campaigns.create", {**IN, "campaign_name": "Spring", "objective_type": "TRAFFIC", "budget": 50},
         "/campaign/create/", method="POST",
         body={**IN, "campaign_name": "Spring", "objective_type": "TRAFFIC", "budget": 50}),
    Call("campaigns.update", {**IN, "campaign_id": CAMPAIGN, "budget": 80}, "/campaign/update/", method="POST",
         body={**IN, "campaign_id": CAMPAIGN, "budget": 80}),
    *(Call(f"{entity}.update_status", {**IN, ids: [CAMPAIGN], **PAUSED}, f"/{path}/status/update/", method="POST",
           body={**IN, ids: [CAMPAIGN], **PAUSED})
      for entity, path, ids in [("campaigns", "campaign", "campaign_ids"), ("ad_groups", "adgroup", "adgroup_ids"),
                                ("ads", "ad", "ad_ids")]),
]  # fmt: skip
REFUSED = [
    Refused("campaigns.list", {}, "advertiser_id", "advertiser_id is missing"),
    Refused("campaigns.list", {**IN, "page_size": 1001}, "page_size", "at most 1000"),
    Refused("spark_ads.list", {**IN, "page_size": 51}, "page_size", "at most 50"),
    Refused("advertisers.list", {"advertiser_ids": ID}, "advertiser_ids", "must match"),
    Refused("ads_reports_daily.list", {**IN, "start_date": "2026-01-01"}, "end_date", "end_date is missing"),
    Refused("ads.update_status", {**IN, "ad_ids": ["1"], "operation_status": "PAUSE"}, "operation_status", "DISABLE"),
]
INFO = {"page": 1, "page_size": 1, "total_number": 2, "total_page": 2}
META = {"page_info": INFO, "total_pages": 2}


def page(*records: dict, info: dict | None = None) -> dict:
    """What the application answers to a list."""
    return {"code": 0, "message": "OK", "request_id": "r", "data": {"list": list(records), "page_info": info or INFO}}


ROW = {"dimensions": {"ad_id": "1"}, "metrics": {"spend": "1.50"}}
ANSWERS = [
    Answer("campaigns.list", page({"campaign_id": CAMPAIGN}), [{"campaign_id": CAMPAIGN}], META),
    Answer("ads_reports_daily.list", page(ROW), [ROW], META),
    Answer("advertisers.list", {"code": 0, "data": {"list": [IN]}}, [IN], None),
    Answer("users.get", {"code": 0, "data": {"core_user_id": "1"}}, {"core_user_id": "1"}, None),
]
FAILURES = [
    Failure("campaigns.list", status, {"code": code, "message": "It failed", "request_id": "r1", "data": {}}, error,
            str(code), "It failed", request_id="r1", **more)
    for status, code, error, more in [
        (200, 40002, UpstreamRejected, {}),
        (200, 40001, UpstreamRejected, {}),
        (200, 40105, ReauthorizationRequired, {}),
        (200, 40007, UpstreamNotFound, {}),
        (200, 40100, UpstreamRateLimited, {}),
        (200, 50000, UpstreamError, {}),
        (400, 40002, UpstreamRejected, {}),
        (401, 40105, ReauthorizationRequired, {}),
        (404, 40008, UpstreamNotFound, {}),
        (429, 40100, UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, 50000, UpstreamError, {}),
    ]
]  # fmt: skip
PAGES = [
    Pages(
        "campaigns.list",
        {**IN, "page_size": 1},
        [page({"campaign_id": "2"}), page({"campaign_id": "1"}, info={**INFO, "page": 2})],
        [[{"campaign_id": "2"}], [{"campaign_id": "1"}]],
        [f"/open_api/v1.3/campaign/get/?advertiser_id={ID}&page={number}&page_size=1" for number in (1, 2)],
    ),
]
CASES = Cases(
    "tiktok-marketing",
    "https://business-api.tiktok.com/open_api/v1.3",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"access_token": "t"}, "t")],
    check=("/open_api/v1.3/user/info/", {"code": 0, "data": {"core_user_id": "1"}}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "access_token")],
)
