"""Schemas and examples of what there is to call: kinds, operations, tools, documents for agents, and MCP."""

from gateway.http.openapi.parts import ID, Schema, array, by_name, flag, nullable, number, record, ref, text
from gateway.kinds.spec import Effect, PagingStyle

_EFFECTS = [effect.value for effect in Effect]
_PARAMS_SCHEMA = {"type": "object", "properties": {"ticket_id": {"type": "integer"}}, "required": ["ticket_id"]}
_METHOD = {
    "id": "api_token",
    "title": "API token",
    "description": None,
    "oauth": False,
    "grant": None,
    "until": None,
    "deprecated": None,
    "instead": None,
    "see": None,
    "fields": {
        "api_token": {"description": "made in the admin center", "required": True, "secret": True, "format": None}
    },
}
_SUMMARY = {
    "kind": "support-desk",
    "connector_type": "Support-Desk",
    "definition_id": ID,
    "title": "Support desk",
    "description": "Read and write tickets, comments and users.",
    "auth_methods": [_METHOD],
    "environment": {
        "subdomain": {"description": "…", "required": True, "type": "dns_label", "example": "acme", "default": None}
    },
    "oauth": True,
    "ends": [],
    "docs_skill_id": "support-desk",
}
_ACTION: Schema = {
    "description": "One ticket.",
    "effect": "read",
    "runs": "inline",
    "params": _PARAMS_SCHEMA,
    "meta": [],
    "paging": None,
    "alternatives": [],
    "example": {"entity": "tickets", "action": "get", "params": {"ticket_id": 1}},
}
_SUNSET: dict[str, Schema] = {
    "until": nullable("string", "the first day without it", format="date"),
    "deprecated": nullable("string", "since when it should not be taken up", format="date"),
    "instead": nullable("string", "what takes its place"),
    "see": nullable("string", "where the application says so"),
}
_KIND_MEMBERS: dict[str, Schema] = {
    "kind": text("the kind's name"),
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
    "ends": array(
        {"type": "object", "properties": {"path": text("how the paths begin that end"), **_SUNSET}},
        "addresses of the application that end",
    ),
    "docs_skill_id": text("`id` of GET /api/v1/skills/docs"),
}
_FIELD_TYPES = {
    "type": ["string", "object"],
    "description": "`string`, `integer?` (may be null), `array<object>`, or JSON Schema",
}
_BLOCK_TYPES = ["heading", "paragraph", "list", "table", "code"]
_OPERATION = {
    "operation": "support-desk.tickets.get",
    "kind": "support-desk",
    "entity": "tickets",
    "action": "get",
    "effect": "read",
    "title": "Get ticket",
    "signature": "tickets.get(ticket_id*) → ticket",
    "description": "One ticket.",
    "score": 0.92,
    "connectors": [{"id": ID, "name": "Help desk", "workspace_name": "acme", "status": "active"}],
}
_RPC_EXAMPLE = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": [], "isError": False}}
_ISSUER = "https://gateway.example.com"

