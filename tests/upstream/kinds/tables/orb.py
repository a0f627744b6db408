"""The cases of Orb: cursors, filters in brackets, bodies of JSON."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID = "gAmUM7YmGDuRHkTN"
SINCE = "2026-02-01T00:00:00Z"
LISTS = {name: f"/{name}" for name in ("customers", "subscriptions", "plans", "invoices")}
PAGE = {"limit": "50"}
BRACKETS = "filters have no brackets there, which the application's own client sends: invoice_date[gte], status[]"
CALLS = [
    *(Call(f"{entity}.list", {}, path, PAGE) for entity, path in LISTS.items()),
    *(
        Call(f"{entity}.list", {"limit": 5, "cursor": "c1"}, path, {"limit": "5", "cursor": "c1"})
        for entity, path in LISTS.items()
    ),
    *(Call(f"{entity}.get", {f"{entity[:-1]}_id": ID}, f"{path}/{ID}") for entity, path in LISTS.items()),
    Call("subscriptions.list", {"status": "active"}, "/subscriptions", {"status": "active", **PAGE}),
    Call("subscriptions.list", {"customer_id": ID}, "/subscriptions", {"customer_id[]": ID, **PAGE},
         sdk_differs=BRACKETS),
    Call("invoices.list", {"customer_id": ID}, "/invoices", {"customer_id": ID, **PAGE}),
    Call("invoices.list", {"invoice_date_gte": SINCE, "status": "draft"}, "/invoices",
         {"invoice_date[gte]": SINCE, "status[]": "draft", **PAGE}, sdk_differs=BRACKETS),
    Call("customers.create", {"name": "Ada", "email": "ada@example.com", "idempotency_key": "k"}, "/customers",
         method="POST", body={"name": "Ada", "email": "ada@example.com"}, headers={"Idempotency-Key": "k"}),
    Call("customers.update", {"customer_id": ID, "metadata": {"tier": None}}, f"/customers/{ID}", method="PUT",
         body={"metadata": {"tier": None}}),
    Call("subscriptions.create", {"external_customer_id": "u7", "plan_id": "p", "start_date": SINCE}, "/subscriptions",
         method="POST", body={"external_customer_id": "u7", "plan_id": "p", "start_date": SINCE}),
    Call("subscriptions.cancel", {"subscription_id": ID, "cancel_option": "immediate"}, f"/subscriptions/{ID}/cancel",
         method="POST", body={"cancel_option": "immediate"}),
    Call("invoices.issue", {"invoice_id": ID, "synchronous": True}, f"/invoices/{ID}/issue", method="POST",
         body={"synchronous": True}),
]  # fmt: skip
REFUSED = [
    Refused("customers.list", {"limit": 101}, "limit", "at most 100"),
    Refused("invoices.list", {"invoice_date_gt": "yesterday"}, "invoice_date_gt", "date-time"),
    Refused("subscriptions.cancel", {"subscription_id": ID}, "cancel_option", "cancel_option is missing"),
    Refused("customers.create", {"name": "Ada"}, "email", "email is missing"),
]
MORE = {"has_more": True, "next_cursor": "c1"}
LAST = {"has_more": False, "next_cursor": None}
ANSWERS = [
    Answer("customers.list", {"data": [{"id": ID}], "pagination_metadata": MORE}, [{"id": ID}], {"next_cursor": "c1"}),
    Answer("plans.list", {"data": [], "pagination_metadata": LAST}, [], {"next_cursor": None}),
    Answer("customers.get", {"id": ID, "name": "Ada"}, {"id": ID, "name": "Ada"}, None),
]
ERRORS = "https://docs.withorb.com/reference/error-responses#"
FAILURES = [
    Failure("customers.get", status, {"type": ERRORS + code, "status": status, "title": "Failed",
            "detail": "It failed"}, error, ERRORS + code, "It failed", **more)
    for status, code, error, more in [
        (400, "400-constraint-violation", UpstreamRejected, {}),
        (401, "401-authentication-error", ReauthorizationRequired, {}),
        (404, "404-resource-not-found", UpstreamNotFound, {}),
        (409, "409-resource-conflict", UpstreamRejected, {}),
        (429, "429-too-many-requests", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "500-internal-server-error", UpstreamError, {}),
    ]
]  # fmt: skip
PAGES = [
    Pages(
        "customers.list",
        {"limit": 1},
        [
            {"data": [{"id": "2"}], "pagination_metadata": MORE},
            {"data": [{"id": "1"}], "pagination_metadata": LAST},
        ],
        [[{"id": "2"}], [{"id": "1"}]],
        ["/v1/customers?limit=1", "/v1/customers?limit=1&cursor=c1"],
    ),
]
CASES = Cases(
    "orb",
    "https://api.billwithorb.com/v1",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"api_key": "t"}, "Bearer t")],
    check=("/v1/customers?limit=1", {"data": [], "pagination_metadata": LAST}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "api_key")],
)
