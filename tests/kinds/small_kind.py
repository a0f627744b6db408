"""A kind as small as a spec can be, for the tests of the engine: one entity, one action."""

from typing import Any

from gateway.kinds.catalog import Operation
from gateway.kinds.spec import ConnectorSpec

SMALL_SPEC: dict[str, Any] = {
    "kind": "small",
    "title": "Small",
    "description": "Small.",
    "definition_id": "small",
    "server": "https://api.example.com/v1",
    "hosts": ["api.example.com"],
    "authentication": {
        "token": {
            "title": "Token",
            "scheme": "bearer",
            "token": "token",
            "credentials": {"token": {"description": "token", "required": True, "secret": True}},
        }
    },
    "rate_limit": {"requests": 10, "seconds": 1},
    "health_check": "things.act",
    "paging": {
        "page": {
            "style": "page",
            "param": "page",
            "size": "per_page",
            "max_pages": 100,
            "next": "next_page",
            "meta": {"next_page": "next_page", "count": "count"},
        },
        "cursor": {
            "style": "cursor",
            "param": "after",
            "size": "limit",
            "next": "next_cursor",
            "has_more": "has_more",
            "meta": {"next_cursor": "paging.next", "has_more": "more"},
        },
    },
}


def small_operation(action: dict[str, Any] | None = None, **spec: Any) -> Operation:
    """The operation `things.act` of a kind that differs from the small one in these members."""
    whole = {"request": "GET /things", "effect": "read", "description": "Acts.", **(action or {})}
    if not whole.keys() & {"records", "record", "download"}:
        whole["record"] = "$"
    document = {**SMALL_SPEC, **spec, "entities": {"things": {"description": "Things.", "actions": {"act": whole}}}}
    model = ConnectorSpec.model_validate(document)
    return Operation(model, "things", "act", model.entities["things"].actions["act"])
