"""The cases of WooCommerce: numbered pages with a Link header, bodies of JSON, some lists without pages."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

#: entity → path of its list, of those with pages
PAGED = {
    "customers": "/customers",
    "orders": "/orders",
    "products": "/products",
    "coupons": "/coupons",
    "product_categories": "/products/categories",
    "product_tags": "/products/tags",
    "product_reviews": "/products/reviews",
    "product_attributes": "/products/attributes",
    "tax_rates": "/taxes",
}
#: likewise, of those that are returned as a whole
WHOLE = {
    "payment_gateways": "/payment_gateways",
    "shipping_methods": "/shipping_methods",
    "shipping_zones": "/shipping/zones",
}
PAGE = {"per_page": "10"}
SINCE = "2026-02-01T00:00:00"
LINE = {"line_items": [{"product_id": 93, "quantity": 2}]}
REPEATED = "lists in queries are product=1&product=2 there, of which PHP keeps the last"


def sent(method: str, action: str, params: dict[str, Any], path: str, body: Any) -> Call:
    return Call(action, params, path, method=method, body=body)


CALLS = [
    *(Call(f"{entity}.list", {}, path, PAGE) for entity, path in PAGED.items()),
    *(
        Call(f"{entity}.list", {"page": 2, "per_page": 50}, path, {"page": "2", "per_page": "50"})
        for entity, path in PAGED.items()
    ),
    *(Call(f"{entity}.get", {"id": 25}, f"{path}/25") for entity, path in PAGED.items()),
    *(Call(f"{entity}.list", {}, path) for entity, path in WHOLE.items()),
    Call("payment_gateways.get", {"id": "bacs"}, "/payment_gateways/bacs"),
    Call("shipping_methods.get", {"id": "flat_rate"}, "/shipping_methods/flat_rate"),
    Call("shipping_zones.get", {"id": 0}, "/shipping/zones/0"),
    Call("tax_classes.list", {}, "/taxes/classes"),
    Call("product_variations.list", {"product_id": 22, "sku": "a"}, "/products/22/variations", {"sku": "a", **PAGE}),
    Call("product_variations.get", {"product_id": 22, "id": 733}, "/products/22/variations/733"),
    Call("order_notes.list", {"order_id": 723, "type": "customer"}, "/orders/723/notes", {"type": "customer"}),
    Call("order_notes.get", {"order_id": 723, "id": 281}, "/orders/723/notes/281"),
    Call("refunds.list", {"order_id": 723}, "/orders/723/refunds", PAGE),
    Call("refunds.get", {"order_id": 723, "id": 726}, "/orders/723/refunds/726"),
    Call("customers.list", {"email": "a+b@example.com", "role": "all"}, "/customers",
         {"email": "a+b@example.com", "role": "all", **PAGE}),
    Call("orders.list", {"status": "processing", "modified_after": SINCE, "orderby": "id", "order": "asc"}, "/orders",
         {"status": "processing", "modified_after": SINCE, "orderby": "id", "order": "asc", **PAGE}),
    Call("products.list", {"on_sale": True, "stock_status": "instock", "max_price": "20"}, "/products",
         {"on_sale": "true", "stock_status": "instock", "max_price": "20", **PAGE}),
    Call("product_reviews.list", {"product": [1, 2], "status": "all"}, "/products/reviews",
         [("per_page", "10"), ("product[]", "1"), ("product[]", "2"), ("status", "all")], sdk_differs=REPEATED),
    Call("tax_rates.list", {"class": "standard"}, "/taxes", {"class": "standard", **PAGE}),
    sent("POST", "customers.create", {"email": "ada@example.com", "billing": {"city": "Cork"}}, "/customers",
         {"email": "ada@example.com", "billing": {"city": "Cork"}}),
    sent("PUT", "customers.update", {"id": 25, "first_name": "Ada"}, "/customers/25", {"first_name": "Ada"}),
    sent("POST", "orders.create", {"customer_id": 0, **LINE}, "/orders", {"customer_id": 0, **LINE}),
    sent("PUT", "orders.update", {"id": 727, "status": "completed"}, "/orders/727", {"status": "completed"}),
    sent("POST", "products.create", {"name": "Tea", "regular_price": "2.50"}, "/products",
         {"name": "Tea", "regular_price": "2.50"}),
    sent("PUT", "products.update", {"id": 794, "stock_quantity": 0}, "/products/794", {"stock_quantity": 0}),
    sent("POST", "coupons.create", {"code": "10off", "amount": "10"}, "/coupons", {"code": "10off", "amount": "10"}),
    sent("PUT", "coupons.update", {"id": 719, "usage_limit": 5}, "/coupons/719", {"usage_limit": 5}),
    sent("PUT", "product_variations.update", {"product_id": 22, "id": 733, "regular_price": "10.00"},
         "/products/22/variations/733", {"regular_price": "10.00"}),
    sent("POST", "order_notes.create", {"order_id": 723, "note": "Ok", "customer_note": True}, "/orders/723/notes",
         {"note": "Ok", "customer_note": True}),
    sent("POST", "refunds.create", {"order_id": 723, "amount": "30.00", "api_refund": False}, "/orders/723/refunds",
         {"amount": "30.00", "api_refund": False}),
]  # fmt: skip
REFUSED = [
    Refused("orders.list", {"per_page": 101}, "per_page", "at most 100"),
    Refused("orders.list", {"modified_after": "yesterday"}, "modified_after", "^[0-9]{4}"),
    Refused("products.list", {"stock_status": "none"}, "stock_status", "instock"),
    Refused("order_notes.create", {"order_id": 723}, "note", "note is missing"),
    Refused("coupons.create", {"amount": "10"}, "code", "code is missing"),
]
NEXT = "https://shop.example.com/wp-json/wc/v3/orders?per_page=1&page=2"
ANSWERS = [
    Answer("orders.list", [{"id": 1}], [{"id": 1}], {"next": None}),
    Answer("orders.get", {"id": 1, "status": "completed"}, {"id": 1, "status": "completed"}, None),
    Answer("tax_classes.list", [{"slug": "standard"}], [{"slug": "standard"}], None),
]
FAILURES = [
    Failure("orders.get", status, {"code": code, "message": "It failed", "data": {"status": status}}, error, code,
            "It failed", **more)
    for status, code, error, more in [
        (400, "rest_invalid_param", UpstreamRejected, {}),
        (401, "woocommerce_rest_authentication_error", ReauthorizationRequired, {}),
        (403, "woocommerce_rest_cannot_view", UpstreamRejected, {}),
        (404, "woocommerce_rest_shop_order_invalid_id", UpstreamNotFound, {}),
        (429, "too_many", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "internal_server_error", UpstreamError, {}),
    ]
]  # fmt: skip
PAGES = [
    Pages(
        "orders.list",
        {"per_page": 1},
        [[{"id": 2}], [{"id": 1}]],
        [[{"id": 2}], [{"id": 1}]],
        ["/wp-json/wc/v3/orders?per_page=1", "/wp-json/wc/v3/orders?page=2&per_page=1"],
        headers=[{"link": f'<{NEXT}>; rel="next"'}, {}],
    ),
]
CASES = Cases(
    "woocommerce",
    "https://shop.example.com/wp-json/wc/v3",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"api_key": "ck_1", "api_secret": "cs_1"}, "Basic Y2tfMTpjc18x")],
    check=("/wp-json/wc/v3/customers?per_page=1", [{"id": 1}]),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"api_key": "ck_1"}, "api_secret")],
    environment={"shop": "shop.example.com"},
)
