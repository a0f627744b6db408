"""The cases of Chargebee: records are wrapped by their name, bodies are forms."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.kinds.members import FORM
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID = "16BjumTBW1Vki7T"
NEXT = '["1517505643000","239000"]'
#: entity → path of its list
LISTS = {
    "customer": "/customers",
    "subscription": "/subscriptions",
    "invoice": "/invoices",
    "credit_note": "/credit_notes",
    "coupon": "/coupons",
    "transaction": "/transactions",
    "event": "/events",
    "order": "/orders",
    "item": "/items",
    "item_price": "/item_prices",
    "payment_source": "/payment_sources",
}
PAGE = {"limit": "100"}


def form(action: str, params: dict[str, Any], path: str, body: str) -> Call:
    return Call(action, params, path, method="POST", body=body, content_type=FORM)


CALLS = [
    *(Call(f"{entity}.list", {}, path, PAGE) for entity, path in LISTS.items()),
    *(
        Call(f"{entity}.list", {"limit": 5, "offset": NEXT}, path, {"limit": "5", "offset": NEXT})
        for entity, path in LISTS.items()
    ),
    *(Call(f"{entity}.get", {"id": ID}, f"{path}/{ID}") for entity, path in LISTS.items()),
    Call("customer.list", {"email": "ada@example.com"}, "/customers", {"email[is]": "ada@example.com", **PAGE}),
    Call("subscription.list", {"customer_id": ID, "status": "active"}, "/subscriptions",
         {"customer_id[is]": ID, "status[is]": "active", **PAGE}),
    Call("invoice.list", {"updated_after": 1_767_225_600}, "/invoices", {"updated_at[after]": "1767225600", **PAGE}),
    Call("event.list", {"event_type": "subscription_cancelled", "occurred_after": 5}, "/events",
         {"event_type[is]": "subscription_cancelled", "occurred_at[after]": "5", **PAGE}),
    form("customer.create", {"first_name": "Ada Ö", "email": "a+b@example.com", "billing_address": {"city": "Cork"}},
         "/customers", "first_name=Ada Ö&email=a+b@example.com&billing_address[city]=Cork"),
    form("customer.update", {"id": ID, "auto_collection": "off", "net_term_days": 14}, f"/customers/{ID}",
         "auto_collection=off&net_term_days=14"),
    form("subscription.cancel", {"id": ID, "end_of_term": True}, f"/subscriptions/{ID}/cancel_for_items",
         "end_of_term=true"),
    form("subscription.pause", {"id": ID, "pause_option": "specific_date", "pause_date": 9},
         f"/subscriptions/{ID}/pause", "pause_option=specific_date&pause_date=9"),
    form("subscription.resume", {"id": ID, "resume_option": "immediately"}, f"/subscriptions/{ID}/resume",
         "resume_option=immediately"),
]  # fmt: skip
REFUSED = [
    Refused("customer.list", {"limit": 101}, "limit", "at most 100"),
    Refused("invoice.list", {"status": "open"}, "status", "payment_due"),
    Refused("subscription.cancel", {}, "id", "id is missing"),
    Refused("customer.update", {"id": ID, "auto_collection": "yes"}, "auto_collection", "off"),
]
ANSWERS = [
    Answer("customer.list", {"list": [{"customer": {"id": ID}, "card": {"last4": "1111"}}], "next_offset": NEXT},
           [{"id": ID}], {"next_offset": NEXT}),
    Answer("invoice.list", {"list": []}, [], {"next_offset": None}),
    Answer("customer.get", {"customer": {"id": ID}, "card": {"last4": "1111"}}, {"id": ID}, None),
    Answer("subscription.cancel", {"subscription": {"id": ID, "status": "cancelled"}, "customer": {"id": "c"}},
           {"id": ID, "status": "cancelled"}, None),
]  # fmt: skip
FAILURES = [
    Failure("customer.get", status, {"message": "It failed", "type": "invalid_request", "api_error_code": code,
            "param": "id"}, error, code, "It failed", field="id", **more)
    for status, code, error, more in [
        (400, "param_wrong_value", UpstreamRejected, {}),
        (401, "api_authentication_failed", ReauthorizationRequired, {}),
        (403, "api_authorization_failed", UpstreamRejected, {}),
        (404, "resource_not_found", UpstreamNotFound, {}),
        (409, "invalid_state_for_request", UpstreamRejected, {}),
        (429, "api_request_limit_exceeded", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "internal_error", UpstreamError, {}),
    ]
]  # fmt: skip
PAGES = [
    Pages(
        "customer.list",
        {"limit": 1},
        [{"list": [{"customer": {"id": "1"}}], "next_offset": "n1"}, {"list": [{"customer": {"id": "2"}}]}],
        [[{"id": "1"}], [{"id": "2"}]],
        ["/api/v2/customers?limit=1", "/api/v2/customers?limit=1&offset=n1"],
    ),
]
CASES = Cases(
    "chargebee",
    "https://acme-test.chargebee.com/api/v2",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"api_key": "test_k"}, "Basic dGVzdF9rOg==")],
    check=("/api/v2/events?limit=1", {"list": []}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "api_key")],
    environment={"site": "acme-test"},
)