SCHEMAS: dict[str, Schema] = {
    "AuthMethod": record(
        _METHOD,
        id=text("its name"),
        title=text("its name for people"),
        description=nullable("string", "when to take it"),
        oauth=flag("whether a person's consent gives the credentials"),
        grant=nullable("string", "how tokens come without a person"),
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
        effect=text("what running it twice would do", enum=_EFFECTS),
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
            "more": None,
            "pages": 100,
            "incomplete": None,
        },
        style=text("how the next page is asked for", enum=[style.value for style in PagingStyle]),
        param=text("the param that turns the page"),
        size=nullable("string", "the param that sets how many records it holds"),
        next=text("the member of Meta that goes into `param`"),
        more=nullable("string", "the member of Meta that must be true for a next page"),
        pages=nullable("integer", "how many pages there are at most"),
        incomplete=nullable("string", "the member of Meta that says that the list is not whole"),
    ),
    "Operation": record(
        _OPERATION,
        operation=text("`kind.entity.action`"),
        kind=text("the kind"),
        entity=text("the entity"),
        action=text("the action"),
        effect=text("what running it twice would do", enum=_EFFECTS),
        title=text("a few words for people"),
        signature=text("its params in one line, `*` marks what is required"),
        description=text("what it does"),
        score=nullable("number", "how well it fits; null without a query"),
        connectors=array(
            {
                "type": "object",
                "properties": {
                    "id": text("the connector's id", format="uuid"),
                    "name": text("its name"),
                    "workspace_name": text("its workspace"),
                    "status": text("whether it can be used"),
                },
            },
            "the connectors that could run it, 20 at most",
        ),
    ),
    "Operations": record(
        {"data": [_OPERATION], "took_ms": 3},
        data=array(ref("Operation"), "the best first; without a query in a fixed order"),
        took_ms=number("milliseconds that the search took"),
    ),
    "Tools": record(
        {
            "data": [
                {
                    "name": "support-desk__tickets__get",
                    "title": "Get ticket",
                    "description": "Get ticket (Support desk). One ticket.",
                    "inputSchema": _PARAMS_SCHEMA,
                    "annotations": {
                        "readOnlyHint": True,
                        "destructiveHint": False,
                        "idempotentHint": True,
                        "openWorldHint": True,
                    },
                }
            ],
            "operations": {"support-desk__tickets__get": "support-desk.tickets.get"},
        },
        data=array(
            {"anyOf": [ref("McpTool"), ref("OpenAITool"), ref("AnthropicTool")]}, "tools, as the format writes them"
        ),
        operations=by_name(text("`kind.entity.action`"), "the operation that a tool stands for, by the tool's name"),
    ),
    "McpTool": {
        "type": "object",
        "required": ["name", "title", "description", "inputSchema", "annotations"],
        "properties": {
            "name": text("at most 64 of [a-zA-Z0-9_-]"),
            "title": text("a few words for people"),
            "description": text("what it does"),
            "inputSchema": {"type": "object", "description": "JSON Schema of the params", "additionalProperties": True},
            "annotations": by_name(flag("whether it is so"), "hints that a host asks its user by"),
        },
    },
    "OpenAITool": {
        "type": "object",
        "required": ["type", "function"],
        "properties": {
            "type": {"const": "function", "description": "always `function`"},
            "function": {
                "type": "object",
                "description": "the tool",
                "required": ["name", "description", "parameters"],
                "properties": {
                    "name": text("at most 64 of [a-zA-Z0-9_-]"),
                    "description": text("what it does"),
                    "parameters": {
                        "type": "object",
                        "description": "JSON Schema of the params",
                        "additionalProperties": True,
                    },
                },
            },
        },
    },
    "AnthropicTool": {
        "type": "object",
        "required": ["name", "description", "input_schema"],
        "properties": {
            "name": text("at most 64 of [a-zA-Z0-9_-]"),
            "description": text("what it does"),
            "input_schema": {
                "type": "object",
                "description": "JSON Schema of the params",
                "additionalProperties": True,
            },
        },
    },
    "SkillDocs": record(
        {
            "id": "support-desk",
            "metadata": {"id": "support-desk", "title": "Support desk", "kind": "support-desk"},
            "outline": [{"id": "tickets", "title": "tickets"}],
            "content": [{"type": "heading", "level": 2, "text": "tickets"}],
        },
        id=text("the document's id"),
        metadata={
            "type": "object",
            "description": "what it is of",
            "properties": {"id": text("its id"), "title": text("its title"), "kind": text("the kind")},
        },
        outline=array(
            {"type": "object", "properties": {"id": text("`section` of the call"), "title": text("its heading")}},
            "the sections that there are",
        ),
        content=array(ref("Block"), "the document, or the section that was asked for"),
        section_id=text("the section that was asked for"),
    ),
    "Block": {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": text("what it is", enum=_BLOCK_TYPES),
            "level": number("of a heading"),
            "text": text("of a heading or a paragraph"),
            "ordered": flag("of a list"),
            "items": array(text("an item"), "of a list"),
            "headers": array(text("a column"), "of a table"),
            "rows": array(array(text("a cell"), "a row"), "of a table"),
            "language": text("of code"),
            "code": text("of code"),
        },
    },
    "JsonRpcResponse": {
        "type": "object",
        "description": "JSON-RPC 2.0: `result`, or `error`; their members are those of the Model Context Protocol.",
        "required": ["jsonrpc"],
        "properties": {
            "jsonrpc": {"const": "2.0", "description": "always `2.0`"},
            "id": {"type": ["string", "integer", "null"], "description": "that of the request"},
            "result": {"type": "object", "description": "what the method answers", "additionalProperties": True},
            "error": {
                "type": "object",
                "description": "why it could not be served",
                "required": ["code", "message"],
                "properties": {
                    "code": number("of JSON-RPC 2.0, or of the protocol"),
                    "message": text("what is wrong"),
                    "data": {"description": "what helps to fix it"},
                },
            },
        },
        "examples": [_RPC_EXAMPLE],
    },
    "JsonRpcRequest": {
        "type": "object",
        "description": "A request of the Model Context Protocol; without `id` a notification.",
        "required": ["jsonrpc", "method"],
        "properties": {
            "jsonrpc": {"const": "2.0", "description": "always `2.0`"},
            "id": {"type": ["string", "integer"], "description": "comes back in the response"},
            "method": text("such as `tools/list`"),
            "params": {"type": "object", "description": "what the method takes", "additionalProperties": True},
        },
        "examples": [{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}],
    },
    "ResourceMetadata": record(
        {
            "resource": f"{_ISSUER}/mcp",
            "authorization_servers": [_ISSUER],
            "scopes_supported": ["read", "write"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Agent connector gateway",
        },
        resource=text("the resource", format="uri"),
        authorization_servers=array(text("an issuer"), "who gives tokens for it"),
        scopes_supported=array(text("a scope"), "what tokens may allow"),
        bearer_methods_supported=array(text("a method"), "how a token is sent"),
        resource_name=text("its name for people"),
    ),
    "ServerMetadata": record(
        {
            "issuer": _ISSUER,
            "authorization_endpoint": f"{_ISSUER}/oauth/authorize",
            "token_endpoint": f"{_ISSUER}/oauth/token",
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
            "scopes_supported": ["read", "write"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
        },
        issuer=text("the server's identifier", format="uri"),
        authorization_endpoint=text("where a consent begins", format="uri"),
        token_endpoint=text("where tokens are got", format="uri"),
        registration_endpoint=text("where hosts register, if the operator allows it", format="uri"),
        response_types_supported=array(text("a type"), "RFC 8414 §2"),
        response_modes_supported=array(text("a mode"), "RFC 8414 §2"),
        grant_types_supported=array(text("a grant"), "RFC 8414 §2"),
        token_endpoint_auth_methods_supported=array(text("a method"), "RFC 8414 §2"),
        code_challenge_methods_supported=array(text("a method"), "RFC 7636"),
        scopes_supported=array(text("a scope"), "what tokens may allow"),
        authorization_response_iss_parameter_supported=flag("RFC 9207"),
        client_id_metadata_document_supported=flag("whether a client_id may be the URL of a metadata document"),
    ),
    "HostRegistration": {
        "type": "object",
        "description": "RFC 7591 §2; other members are left unread.",
        "required": ["redirect_uris"],
        "properties": {
            "redirect_uris": array(text("a URL"), "where the host is told the outcome"),
            "client_name": text("its name for people"),
        },
        "additionalProperties": True,
        "examples": [{"redirect_uris": ["http://127.0.0.1:33418/callback"], "client_name": "My agent"}],
    },
    "RegisteredHost": record(
        {
            "client_id": ID,
            "client_name": "My agent",
            "redirect_uris": ["http://127.0.0.1:33418/callback"],
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
        },
        client_id=text("the host's id"),
        client_name=text("its name"),
        redirect_uris=array(text("a URL"), "where it is told the outcome"),
        token_endpoint_auth_method=text("how it proves itself: it keeps no secret"),
        grant_types=array(text("a grant"), "what it may use"),
        response_types=array(text("a type"), "what it may use"),
    ),
}
