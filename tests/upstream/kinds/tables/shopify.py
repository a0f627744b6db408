"""The cases of Shopify. Its documents were validated against the application's schema of the same version."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, GraphQL, Pages, Refused

API = "/admin/api/2026-07"
SINCE = "2026-01-31T08:00:00Z"
PAGE = {"limit": 100, "since_id": 9}
UPDATED = {"updated_at_min": SINCE, "updated_at_max": SINCE}
ALL = {**PAGE, "created_at_min": SINCE, "created_at_max": SINCE, **UPDATED}
NAMED = {"namespace": "custom", "key": "colour"}

#: reads: action, path, the ids in it, filters
READS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("customers.list", "/customers.json", {}, ALL),
    ("customers.get", "/customers/1.json", {"customer_id": 1}, {}),
    (
        "orders.list",
        "/orders.json",
        {},
        {**ALL, "status": "open", "financial_status": "authorized", "fulfillment_status": "shipped"},
    ),
    ("orders.get", "/orders/2.json", {"order_id": 2}, {}),
    ("product_variants.get", "/variants/5.json", {"variant_id": 5}, {}),
    ("product_images.list", "/products/4/images.json", {"product_id": 4}, {"since_id": 9}),
    ("product_images.get", "/products/4/images/6.json", {"product_id": 4, "image_id": 6}, {}),
    ("abandoned_checkouts.list", "/checkouts.json", {}, {**ALL, "status": "open"}),
    ("locations.list", "/locations.json", {}, {}),
    ("locations.get", "/locations/8.json", {"location_id": 8}, {}),
    ("inventory_levels.list", "/locations/8/inventory_levels.json", {"location_id": 8}, {"limit": 100}),
    ("inventory_items.list", "/inventory_items.json", {}, {"ids": "39072856,457924702", "limit": 100}),
    ("inventory_items.get", "/inventory_items/10.json", {"inventory_item_id": 10}, {}),
    ("shop.get", "/shop.json", {}, {}),
    ("price_rules.list", "/price_rules.json", {}, ALL),
    ("price_rules.get", "/price_rules/11.json", {"price_rule_id": 11}, {}),
    ("discount_codes.list", "/price_rules/11/discount_codes.json", {"price_rule_id": 11}, {"limit": 100}),
    ("discount_codes.get", "/price_rules/11/discount_codes/12.json", {"price_rule_id": 11, "discount_code_id": 12}, {}),
    (
        "custom_collections.list",
        "/custom_collections.json",
        {},
        {**PAGE, **UPDATED, "title": "Summer", "product_id": 4},
    ),
    ("custom_collections.get", "/custom_collections/3.json", {"collection_id": 3}, {}),
    ("smart_collections.list", "/smart_collections.json", {}, {**PAGE, **UPDATED, "title": "Summer", "product_id": 4}),
    ("smart_collections.get", "/smart_collections/3.json", {"collection_id": 3}, {}),
    ("collects.list", "/collects.json", {}, {**PAGE, "collection_id": 3, "product_id": 4}),
    ("collects.get", "/collects/13.json", {"collect_id": 13}, {}),
    ("draft_orders.list", "/draft_orders.json", {}, {**PAGE, **UPDATED, "status": "open"}),
    ("draft_orders.get", "/draft_orders/14.json", {"draft_order_id": 14}, {}),
    ("fulfillments.list", "/orders/2/fulfillments.json", {"order_id": 2}, ALL),
    ("fulfillments.get", "/orders/2/fulfillments/15.json", {"order_id": 2, "fulfillment_id": 15}, {}),
    ("order_refunds.list", "/orders/2/refunds.json", {"order_id": 2}, {"limit": 100}),
    ("order_refunds.get", "/orders/2/refunds/16.json", {"order_id": 2, "refund_id": 16}, {}),
    ("transactions.list", "/orders/2/transactions.json", {"order_id": 2}, {"since_id": 9}),
    ("transactions.get", "/orders/2/transactions/17.json", {"order_id": 2, "transaction_id": 17}, {}),
    (
        "tender_transactions.list",
        "/tender_transactions.json",
        {},
        {**PAGE, "processed_at_min": SINCE, "processed_at_max": SINCE, "order": "processed_at ASC"},
    ),
    ("countries.list", "/countries.json", {}, {"since_id": 9}),
    ("countries.get", "/countries/18.json", {"country_id": 18}, {}),
    ("metafield_shops.list", "/metafields.json", {}, {**PAGE, **NAMED, "type": "number_integer"}),
    ("metafield_shops.get", "/metafields/19.json", {"metafield_id": 19}, {}),
    ("metafield_customers.list", "/customers/1/metafields.json", {"customer_id": 1}, {**PAGE, **NAMED}),
    ("metafield_products.list", "/products/4/metafields.json", {"product_id": 4}, {**PAGE, **NAMED}),
    ("metafield_orders.list", "/orders/2/metafields.json", {"order_id": 2}, {**PAGE, **NAMED}),
    ("metafield_draft_orders.list", "/draft_orders/14/metafields.json", {"draft_order_id": 14}, {**PAGE, **NAMED}),
    ("metafield_locations.list", "/locations/8/metafields.json", {"location_id": 8}, {**PAGE, **NAMED}),
    ("metafield_product_variants.list", "/variants/5/metafields.json", {"variant_id": 5}, {**PAGE, **NAMED}),
    (
        "metafield_smart_collections.list",
        "/smart_collections/3/metafields.json",
        {"collection_id": 3},
        {**PAGE, **NAMED},
    ),
    (
        "metafield_product_images.list",
        "/metafields.json",
        {},
        {**PAGE, **NAMED, "metafield[owner_id]": 7, "metafield[owner_resource]": "product_image"},
    ),
    ("customer_address.list", "/customers/1/addresses.json", {"customer_id": 1}, {"limit": 100}),
    ("customer_address.get", "/customers/1/addresses/20.json", {"customer_id": 1, "address_id": 20}, {}),
    ("fulfillment_orders.list", "/orders/2/fulfillment_orders.json", {"order_id": 2}, {}),
    ("fulfillment_orders.get", "/fulfillment_orders/21.json", {"fulfillment_order_id": 21}, {}),
    ("pages.list", "/pages.json", {}, {**ALL, "published_status": "published"}),
    ("pages.get", "/pages/22.json", {"page_id": 22}, {}),
    ("blogs.list", "/blogs.json", {}, PAGE),
    ("blogs.get", "/blogs/23.json", {"blog_id": 23}, {}),
    ("articles.list", "/blogs/23/articles.json", {"blog_id": 23}, {**ALL, "published_status": "published"}),
    ("articles.get", "/blogs/23/articles/24.json", {"blog_id": 23, "article_id": 24}, {}),
    (
        "balance_transactions.list",
        "/shopify_payments/balance/transactions.json",
        {},
        {**PAGE, "payout_id": 5, "payout_status": "scheduled"},
    ),
    (
        "disputes.list",
        "/shopify_payments/disputes.json",
        {},
        {**PAGE, "status": "needs_response", "initiated_at": "2026-01-31"},
    ),
    ("disputes.get", "/shopify_payments/disputes/25.json", {"dispute_id": 25}, {}),
    ("metafield_pages.list", "/pages/22/metafields.json", {"page_id": 22}, {"limit": 100}),
    ("metafield_blogs.list", "/blogs/23/metafields.json", {"blog_id": 23}, {"limit": 100}),
    (
        "metafield_articles.list",
        "/blogs/23/articles/24/metafields.json",
        {"blog_id": 23, "article_id": 24},
        {"limit": 100},
    ),
]

REST_CUTS = "it asks REST, which returns at most 100 variants of a product"
LISTED = "products(first: $limit, after: $page_info, query: $query, sortKey: ID)"
VARIANTS_LISTED = "productVariants(first: $limit, after: $page_info, query: $query, sortKey: ID)"

#: reads by GraphQL: action, params, the query, its variables
QUERIES: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    (
        "products.list",
        {"status": "active", "vendor": 'A "B"', "since_id": 4, "updated_at_min": "2026-01-31T00:00:00Z", "limit": 9},
        LISTED,
        {
            "limit": 9,
            "query": 'id:>4 AND updated_at:>=\'2026-01-31T00:00:00Z\' AND status:active AND vendor:"A \\"B\\""',
        },
    ),
    ("products.list", {"page_info": "c1"}, LISTED, {"limit": 50, "page_info": "c1"}),
    ("products.get", {"product_id": 4}, "variants(first: 2000)", {"id": "gid://shopify/Product/4"}),
    (
        "product_variants.list",
        {"product_id": 4, "since_id": 9},
        VARIANTS_LISTED,
        {"limit": 50, "query": "id:>9 AND product_id:4"},
    ),
]
CUSTOMER = "gid://shopify/Customer/1"
PRODUCT = "gid://shopify/Product/4"
VARIANT = "gid://shopify/ProductVariant/5"
ORDER = "gid://shopify/Order/2"
DRAFT = "gid://shopify/DraftOrder/14"
DISCOUNT = "gid://shopify/DiscountCodeNode/12"
COLLECTION = "gid://shopify/Collection/3"
ITEM = "gid://shopify/InventoryItem/10"
LOCATION = "gid://shopify/Location/8"
LINES = [{"variantId": VARIANT, "quantity": 2}, {"title": "Gift wrap", "quantity": 1}]
ADDRESS = {"address1": "1 Main Street", "city": "Berlin", "countryCode": "DE", "zip": "10115"}
HALF_OFF = {"value": {"percentage": 0.5}, "items": {"all": True}}
KEY = {"idempotencyKey": "0d4c7a52"}

#: writes: action, the mutation, its variables, which are the params
WRITES: list[tuple[str, str, dict[str, Any]]] = [
    ("customers.create", "customerCreate(input", {"input": {"email": "ada@example.com", "tags": []}}),
    ("customers.update", "customerUpdate(input", {"input": {"id": CUSTOMER, "firstName": "Ada", "taxExempt": False}}),
    ("customers.update", "customerUpdate(input", {"input": {"id": CUSTOMER, "note": None}}),
    ("customers.delete", "customerDelete(input", {"input": {"id": CUSTOMER}}),
    (
        "products.create",
        "productCreate(product: $product, media: $media)",
        {
            "product": {"title": "Shirt", "status": "DRAFT", "tags": ["new"]},
            "media": [{"originalSource": "https://example.com/1.png", "mediaContentType": "IMAGE"}],
        },
    ),
    ("products.update", "productUpdate(product", {"product": {"id": PRODUCT, "descriptionHtml": "", "tags": []}}),
    ("products.delete", "productDelete(input", {"input": {"id": PRODUCT}}),
    (
        "product_variants.create",
        "productVariantsBulkCreate(productId: $productId, variants: $variants)",
        {
            "productId": PRODUCT,
            "variants": [
                {
                    "optionValues": [{"optionName": "Size", "name": "Large"}],
                    "price": "19.99",
                    "inventoryItem": {"sku": "S-L"},
                }
            ],
        },
    ),
    (
        "product_variants.update",
        "productVariantsBulkUpdate(productId: $productId, variants: $variants)",
        {"productId": PRODUCT, "variants": [{"id": VARIANT, "price": "9.99", "compareAtPrice": None}]},
    ),
    (
        "product_variants.delete",
        "productVariantsBulkDelete(productId: $productId, variantsIds: $variantsIds)",
        {"productId": PRODUCT, "variantsIds": [VARIANT]},
    ),
    (
        "orders.create",
        "orderCreate(order: $order, options: $options)",
        {
            "order": {"lineItems": LINES, "email": "ada@example.com", "shippingAddress": ADDRESS},
            "options": {"inventoryBehaviour": "DECREMENT_OBEYING_POLICY"},
        },
    ),
    ("orders.update", "orderUpdate(input", {"input": {"id": ORDER, "note": None, "shippingAddress": ADDRESS}}),
    (
        "orders.delete",
        "orderCancel(",
        {"orderId": ORDER, "reason": "FRAUD", "restock": True, "refund": True, "notifyCustomer": False},
    ),
    ("draft_orders.create", "draftOrderCreate(input", {"input": {"lineItems": LINES, "customerId": CUSTOMER}}),
    ("draft_orders.update", "draftOrderUpdate(id: $id, input: $input)", {"id": DRAFT, "input": {"tags": []}}),
    ("draft_orders.delete", "draftOrderDelete(input", {"input": {"id": DRAFT}}),
    ("draft_order_complete.update", "draftOrderComplete(id: $id", {"id": DRAFT, "paymentPending": True}),
    (
        "discount_codes.create",
        "discountCodeBasicCreate(basicCodeDiscount",
        {
            "basicCodeDiscount": {
                "title": "Spring",
                "code": "SPRING",
                "startsAt": SINCE,
                "customerSelection": {"all": True},
                "customerGets": HALF_OFF,
            }
        },
    ),
    (
        "discount_codes.update",
        "discountCodeBasicUpdate(id: $id",
        {"id": DISCOUNT, "basicCodeDiscount": {"endsAt": None, "usageLimit": 3}},
    ),
    ("discount_codes.delete", "discountCodeDelete(id: $id)", {"id": DISCOUNT}),
    (
        "custom_collections.create",
        "collectionCreate(input",
        {
            "input": {
                "title": "Sale",
                "ruleSet": {
                    "appliedDisjunctively": False,
                    "rules": [{"column": "TAG", "relation": "EQUALS", "condition": "sale"}],
                },
            }
        },
    ),
    ("custom_collections.update", "collectionUpdate(input", {"input": {"id": COLLECTION, "sortOrder": "MANUAL"}}),
    ("custom_collections.delete", "collectionDelete(input", {"input": {"id": COLLECTION}}),
    ("pages.create", "pageCreate(page", {"page": {"title": "Imprint", "body": "<p>x</p>", "isPublished": False}}),
    ("pages.update", "pageUpdate(id", {"id": "gid://shopify/Page/22", "page": {"handle": "imprint"}}),
    ("pages.delete", "pageDelete(id", {"id": "gid://shopify/Page/22"}),
    ("blogs.create", "blogCreate(blog", {"blog": {"title": "News", "handle": "news"}}),
    ("blogs.update", "blogUpdate(id", {"id": "gid://shopify/Blog/23", "blog": {"title": "Journal"}}),
    ("blogs.delete", "blogDelete(id", {"id": "gid://shopify/Blog/23"}),
    (
        "articles.create",
        "articleCreate(article",
        {"article": {"title": "Spring", "blogId": "gid://shopify/Blog/23", "author": {"name": "Ada"}}},
    ),
    (
        "articles.update",
        "articleUpdate(id",
        {"id": "gid://shopify/Article/24", "article": {"tags": [], "isPublished": True}},
    ),
    ("articles.delete", "articleDelete(id", {"id": "gid://shopify/Article/24"}),
    (
        "metafields.create",
        "metafieldsSet(metafields",
        {"metafields": [{**NAMED, "type": "boolean", "value": "true", "ownerId": PRODUCT}]},
    ),
    ("metafields.delete", "metafieldsDelete(metafields", {"metafields": [{**NAMED, "ownerId": PRODUCT}]}),
    (
        "order_refunds.create",
        "refundCreate(input: $input) @idempotent(key: $idempotencyKey)",
        {
            "input": {
                "orderId": ORDER,
                "refundLineItems": [{"lineItemId": "gid://shopify/LineItem/5", "quantity": 1, "restockType": "RETURN"}],
                "shipping": {"fullRefund": True},
            },
            **KEY,
        },
    ),
    (
        "inventory_set.create",
        "inventorySetQuantities(input: $input) @idempotent(key: $idempotencyKey)",
        {
            "input": {
                "name": "on_hand",
                "reason": "correction",
                "quantities": [
                    {"inventoryItemId": ITEM, "locationId": LOCATION, "quantity": 0, "changeFromQuantity": None}
                ],
            },
            **KEY,
        },
    ),
    (
        "inventory_adjust.create",
        "inventoryAdjustQuantities(input: $input) @idempotent(key: $idempotencyKey)",
        {
            "input": {
                "name": "available",
                "reason": "damaged",
                "changes": [{"inventoryItemId": ITEM, "locationId": LOCATION, "delta": -1, "changeFromQuantity": 4}],
            },
            **KEY,
        },
    ),
]
#: what the SDK has no operation for: action, params, the mutation, its variables
MORE_WRITES: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    (
        "draft_orders.send_invoice",
        {"id": DRAFT, "to": "ada@example.com", "subject": "Your quote"},
        "draftOrderInvoiceSend(id: $id, email: $email)",
        {"id": DRAFT, "email": {"to": "ada@example.com", "subject": "Your quote"}},
    ),
    (
        "fulfillments.create",
        {
            "lineItemsByFulfillmentOrder": [{"fulfillmentOrderId": "gid://shopify/FulfillmentOrder/21"}],
            "trackingInfo": {"number": "1Z"},
        },
        "fulfillmentCreate(fulfillment: $fulfillment)",
        {
            "fulfillment": {
                "lineItemsByFulfillmentOrder": [{"fulfillmentOrderId": "gid://shopify/FulfillmentOrder/21"}],
                "trackingInfo": {"number": "1Z"},
            }
        },
    ),
]


def texts(filters: dict[str, Any]) -> dict[str, str]:
    """Filters as the query holds them."""
    return {name: str(value) for name, value in filters.items()}


def mutation(action: str, params: dict[str, Any], text: str, variables: dict[str, Any]) -> Call:
    return Call(action, params, f"{API}/graphql.json", {}, "POST", GraphQL(text, variables))


def failed(name: str, message: str) -> dict[str, Any]:
    """A mutation that the application refuses with status 200."""
    return {"data": {name: {"userErrors": [{"field": ["input", "email"], "message": message}], "customer": None}}}


CALLS = [
    *(Call(action, {**ids, **filters}, f"{API}{path}", texts(filters)) for action, path, ids, filters in READS),
    # Beside page_info the application takes nothing but limit: defaults are left out too.
    Call("orders.list", {"page_info": "abc"}, f"{API}/orders.json", {"limit": "50", "page_info": "abc"}),
    Call("orders.list", {}, f"{API}/orders.json", {"limit": "50", "status": "any"}),
    Call("locations.list", {"page_info": "abc"}, f"{API}/locations.json", {"page_info": "abc"}),
    *(
        Call(
            action,
            params,
            f"{API}/graphql.json",
            {},
            "POST",
            GraphQL(text, variables),
            sdk_differs="" if "page_info" in params else REST_CUTS,
        )
        for action, params, text, variables in QUERIES
    ),
    *(mutation(action, variables, text, variables) for action, text, variables in WRITES),
    *(mutation(action, params, text, variables) for action, params, text, variables in MORE_WRITES),
]
REFUSED = [
    Refused("orders.list", {"limit": 251}, "limit", "at most 250"),
    Refused("orders.list", {"status": "late"}, "status", "allowed: open, closed, cancelled, any"),
    Refused("orders.list", {"updated_at_min": "yesterday"}, "updated_at_min", "must be a date-time"),
    Refused("inventory_items.list", {}, "ids", "ids is missing"),
    Refused("customers.get", {"customer_id": "../orders/2"}, "customer_id", "integer"),
    # An update without members would succeed and change nothing.
    Refused("customers.update", {"input": {"id": CUSTOMER}}, "input", "at least 2"),
    Refused("customers.update", {"input": {"id": "1", "note": "x"}}, "input.id", "input.id"),
    Refused("products.update", {"product": {"id": ORDER, "title": "x"}}, "product.id", "product.id"),
    Refused("products.create", {"product": {"vendor": "Acme"}}, "product.title", "product.title is missing"),
    Refused("orders.create", {"order": {"lineItems": []}}, "order.lineItems", "at least 1"),
    Refused("blogs.update", {"id": "gid://shopify/Blog/1", "blog": {}}, "blog", "at least 1"),
    Refused("orders.delete", {"orderId": ORDER, "reason": "FRAUD"}, "restock", "restock is missing"),
    Refused("metafields.create", {"metafields": []}, "metafields", "at least 1"),
]
ANSWERS = [
    Answer("customers.list", {"customers": [{"id": 1}]}, [{"id": 1}], {"next_page_url": None}),
    Answer(
        "products.list",
        {"data": {"products": {"nodes": [{"id": "1"}], "pageInfo": {"hasNextPage": True, "endCursor": "c1"}}}},
        [{"id": "1"}],
        {"endCursor": "c1", "hasNextPage": True},
    ),
    Answer("shop.get", {"shop": {"id": 1}}, {"id": 1}, None),
    Answer(
        "customers.create",
        {"data": {"customerCreate": {"userErrors": [], "customer": {"id": CUSTOMER}}}},
        {"userErrors": [], "customer": {"id": CUSTOMER}},
        None,
    ),
]
FAILURES = [
    *(
        Failure("orders.get", status, {"errors": words}, error, None, words, headers=headers, retry_after=wait)
        for status, words, error, headers, wait in [
            (400, "Exceeded maximum page size", UpstreamRejected, {}, None),
            (401, "[API] Invalid API key or access token", ReauthorizationRequired, {}, None),
            (402, "Unavailable Shop", UpstreamRejected, {}, None),
            (403, "[API] This action requires merchant approval", UpstreamRejected, {}, None),
            (404, "Not Found", UpstreamNotFound, {}, None),
            (423, "Shop is locked", UpstreamRejected, {}, None),
            (429, "Exceeded 2 calls per second", UpstreamRateLimited, {"retry-after": "2.0"}, 2),
            (429, "Exceeded 2 calls per second", UpstreamRateLimited, {}, 2),
            (500, "Internal Server Error", UpstreamError, {}, None),
        ]
    ),
    *(
        Failure(
            "customers.create",
            200,
            {"errors": [{"message": "no", "extensions": {"code": code}}]},
            error,
            code,
            "no",
            retry_after=wait,
        )
        for code, error, wait in [
            ("THROTTLED", UpstreamRateLimited, 2),
            ("ACCESS_DENIED", UpstreamRejected, None),
            ("MAX_COST_EXCEEDED", UpstreamRejected, None),
            ("INTERNAL_SERVER_ERROR", UpstreamError, None),
        ]
    ),
    Failure(
        "customers.create",
        200,
        failed("customerCreate", "Email is invalid"),
        UpstreamRejected,
        None,
        "Email is invalid",
        field="input, email",
    ),
]
BAD_CREDENTIALS = [
    BadCredentials({"api_key": ""}, "api_key", "api_key is missing"),
    BadCredentials({"api_key": "k", "shop": "acme"}, "shop", "shop is not a credential"),
]
NEXT = {"Link": f'<https://acme.myshopify.com{API}/orders.json?limit=50&page_info=abc>; rel="next"'}
PAGES = [
    Pages(
        "orders.list",
        {"status": "open"},
        [{"orders": [{"id": 1}]}, {"orders": [{"id": 2}]}],
        [[{"id": 1}], [{"id": 2}]],
        [f"{API}/orders.json?limit=50&status=open", f"{API}/orders.json?limit=50&page_info=abc"],
        headers=[NEXT, {}],
    )
]
CASES = Cases(
    "shopify",
    "https://acme.myshopify.com",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[
        ({"api_key": "shpat_1"}, "shpat_1"),
        ({"access_token": "shpua_1", "client_id": "c", "client_secret": "s"}, "shpua_1"),
    ],
    check=(f"{API}/shop.json", {"shop": {"id": 1}}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=BAD_CREDENTIALS,
    environment={"shop": "acme"},
)
