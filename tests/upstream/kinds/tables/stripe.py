"""The cases of Stripe: bodies are forms, their nested members in brackets."""

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

ID = "x_1MtHbELkdIwHu7ix"
PAGE = {"limit": 25, "starting_after": ID}
ON_PAGE = [("limit", "25"), ("starting_after", ID)]
CREATED = {"created": {"gte": 1_767_225_600, "lt": 1_767_312_000}}
IN_CREATED = [("created[gte]", "1767225600"), ("created[lt]", "1767312000")]
#: entity → path of its list
LISTS = {
    "customers": "/v1/customers",
    "invoices": "/v1/invoices",
    "charges": "/v1/charges",
    "subscriptions": "/v1/subscriptions",
    "refunds": "/v1/refunds",
    "products": "/v1/products",
    "prices": "/v1/prices",
    "balance_transactions": "/v1/balance_transactions",
    "payment_intents": "/v1/payment_intents",
    "disputes": "/v1/disputes",
    "payouts": "/v1/payouts",
}
SEARCHED = ["customers", "invoices", "charges", "subscriptions", "products", "payment_intents"]
QUERY = "metadata['order']:'a&b' AND created>1767225600"
EMPTY_LIST = "empty lists vanish from forms there, so that the list stays as it is"
CLEARED = "members that are null vanish from forms there, so that the value stays as it is"
REPEATED = "lists in queries are ids=a&ids=b there, of which the application reads the last; it reads ids[]=a&ids[]=b"


def form(action: str, params: dict[str, Any], path: str, body: str, method: str = "POST", **more: Any) -> Call:
    return Call(action, params, path, method=method, body=body, content_type=FORM, **more)


