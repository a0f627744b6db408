"""The cases of Pinterest: bookmarks, lists below ad accounts and boards, bodies of JSON."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID = "549755885175"
ACCOUNT, BOARD, PAGE = {"ad_account_id": ID}, {"board_id": ID}, {"page_size": "25"}
OF_ACCOUNTS = ("campaigns", "ad_groups", "ads", "audiences", "conversion_tags", "customer_lists")
SHARED = {"include_shared_accounts": "true"}
PICTURE = {"source_type": "image_url", "url": "https://example.com/a.jpg"}
CALLS = [
    Call("ad_accounts.list", {}, "/ad_accounts", {**SHARED, **PAGE}),
    Call("ad_accounts.get", ACCOUNT, f"/ad_accounts/{ID}"),
    Call("boards.list", {}, "/boards", PAGE),
    Call("boards.list", {"page_size": 5, "bookmark": "c1", "privacy": "SECRET"}, "/boards",
         {"page_size": "5", "bookmark": "c1", "privacy": "SECRET"}),
    Call("boards.get", BOARD, f"/boards/{ID}"),
    Call("board_sections.list", BOARD, f"/boards/{ID}/sections", PAGE),
    Call("board_pins.list", BOARD, f"/boards/{ID}/pins", PAGE),
    *(Call(f"{entity}.list", ACCOUNT, f"/ad_accounts/{ID}/{entity}", PAGE) for entity in OF_ACCOUNTS),
    Call("ads.list", {**ACCOUNT, "entity_statuses": ["ACTIVE"], "order": "ASCENDING"}, f"/ad_accounts/{ID}/ads",
         {"entity_statuses": "ACTIVE", "order": "ASCENDING", **PAGE}),
    Call("keywords.list", {**ACCOUNT, "ad_group_id": "2"}, f"/ad_accounts/{ID}/keywords", {"ad_group_id": "2", **PAGE}),
    Call("catalogs.list", {}, "/catalogs", PAGE),
    Call("catalogs_feeds.list", {}, "/catalogs/feeds", PAGE),
    Call("catalogs_product_groups.list", {}, "/catalogs/product_groups", PAGE),
    Call("boards.create", {"name": "Recipes", "privacy": "SECRET"}, "/boards", method="POST",
         body={"name": "Recipes", "privacy": "SECRET"}),
    Call("boards.update", {**BOARD, "name": "Food"}, f"/boards/{ID}", method="PATCH", body={"name": "Food"}),
    Call("boards.delete", BOARD, f"/boards/{ID}", method="DELETE"),
    Call("board_sections.create", {**BOARD, "name": "Desserts"}, f"/boards/{ID}/sections", method="POST",
         body={"name": "Desserts"}),
    Call("board_pins.create", {**BOARD, "media_source": PICTURE, "title": "Cake"}, "/pins", method="POST",
         body={**BOARD, "media_source": PICTURE, "title": "Cake"}),
    Call("board_pins.delete", {"pin_id": "8"}, "/pins/8", method="DELETE"),
]  # fmt: skip
REFUSED = [
    Refused("boards.list", {"page_size": 251}, "page_size", "at most 250"),
    Refused("campaigns.list", {}, "ad_account_id", "ad_account_id is missing"),
    Refused("keywords.list", ACCOUNT, "ad_group_id", "ad_group_id is missing"),
    Refused("boards.create", {"name": "Recipes", "privacy": "PROTECTED"}, "privacy", "SECRET"),
]
ANSWERS = [
    Answer("boards.list", {"items": [{"id": ID}], "bookmark": "c1"}, [{"id": ID}], {"cursor": "c1"}),
    Answer("catalogs.list", {"items": [], "bookmark": None}, [], {"cursor": None}),
    Answer("boards.get", {"id": ID, "name": "Recipes"}, {"id": ID, "name": "Recipes"}, None),
]
FAILURES = [
    Failure("boards.get", status, {"code": code, "message": "It failed"}, error, str(code), "It failed", **more)
    for status, code, error, more in [
        (400, 1, UpstreamRejected, {}),
        (401, 2, ReauthorizationRequired, {}),
        (403, 29, UpstreamRejected, {}),
        (404, 40, UpstreamNotFound, {}),
        (429, 8, UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, 0, UpstreamError, {}),
    ]
]
PAGES = [
    Pages(
        "boards.list",
        {"page_size": 1},
        [{"items": [{"id": "2"}], "bookmark": "c1"}, {"items": [{"id": "1"}], "bookmark": None}],
        [[{"id": "2"}], [{"id": "1"}]],
        ["/v5/boards?page_size=1", "/v5/boards?page_size=1&bookmark=c1"],
    ),
]
TOKENS = {"refresh_token": "r", "access_token": "t", "client_id": "app", "client_secret": "s"}
CASES = Cases(
    "pinterest",
    "https://api.pinterest.com/v5",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(TOKENS, "Bearer t")],
    check=("/v5/ad_accounts?page_size=1&include_shared_accounts=true", {"items": [], "bookmark": None}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"access_token": "t"}, "refresh_token")],
)
