"""The cases of PayPal: client credentials, links by their relation, a search by POST, amounts as text."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

HOST = "api-m.sandbox.paypal.com"
AT = f"https://{HOST}"
REPORT, PRODUCTS, INVOICES = "/v1/reporting/transactions", "/v1/catalogs/products", "/v2/invoicing/invoices"
DISPUTES, CAPTURES = "/v1/customer/disputes", "/v2/payments/captures"
JANUARY = {"start_date": "2026-01-01T00:00:00Z", "end_date": "2026-01-31T00:00:00Z"}
REPORTED = {"fields": "all", "page_size": "100", "balance_affecting_records_only": "Y"}
MONEY = {"currency_code": "USD", "value": "10.99"}
INVOICE, DETAIL = {"invoice_id": "INV2-1"}, {"detail": {"currency_code": "USD"}}
WHOLE = {"Prefer": "return=representation"}
CHANGE = [{"op": "replace", "path": "/description", "value": "Films"}]
CALLS = [
    Call("balances.list", {}, "/v1/reporting/balances"),
    Call("balances.list", {"as_of_time": "2026-01-31T00:00:00Z", "currency_code": "USD"}, "/v1/reporting/balances",
         {"as_of_time": "2026-01-31T00:00:00Z", "currency_code": "USD"}),
    Call("transactions.list", JANUARY, REPORT, {**JANUARY, **REPORTED}),
    Call("transactions.list", {**JANUARY, "transaction_status": "S", "page": 2, "page_size": 5}, REPORT,
         {**JANUARY, **REPORTED, "transaction_status": "S", "page": "2", "page_size": "5"}),
    Call("list_payments.list", {"start_time": "2026-01-01T00:00:00Z", "start_id": "PAY-2"}, "/v1/payments/payment",
         {"start_time": "2026-01-01T00:00:00Z", "start_id": "PAY-2", "count": "10"}),
    Call("list_disputes.list", {"update_time_after": "2026-01-01T00:00:00.000Z", "next_page_token": "t2"}, DISPUTES,
         {"update_time_after": "2026-01-01T00:00:00.000Z", "next_page_token": "t2", "page_size": "10"}),
    Call("disputes.get", {"dispute_id": "PP-D-1"}, f"{DISPUTES}/PP-D-1"),
    Call("disputes.accept_claim", {"dispute_id": "PP-D-1", "note": "Lost"}, f"{DISPUTES}/PP-D-1/accept-claim",
         method="POST", body={"note": "Lost"}),
    Call("list_products.list", {"page": 2}, PRODUCTS, {"page": "2", "page_size": "10"}),
    Call("show_product_details.get", {"id": "PROD-1"}, f"{PRODUCTS}/PROD-1"),
    Call("show_product_details.create", {"name": "Films", "type": "SERVICE"}, PRODUCTS, method="POST",
         body={"name": "Films", "type": "SERVICE"}, headers=WHOLE),
    Call("show_product_details.update", {"id": "PROD-1", "operations": CHANGE}, f"{PRODUCTS}/PROD-1", method="PATCH",
         body=CHANGE),
    Call("search_invoices.list", {"creation_date_range": {"start": "2026-01-01", "end": "2026-01-31"}, "page": 2},
         "/v2/invoicing/search-invoices", {"page": "2", "page_size": "20"}, "POST",
         {"creation_date_range": {"start": "2026-01-01", "end": "2026-01-31"}}),
    Call("search_invoices.list", {"status": ["UNPAID"]}, "/v2/invoicing/search-invoices", {"page_size": "20"}, "POST",
         {"status": ["UNPAID"]}),
    Call("invoices.get", INVOICE, f"{INVOICES}/INV2-1"),
    Call("invoices.create", DETAIL, INVOICES, method="POST", body=DETAIL, headers=WHOLE),
    Call("invoices.update", {**INVOICE, **DETAIL, "send_to_recipient": False}, f"{INVOICES}/INV2-1",
         {"send_to_recipient": "false"}, "PUT", DETAIL),
    Call("invoices.delete", INVOICE, f"{INVOICES}/INV2-1", method="DELETE"),
    Call("invoices.send", {**INVOICE, "note": "Hi"}, f"{INVOICES}/INV2-1/send", method="POST", body={"note": "Hi"}),
    Call("invoices.remind", INVOICE, f"{INVOICES}/INV2-1/remind", method="POST", body={}),
    Call("invoices.cancel", INVOICE, f"{INVOICES}/INV2-1/cancel", method="POST", body={}),
    Call("invoices.record_payment", {**INVOICE, "method": "CASH", "amount": MONEY}, f"{INVOICES}/INV2-1/payments",
         method="POST", body={"method": "CASH", "amount": MONEY}),
    Call("captures.get", {"capture_id": "2G"}, f"{CAPTURES}/2G"),
    Call("captures.refund", {"capture_id": "2G", "request_id": "r1", "amount": MONEY}, f"{CAPTURES}/2G/refund",
         method="POST", body={"amount": MONEY}, headers={**WHOLE, "PayPal-Request-Id": "r1"}),
    Call("refunds.get", {"refund_id": "1J"}, "/v2/payments/refunds/1J"),
]  # fmt: skip
REFUSED = [
    Refused("transactions.list", {"start_date": "2026-01-01"}, "end_date", "end_date is missing"),
    Refused("transactions.list", {**JANUARY, "page_size": 501}, "page_size", "at most 500"),
    Refused("list_payments.list", {"count": 21}, "count", "at most 20"),
    Refused("captures.refund", {"capture_id": "2G", "amount": {"value": "1"}}, "amount.currency_code", "is missing"),
]
NEXT = {"rel": "next", "href": f"{AT}{DISPUTES}?page_size=1&next_page_token=t2", "method": "GET"}
FIRST = {"rel": "first", "href": f"{AT}{DISPUTES}?page_size=1", "method": "GET"}
ANSWERS = [
    Answer("balances.list", {"balances": [{"currency": "USD"}], "account_id": "A"}, [{"currency": "USD"}], None),
    Answer("list_disputes.list", {"items": [], "links": [FIRST, NEXT]}, [], {"next": NEXT["href"]}),
    Answer("list_disputes.list", {"items": [], "links": [FIRST]}, [], {"next": None}),
    Answer("list_payments.list", {"payments": [{"id": "PAY-1"}], "count": 1}, [{"id": "PAY-1"}], {"next_id": None}),
]
FAILURES = [
    Failure("invoices.get", status, {"name": code, "message": "It failed", "debug_id": "d1"}, error, code,
            "It failed", "d1", **more)
    for status, code, error, more in [
        (400, "INVALID_REQUEST", UpstreamRejected, {}),
        (401, "AUTHENTICATION_FAILURE", ReauthorizationRequired, {}),
        (403, "NOT_AUTHORIZED", UpstreamRejected, {}),
        (404, "RESOURCE_NOT_FOUND", UpstreamNotFound, {}),
        (422, "UNPROCESSABLE_ENTITY", UpstreamRejected, {}),
        (429, "RATE_LIMIT_REACHED", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "INTERNAL_SERVER_ERROR", UpstreamError, {}),
    ]
]  # fmt: skip
PAGES = [
    Pages(
        "list_disputes.list",
        {"page_size": 1},
        [{"items": [{"dispute_id": "2"}], "links": [FIRST, NEXT]}, {"items": [{"dispute_id": "1"}], "links": [FIRST]}],
        [[{"dispute_id": "2"}], [{"dispute_id": "1"}]],
        [f"{DISPUTES}?page_size=1", f"{DISPUTES}?page_size=1&next_page_token=t2"],
    ),
    Pages(
        "list_products.list",
        {"page_size": 1},
        [
            {"products": [{"id": "2"}], "links": [{"rel": "next", "href": f"{AT}{PRODUCTS}?page_size=1&page=2"}]},
            {"products": [{"id": "1"}], "links": []},
        ],
        [[{"id": "2"}], [{"id": "1"}]],
        [f"{PRODUCTS}?page_size=1", f"{PRODUCTS}?page_size=1&page=2"],
    ),
    Pages(
        "transactions.list",
        {**JANUARY, "page_size": 1},
        [
            {"transaction_details": [{"transaction_info": {}}], "total_items": 2, "total_pages": 2},
            {"transaction_details": [{"payer_info": {}}], "total_items": 2, "total_pages": 2},
        ],
        [[{"transaction_info": {}}], [{"payer_info": {}}]],
        [
            f"{REPORT}?start_date=2026-01-01T00%3A00%3A00Z&end_date=2026-01-31T00%3A00%3A00Z&fields=all&page_size=1"
            f"{page}&balance_affecting_records_only=Y"
            for page in ("", "&page=2")
        ],
    ),
]
CASES = Cases(
    "paypal-transaction",
    AT,
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"client_id": "app", "client_secret": "s", "access_token": "t"}, "Bearer t")],
    check=("/v1/reporting/balances", {"balances": []}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"client_id": "app"}, "client_secret")],
    environment={"host": HOST},
)