FILTERS = [
    ("customers", {"email": "ada+shop@example.com"}, [("email", "ada+shop@example.com")]),
    ("invoices", {"customer": "cus_1", "status": "open"}, [("customer", "cus_1"), ("status", "open")]),
    ("charges", {"payment_intent": "pi_1"}, [("payment_intent", "pi_1")]),
    (
        "subscriptions",
        {"status": "all", "automatic_tax": {"enabled": True}, "current_period_end": {"lte": 5}},
        [("status", "all"), ("automatic_tax[enabled]", "true"), ("current_period_end[lte]", "5")],
    ),
    ("refunds", {"charge": "ch_1"}, [("charge", "ch_1")]),
    ("products", {"active": True, "shippable": False}, [("active", "true"), ("shippable", "false")]),
    ("prices", {"lookup_keys": ["gold", "silver"]}, [("lookup_keys[]", "gold"), ("lookup_keys[]", "silver")]),
    ("balance_transactions", {"type": "charge", "payout": "po_1"}, [("payout", "po_1"), ("type", "charge")]),
    ("payment_intents", {"customer": "cus_1"}, [("customer", "cus_1")]),
    ("disputes", {"charge": "ch_1"}, [("charge", "ch_1")]),
    ("payouts", {"arrival_date": {"gt": 1}, "status": "paid"}, [("arrival_date[gt]", "1"), ("status", "paid")]),
]
READS = [
    *(Call(f"{entity}.list", PAGE, path, ON_PAGE) for entity, path in LISTS.items()),
    *(
        Call(
            f"{entity}.list",
            {"ending_before": ID, **CREATED},
            path,
            [("limit", "10"), ("ending_before", ID), *IN_CREATED],
        )
        for entity, path in LISTS.items()
    ),
    *(Call(f"{entity}.list", params, LISTS[entity], [("limit", "10"), *query]) for entity, params, query in FILTERS),
    Call(
        "products.list",
        {"ids": ["prod_1", "prod_2"]},
        "/v1/products",
        [("limit", "10"), ("ids[]", "prod_1"), ("ids[]", "prod_2")],
        sdk_differs=REPEATED,
    ),
    *(Call(f"{entity}.get", {"id": ID}, f"{path}/{ID}") for entity, path in LISTS.items()),
    *(
        Call(
            f"{entity}.api_search",
            {"query": QUERY, "limit": 5, "page": "p2"},
            f"{LISTS[entity]}/search",
            {"query": QUERY, "limit": "5", "page": "p2"},
        )
        for entity in SEARCHED
    ),
    Call("balance.get", {}, "/v1/balance"),
    Call(
        "payment_methods.list",
        {"customer": "cus_1", "type": "card", **PAGE},
        "/v1/payment_methods",
        [*ON_PAGE, ("customer", "cus_1"), ("type", "card")],
    ),
    Call("payment_methods.get", {"id": ID}, f"/v1/payment_methods/{ID}"),
    Call("payment_links.list", {"active": False}, "/v1/payment_links", [("limit", "10"), ("active", "false")]),
    Call(
        "events.list",
        {"types": ["invoice.paid", "charge.*"], "delivery_success": False, **CREATED},
        "/v1/events",
        [
            *[("limit", "10"), ("types[]", "invoice.paid"), ("types[]", "charge.*"), ("delivery_success", "false")],
            *IN_CREATED,
        ],
    ),
    Call("events.get", {"id": ID}, f"/v1/events/{ID}"),
]
ADDRESS = {"line1": "Mill Lane 1", "city": "Cork", "country": "IE"}
WRITES = [
    form(
        "customers.create",
        {"name": "Ada Ö", "email": "ada@example.com", "address": ADDRESS, "metadata": {"tier": "gold"}},
        "/v1/customers",
        "name=Ada Ö&email=ada@example.com&address[line1]=Mill Lane 1&address[city]=Cork&address[country]=IE"
        "&metadata[tier]=gold",
    ),
    # The key makes a request that is sent twice one.
    form(
        "customers.create",
        {"name": "Ada", "idempotency_key": "order-4711"},
        "/v1/customers",
        "name=Ada",
        headers={"Idempotency-Key": "order-4711"},
    ),
    form("customers.update", {"id": ID, "phone": "+49301"}, f"/v1/customers/{ID}", "phone=+49301"),
    form(
        "customers.update",
        {"id": ID, "description": None, "address": None, "metadata": {"tier": None}},
        f"/v1/customers/{ID}",
        "description=&address=&metadata[tier]=",
        sdk_differs=CLEARED,
    ),
    Call("customers.delete", {"id": ID}, f"/v1/customers/{ID}", method="DELETE"),
    form(
        "invoices.create",
        {"customer": "cus_1", "auto_advance": False, "collection_method": "send_invoice", "days_until_due": 14},
        "/v1/invoices",
        "customer=cus_1&auto_advance=false&collection_method=send_invoice&days_until_due=14",
    ),
    form(
        "invoice_finalizations.create",
        {"id": ID, "auto_advance": True},
        f"/v1/invoices/{ID}/finalize",
        "auto_advance=true",
    ),
    form("invoice_sends.create", {"id": ID}, f"/v1/invoices/{ID}/send", ""),
    form(
        "invoice_items.create",
        {"customer": "cus_1", "pricing": {"price": "price_1"}, "quantity": 2, "invoice": "in_1"},
        "/v1/invoiceitems",
        "customer=cus_1&pricing[price]=price_1&quantity=2&invoice=in_1",
    ),
    form(
        "subscriptions.create",
        {
            "customer": "cus_1",
            "items": [{"price": "price_1", "quantity": 2}, {"price": "price_2"}],
            "trial_period_days": 7,
        },
        "/v1/subscriptions",
        "customer=cus_1&items[0][price]=price_1&items[0][quantity]=2&items[1][price]=price_2&trial_period_days=7",
    ),
    form(
        "subscriptions.update",
        {"id": ID, "items": [{"id": "si_1", "deleted": True}], "proration_behavior": "none"},
        f"/v1/subscriptions/{ID}",
        "items[0][id]=si_1&items[0][deleted]=true&proration_behavior=none",
    ),
    form(
        "subscriptions.delete",
        {"id": ID, "prorate": True},
        f"/v1/subscriptions/{ID}",
        "prorate=true",
        method="DELETE",
    ),
    form("subscriptions.delete", {"id": ID}, f"/v1/subscriptions/{ID}", "", method="DELETE"),
    form(
        "refunds.create",
        {"payment_intent": "pi_1", "amount": 500, "reason": "duplicate", "metadata": {"a": "b"}},
        "/v1/refunds",
        "payment_intent=pi_1&amount=500&reason=duplicate&metadata[a]=b",
    ),
    form(
        "products.create",
        {
            "name": "Gold",
            "marketing_features": [{"name": "Fast"}],
            "package_dimensions": {"height": 1.5, "length": 2, "weight": 3, "width": 4},
        },
        "/v1/products",
        "name=Gold&marketing_features[0][name]=Fast&package_dimensions[height]=1.5&package_dimensions[length]=2"
        "&package_dimensions[weight]=3&package_dimensions[width]=4",
    ),
    form("products.update", {"id": ID, "active": False}, f"/v1/products/{ID}", "active=false"),
    form("products.update", {"id": ID, "images": []}, f"/v1/products/{ID}", "images=", sdk_differs=EMPTY_LIST),
    Call("products.delete", {"id": ID}, f"/v1/products/{ID}", method="DELETE"),
    form(
        "prices.create",
        {"currency": "eur", "product": "prod_1", "unit_amount": 1000, "recurring": {"interval": "month"}},
        "/v1/prices",
        "currency=eur&product=prod_1&unit_amount=1000&recurring[interval]=month",
    ),
    form(
        "payment_intents.create",
        {"amount": 2000, "currency": "eur", "automatic_payment_methods": {"enabled": True}},
        "/v1/payment_intents",
        "amount=2000&currency=eur&automatic_payment_methods[enabled]=true",
    ),
    form("payment_intents.update", {"id": ID, "amount": 2100}, f"/v1/payment_intents/{ID}", "amount=2100"),
    form(
        "payment_intent_confirmations.create",
        {"id": ID, "payment_method": "pm_1", "return_url": "https://shop.example.com/a?b=c"},
        f"/v1/payment_intents/{ID}/confirm",
        "payment_method=pm_1&return_url=https://shop.example.com/a?b=c",
    ),
    form(
        "payment_intent_cancellations.create",
        {"id": ID, "cancellation_reason": "abandoned"},
        f"/v1/payment_intents/{ID}/cancel",
        "cancellation_reason=abandoned",
    ),
    form(
        "checkout_sessions.create",
        {"mode": "payment", "line_items": [{"price": "price_1", "quantity": 1}], "success_url": "https://a.example/ok"},
        "/v1/checkout/sessions",
        "mode=payment&line_items[0][price]=price_1&line_items[0][quantity]=1&success_url=https://a.example/ok",
    ),
    form(
        "payment_method_attachments.create",
        {"id": ID, "customer": "cus_1"},
        f"/v1/payment_methods/{ID}/attach",
        "customer=cus_1",
    ),
    form("invoice_voids.create", {"id": ID}, f"/v1/invoices/{ID}/void", ""),
    form(
        "invoice_payments.create",
        {"id": ID, "paid_out_of_band": True, "idempotency_key": "k1"},
        f"/v1/invoices/{ID}/pay",
        "paid_out_of_band=true",
        headers={"Idempotency-Key": "k1"},
    ),
    form(
        "payment_links.create",
        {"line_items": [{"price": "price_1", "quantity": 1}], "billing_address_collection": "required"},
        "/v1/payment_links",
        "line_items[0][price]=price_1&line_items[0][quantity]=1&billing_address_collection=required",
    ),
]
REFUSED = [
    Refused("customers.list", {"limit": 101}, "limit", "at most 100"),
    Refused("customers.list", {"starting_after": "a", "ending_before": "b"}, "", "exclude each other"),
    Refused("customers.list", {"created": {"after": 1}}, "created.after", "created.after is not a param"),
    Refused("customers.update", {"id": ID}, "", "at least 2 members"),
    Refused("customers.get", {}, "id", "id is missing"),
    Refused("refunds.create", {"amount": 5}, "", "payment_intent"),
    Refused("subscriptions.create", {"customer": "cus_1", "items": []}, "items", "at least 1 items"),
    Refused("subscriptions.list", {"status": "gone"}, "status", "allowed: active"),
    Refused("payment_intents.create", {"amount": 0, "currency": "eur"}, "amount", "at least 1"),
    Refused("customers.api_search", {}, "query", "query is missing"),
]
ANSWERS = [
    *(
        Answer(f"{entity}.list", {"data": [{"id": ID}], "has_more": False}, [{"id": ID}], {"has_more": False})
        for entity in LISTS
    ),
    *(
        Answer(
            f"{entity}.api_search",
            {"data": [{"id": ID}], "has_more": True, "next_page": "p2"},
            [{"id": ID}],
            {"next_page": "p2", "has_more": True},
        )
        for entity in SEARCHED
    ),
    Answer("customers.delete", {"id": ID, "deleted": True}, {"id": ID, "deleted": True}, None),
]
FAILURES = [
    Failure(
        "customers.update",
        status,
        {"error": {"type": type_, "code": code, "message": "It failed.", "param": "email"}},
        error,
        code or type_,
        "It failed.",
        field="email",
        headers={"retry-after": "2"},
    )
    for status, type_, code, error in [
        (400, "invalid_request_error", "parameter_invalid_empty", UpstreamRejected),
        (401, "invalid_request_error", None, ReauthorizationRequired),
        (403, "invalid_request_error", "more_permissions_required", UpstreamRejected),
        (404, "invalid_request_error", "resource_missing", UpstreamNotFound),
        (409, "idempotency_error", None, UpstreamRejected),
        (429, "invalid_request_error", "rate_limit", UpstreamRateLimited),
        (500, "api_error", None, UpstreamError),
    ]
] + [
    Failure(
        "payment_intents.create",
        402,
        {
            "error": {
                "type": "card_error",
                "code": "card_declined",
                "decline_code": "insufficient_funds",
                "message": "Your card has insufficient funds.",
            }
        },
        UpstreamRejected,
        "card_declined",
        "Your card has insufficient funds.; insufficient_funds",
    ),
    Failure("customers.list", 429, {}, UpstreamRateLimited, retry_after=1),
]
PAGES = [
    # The application takes one of starting_after and ending_before.
    Pages(
        "charges.list",
        {"limit": 1, "ending_before": "ch_9", "customer": "cus_1"},
        [{"data": [{"id": "ch_8"}], "has_more": True}, {"data": [{"id": "ch_7"}], "has_more": False}],
        [[{"id": "ch_8"}], [{"id": "ch_7"}]],
        [
            "/v1/charges?limit=1&ending_before=ch_9&customer=cus_1",
            "/v1/charges?limit=1&starting_after=ch_8&customer=cus_1",
        ],
    ),
    Pages(
        "customers.list",
        {"limit": 2, "email": "a@example.com"},
        [
            {"data": [{"id": "cus_1"}, {"id": "cus_2"}], "has_more": True},
            {"data": [{"id": "cus_3"}], "has_more": False},
        ],
        [[{"id": "cus_1"}, {"id": "cus_2"}], [{"id": "cus_3"}]],
        [
            "/v1/customers?limit=2&email=a%40example.com",
            "/v1/customers?limit=2&starting_after=cus_2&email=a%40example.com",
        ],
    ),
    Pages(
        "charges.api_search",
        {"query": "amount>1", "limit": 1},
        [
            {"data": [{"id": "ch_1"}], "has_more": True, "next_page": "p2"},
            {"data": [{"id": "ch_2"}], "has_more": False, "next_page": None},
        ],
        [[{"id": "ch_1"}], [{"id": "ch_2"}]],
        ["/v1/charges/search?query=amount%3E1&limit=1", "/v1/charges/search?query=amount%3E1&limit=1&page=p2"],
    ),
]
CASES = Cases(
    "stripe",
    "https://api.stripe.com",
    [*READS, *WRITES],
    REFUSED,
    FAILURES,
    authorizations=[({"api_key": "sk_test_1"}, "Bearer sk_test_1")],
    check=("/v1/customers?limit=1", {"data": [], "has_more": False}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[
        BadCredentials({}, "api_key", "needs the credentials of one method: api_key"),
        BadCredentials({"api_key": "sk_1", "account": "acct_1"}, "account", "account is not a credential"),
    ],
)
