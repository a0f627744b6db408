"""Schemas and examples of what is found: operations, their tools, and documents for agents."""

from gateway.http.openapi.kind_schemas import EFFECTS, PARAMS_SCHEMA
from gateway.http.openapi.parts import ID, Schema, array, by_name, flag, nullable, number, record, ref, text

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

SCHEMAS: dict[str, Schema] = {
    "Operation": record(
        _OPERATION,
        operation=text("`kind.entity.action`"),
        kind=text("the kind"),
        entity=text("the entity"),
        action=text("the action"),
        effect=text("what running it twice would do", enum=EFFECTS),
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
                    "inputSchema": PARAMS_SCHEMA,
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
}
