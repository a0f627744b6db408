"""The cases of Amazon Seller Partner: the token in a header of its own, marketplaces of the connector, report files."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ADDRESS = "https://sellingpartnerapi-na.amazon.com"
ORDER, ASIN, MARKET = "111-2222222-3333333", "B08N5WRWNW", "ATVPDKIKX0DER"
SINCE = "2026-01-01T00:00:00Z"
IN, IN_ORDERS = {"marketplaceIds": MARKET}, {"MarketplaceIds": MARKET}
SUMMARIES = {"includedData": "summaries"}
LISTING = {"sellerId": "A1", "sku": "SHOE 42"}
STOCK = {"op": "replace", "path": "/attributes/fulfillment_availability", "value": [{"quantity": 12}]}
PACKAGE = {
    "packageReferenceId": "1",
    "carrierCode": "UPS",
    "trackingNumber": "1Z9",
    "shipDate": SINCE,
    "orderItems": [{"orderItemId": "7", "quantity": 1}],
}
TWO_YEARS = "the SDK adds a time of its own, which the application refuses beside the other one"
CALLS = [
    Call("marketplace_participations.list", {}, "/sellers/v1/marketplaceParticipations"),
    Call("orders.list", {"CreatedAfter": SINCE}, "/orders/v0/orders",
         {**IN_ORDERS, "CreatedAfter": SINCE, "MaxResultsPerPage": "100"}),
    Call("orders.list",
         {"MarketplaceIds": "A1,A2", "LastUpdatedAfter": SINCE, "OrderStatuses": ["Unshipped", "Shipped"],
          "MaxResultsPerPage": 5, "NextToken": "t1"},
         "/orders/v0/orders",
         {"MarketplaceIds": "A1,A2", "LastUpdatedAfter": SINCE, "OrderStatuses": "Unshipped,Shipped",
          "MaxResultsPerPage": "5", "NextToken": "t1"}, sdk_differs=TWO_YEARS),
    Call("orders.get", {"orderId": ORDER}, f"/orders/v0/orders/{ORDER}"),
    Call("orders.confirm_shipment", {"orderId": ORDER, "marketplaceId": MARKET, "packageDetail": PACKAGE},
         f"/orders/v0/orders/{ORDER}/shipmentConfirmation", method="POST",
         body={"marketplaceId": MARKET, "packageDetail": PACKAGE}),
    Call("order_items.list", {"orderId": ORDER}, f"/orders/v0/orders/{ORDER}/orderItems"),
    Call("list_financial_event_groups.list", {"FinancialEventGroupStartedAfter": SINCE},
         "/finances/v0/financialEventGroups", {"FinancialEventGroupStartedAfter": SINCE, "MaxResultsPerPage": "100"}),
    Call("list_financial_events.list", {"PostedAfter": SINCE}, "/finances/v0/financialEvents",
         {"PostedAfter": SINCE, "MaxResultsPerPage": "100"}),
    Call("catalog_items.list", {"keywords": "shoes"}, "/catalog/2022-04-01/items",
         {**IN, "keywords": "shoes", **SUMMARIES, "pageSize": "10"}),
    Call("catalog_items.list", {"identifiers": [1, 2], "identifiersType": "EAN", "pageToken": "t1"},
         "/catalog/2022-04-01/items",
         {**IN, "identifiers": "1,2", "identifiersType": "EAN", **SUMMARIES, "pageSize": "10", "pageToken": "t1"},
         sdk_differs="the SDK always searches for words too"),
    Call("catalog_items.get", {"asin": ASIN}, f"/catalog/2022-04-01/items/{ASIN}", {**IN, **SUMMARIES}),
    Call("listings_items.list", {"sellerId": "A1"}, "/listings/2021-08-01/items/A1",
         {**IN, **SUMMARIES, "pageSize": "10"}),
    Call("listings_items.get", LISTING, "/listings/2021-08-01/items/A1/SHOE%2042",
         {**IN, "includedData": "summaries,issues,offers"}),
    Call("listings_items.update", {**LISTING, "productType": "SHOES", "patches": [STOCK]},
         "/listings/2021-08-01/items/A1/SHOE%2042", IN, method="PATCH",
         body={"productType": "SHOES", "patches": [STOCK]}),
    Call("listings_items.delete", LISTING, "/listings/2021-08-01/items/A1/SHOE%2042", IN, method="DELETE"),
    Call("fba_inventory.list", {"details": True}, "/fba/inventory/v1/summaries",
         {"granularityType": "Marketplace", "granularityId": MARKET, **IN, "details": "true"}),
    Call("reports.list", {"processingStatuses": "DONE"}, "/reports/2021-06-30/reports",
         {"reportTypes": "GET_MERCHANT_LISTINGS_ALL_DATA", "processingStatuses": "DONE", **IN, "pageSize": "10"}),
    Call("reports.list", {"nextToken": "t1"}, "/reports/2021-06-30/reports", {"nextToken": "t1"},
         sdk_differs="the application refuses other params beside the token"),
    Call("reports.get", {"reportId": "5"}, "/reports/2021-06-30/reports/5"),
    Call("reports.create", {"reportType": "X", "marketplaceIds": [MARKET], "dataStartTime": SINCE},
         "/reports/2021-06-30/reports", method="POST",
         body={"reportType": "X", "marketplaceIds": [MARKET], "dataStartTime": SINCE}),
    Call("reports.cancel", {"reportId": "5"}, "/reports/2021-06-30/reports/5", method="DELETE"),
    Call("report_documents.get", {"reportDocumentId": "amzn1.spdoc.1"}, "/reports/2021-06-30/documents/amzn1.spdoc.1"),
    Call("report_documents.download", {"reportDocumentId": "amzn1.spdoc.1"},
         "/reports/2021-06-30/documents/amzn1.spdoc.1"),
]  # fmt: skip
REFUSED = [
    Refused("orders.list", {}, "", "one of"),
    Refused("orders.list", {"CreatedAfter": SINCE, "LastUpdatedAfter": SINCE}, "", "one of"),
    Refused("orders.list", {"CreatedAfter": SINCE, "MaxResultsPerPage": 101}, "MaxResultsPerPage", "at most 100"),
    Refused("catalog_items.list", {"identifiers": "1"}, "", "one of"),
    Refused("listings_items.update", {**LISTING, "productType": "SHOES", "patches": []}, "patches", "at least 1"),
]
ANSWERS = [
    Answer("orders.list", {"payload": {"Orders": [{"AmazonOrderId": ORDER}], "NextToken": "t1"}},
           [{"AmazonOrderId": ORDER}], {"next_token": "t1"}),
    Answer("orders.get", {"payload": {"AmazonOrderId": ORDER}}, {"AmazonOrderId": ORDER}, None),
    Answer("list_financial_events.list", {"payload": {"FinancialEvents": {"RefundEventList": [{"PostedDate": SINCE}]}}},
           [{"type": "RefundEventList", "value": [{"PostedDate": SINCE}]}], {"next_token": None}),
    Answer("catalog_items.list", {"numberOfResults": 1, "pagination": {}, "items": [{"asin": ASIN}]},
           [{"asin": ASIN}], {"next_token": None, "number_of_results": 1}),
]  # fmt: skip
FAILURES = [
    Failure("orders.get", status, {"errors": [{"code": code, "message": "It failed", "details": ""}]}, error, code,
            "It failed", **more)
    for status, code, error, more in [
        (400, "InvalidInput", UpstreamRejected, {}),
        (401, "Unauthorized", ReauthorizationRequired, {}),
        (403, "Unauthorized", UpstreamRejected, {}),
        (404, "NotFound", UpstreamNotFound, {}),
        (429, "QuotaExceeded", UpstreamRateLimited, {"retry_after": 30}),
        (500, "InternalFailure", UpstreamError, {}),
    ]
]  # fmt: skip
REPORTS = {"reportTypes": "X", "pageSize": 1}
PAGES = [
    Pages(
        "reports.list",
        REPORTS,
        [{"reports": [{"reportId": "2"}], "nextToken": "t1"}, {"reports": [{"reportId": "1"}]}],
        [[{"reportId": "2"}], [{"reportId": "1"}]],
        [
            f"/reports/2021-06-30/reports?reportTypes=X&marketplaceIds={MARKET}&pageSize=1",
            "/reports/2021-06-30/reports?nextToken=t1",
        ],
    ),
]
TOKENS = {"lwa_app_id": "app", "lwa_client_secret": "s", "refresh_token": "r", "access_token": "t"}
CASES = Cases(
    "amazon-seller-partner",
    ADDRESS,
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(TOKENS, "t")],
    check=("/sellers/v1/marketplaceParticipations", {"payload": []}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"refresh_token": "r", "lwa_client_secret": "s"}, "lwa_app_id")],
    environment={"region": "na", "marketplace_id": MARKET},
)
