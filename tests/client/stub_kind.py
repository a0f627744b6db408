"""The kind of the stub's connector, as the gateway describes it."""

from typing import Any

from tests.client.contract import example

PAGE = {
    "style": "page",
    "param": "page",
    "size": "per_page",
    "next": "next_page",
    "has_more": None,
    "max_pages": 100,
    "order": "stable",
    "incomplete": None,
}
CURSOR = {**PAGE, "style": "cursor", "param": "cursor", "size": "limit", "next": "next_cursor", "max_pages": None}
LIST_PARAMS = {
    "type": "object",
    "properties": {
        "page": {"type": "integer"},
        "per_page": {"type": "integer"},
        "external_id": {"type": "string"},
        "archived": {"type": "boolean"},
    },
}
#: members that most actions share
ACTION: dict[str, Any] = {"runs": "inline", "meta": [], "paging": None, "alternatives": []}
METHOD = dict.fromkeys(("description", "grant_type", "sunset", "deprecated", "replacement", "documentation_url"))
KIND = {
    **example("KindSummary"),
    "kind": "support-desk",
    "connector_type": "Support-Desk",
    "title": "Support desk",
    "description": "Tickets and the people behind them.",
    "auth_methods": [
        {
            "id": "api_token",
            "title": "API token",
            "oauth": False,
            **METHOD,
            "fields": {
                "email": {"description": "the agent's address", "required": True, "secret": False, "format": None},
                "api_token": {"description": "API token", "required": True, "secret": True, "format": None},
            },
        }
    ],
    "oauth": False,
    "environment": {"subdomain": {**example("Variable"), "description": "the account"}},
    "entities": {
        "tickets": {
            "description": "Customer requests.",
            "actions": {
                "list": {
                    **ACTION,
                    "description": "The account's tickets, a page at a time.",
                    "effect": "read",
                    "params": LIST_PARAMS,
                    "paging": PAGE,
                    "example": {"entity": "tickets", "action": "list", "params": {"per_page": 2}},
                },
                "create": {
                    **ACTION,
                    "description": "Opens a ticket.",
                    "effect": "write",
                    "params": {
                        "type": "object",
                        "properties": {
                            "ticket": {
                                "type": "object",
                                "properties": {
                                    "subject": {"type": "string"},
                                    "tags": {"type": "array", "items": {"type": "string"}},
                                    "requester_id": {"type": "integer"},
                                },
                            }
                        },
                        "required": ["ticket"],
                    },
                    "example": {"entity": "tickets", "action": "create", "params": {"ticket": {"subject": "Fire"}}},
                },
            },
            "fields": {"id": "integer", "subject": "string", "status": "string"},
            "search_fields": {"id": "integer", "status": "string"},
        },
        "users": {
            "description": "People.",
            "fields": {"id": "integer", "name": "string"},
            "actions": {
                "list": {
                    **ACTION,
                    "description": "Everybody.",
                    "effect": "read",
                    "params": {},
                    "paging": CURSOR,
                    "example": {"entity": "users", "action": "list", "params": {}},
                },
            },
        },
    },
}
