"""Schemas and examples of the kinds: how they authenticate, their entities, and what can be done."""

from gateway.http.openapi.parts import ID, Schema, array, by_name, flag, nullable, record, ref, text
from gateway.kinds.spec import Effect, PagingStyle

#: what running an operation twice would do
EFFECTS = [effect.value for effect in Effect]
#: of an operation that reads a ticket
PARAMS_SCHEMA = {"type": "object", "properties": {"ticket_id": {"type": "integer"}}, "required": ["ticket_id"]}
_METHOD = {
    "id": "api_token",
    "title": "API token",
    "description": None,
    "oauth": False,
    "grant_type": None,
    "sunset": None,
    "deprecated": None,
    "replacement": None,
    "documentation_url": None,
    "fields": {
        "api_token": {"description": "made in the admin center", "required": True, "secret": True, "format": None}
    },
}
_SUMMARY = {
    "kind": "support-desk",
    "application": "Zendesk",
    "connector_type": "Support-Desk",
    "definition_id": ID,
    "title": "Support desk",
    "description": "Read and write tickets, comments and users.",
    "auth_methods": [_METHOD],
    "environment": {
        "subdomain": {"description": "…", "required": True, "type": "dns_label", "example": "acme", "default": None}
    },
    "oauth": True,
    "deprecations": [],
    "docs_skill_id": "support-desk",
}
_ACTION: Schema = {
    "description": "One ticket.",
    "effect": "read",
    "runs": "inline",
    "params": PARAMS_SCHEMA,
    "meta": [],
    "paging": None,
    "alternatives": [],
    "example": {"entity": "tickets", "action": "get", "params": {"ticket_id": 1}},
}
_SUNSET: dict[str, Schema] = {
    "sunset": nullable("string", "the first day without it", format="date"),
    "deprecated": nullable("string", "since when it should not be taken up", format="date"),
    "replacement": nullable("string", "what takes its place"),
    "documentation_url": nullable("string", "where the application says so"),
}
_KIND_MEMBERS: dict[str, Schema] = {
    "kind": text("the kind's name"),
    "application": text("the vendor's name for the application"),
    "connector_type": text("its display form"),
    "definition_id": text("its own id", format="uuid"),
    "title": text("its name for people"),
    "description": text("what it is for"),
    "auth_methods": array(ref("AuthMethod"), "how a connector can authenticate"),
    "environment": by_name(
        {
            "type": "object",
            "properties": {
                "description": text("what it is"),
                "required": flag("whether it must be named"),
                "type": text("what form it has", enum=["dns_label", "host", "origin"]),
                "example": nullable("string", "one of its values"),
                "default": nullable("string", "what stands in when it is left out"),
            },
        },
        "the variables that are no secrets, by name",
    ),
    "oauth": flag("whether connectors can come from a person's consent"),
    "deprecations": array(
        {"type": "object", "properties": {"path": text("how the paths begin that end"), **_SUNSET}},
        "addresses of the application that end",
    ),
    "docs_skill_id": text("`id` of GET /api/v1/skills/docs"),
}
_FIELD_TYPES = {
    "type": ["string", "object"],
    "description": "`string`, `integer?` (may be null), `array<object>`, or JSON Schema",
}

SCHEMAS: dict[str, Schema] = {
    "AuthMethod": record(
        _METHOD,
        id=text("its name"),
        title=text("its name for people"),
        description=nullable("string", "when to take it"),
        oauth=flag("whether a person's consent gives the credentials"),
        grant_type=nullable("string", "how tokens come without a person"),
        **_SUNSET,
        fields=by_name(
            {
                "type": "object",
                "properties": {
                    "description": text("what it is"),
                    "required": flag("whether it must be given"),
                    "secret": flag("whether it is never shown"),
                    "format": nullable("string", "what form it has"),
                },
            },
            "the members of `credentials`, by name",
        ),
    ),
    "KindSummary": record(
        {**_SUMMARY, "entities": {"tickets": ["list", "get"]}},
        **_KIND_MEMBERS,
        entities=by_name(array(text("an action"), "its actions"), "actions, by entity"),
    ),
    "KindSummaries": record(
        {"data": [{**_SUMMARY, "entities": {"tickets": ["list", "get"]}}], "next_cursor": None},
        data=array(ref("KindSummary"), "all kinds"),
        next_cursor={"type": "null", "description": "there is one page"},
    ),
    "Kind": record(
        {
            **_SUMMARY,
            "entities": {"tickets": {"description": "…", "fields": {"id": "integer"}, "actions": {"get": _ACTION}}},
        },
        **_KIND_MEMBERS,
        entities=by_name(ref("Entity"), "entities, by name"),
    ),
    "Entity": record(
        {"description": "Customer requests.", "fields": {"id": "integer"}, "actions": {"get": _ACTION}},
        description=text("what it is"),
        fields=by_name(_FIELD_TYPES, "the members of its records and their types"),
        actions=by_name(ref("Action"), "what can be done, by name"),
        search_fields=by_name(text("its type"), "what filters of `context_store_search` may name"),
    ),
    "Action": record(
        _ACTION,
        description=text("what it does"),
        effect=text("what running it twice would do", enum=EFFECTS),
        runs=text("whether it is answered at once or by a job", enum=["inline", "job", "wait"]),
        params={"type": "object", "description": "JSON Schema 2020-12 of its params", "additionalProperties": True},
        meta=array(text("a member"), "the members of `connector_metadata`"),
        paging={"anyOf": [ref("Paging"), {"type": "null"}], "description": "how its pages are turned"},
        alternatives=array(
            {
                "type": "object",
                "properties": {
                    "without": text("the param that is left out"),
                    "paging": {"anyOf": [ref("Paging"), {"type": "null"}], "description": "what holds then"},
                },
            },
            "what holds instead when a param is left out",
        ),
        example={"type": "object", "description": "a body of execute that is right", "additionalProperties": True},
    ),
    "Paging": record(
        {
            "style": "page",
            "param": "page",
            "size": "per_page",
            "next": "next_page",
            "has_more": None,
            "max_pages": 100,
            "incomplete": None,
        },
        style=text("how the next page is asked for", enum=[style.value for style in PagingStyle]),
        param=text("the param that turns the page"),
        size=nullable("string", "the param that sets how many records it holds"),
        next=text("the member of Meta that goes into `param`"),
        has_more=nullable("string", "the member of Meta that must be true for a next page"),
        max_pages=nullable("integer", "how many pages there are at most"),
        incomplete=nullable("string", "the member of Meta that says that the list is not whole"),
    ),
}
