"""Descriptions and schemas of the six tools; short, because every conversation contains them."""

from collections.abc import Mapping
from typing import Any

#: maximum seconds that a call waits before it returns the job
MAX_WAIT = 50
#: bytes of an answer that is returned whole: the default, and the bounds of the argument
DEFAULT_BYTES, LEAST_BYTES, MAX_BYTES = 20_000, 500, 200_000

_TEXT = {"type": "string"}
_OPERATION = {"type": "string", "description": "kind.entity.action"}
_CONNECTOR = {"type": "string", "description": "name or id, if several fit"}
_RESULT = {"type": "string", "description": "gateway://results/…"}
_PARAMS = {"type": "object"}
_STEPS = '{id, operation, params}; {"$from": "id.path"} takes an earlier result'
_FIELDS = {"type": "array", "items": _TEXT, "description": "keep only these"}
_OFFSET = {"type": "integer", "minimum": 0}
_LIMIT = {"type": "integer", "minimum": 1}
_MAX_BYTES = {"type": "integer", "minimum": LEAST_BYTES, "maximum": MAX_BYTES}

INSTRUCTIONS = (
    "Reads and changes data in connected business applications. Find an operation by plain words, describe it if its "
    "signature does not say enough, then read or write."
)

DESCRIPTIONS: Mapping[str, str] = {
    "find_operations": "Find operations by plain words. Start here.",
    "describe_operation": "An operation's params, example, record fields and paging.",
    "read": "Run an operation that changes nothing. The hint of a cut answer is the call for the rest.",
    "write": (
        "Change data: once with params, or as one job: each for many, steps for several in order. dry_run only shows "
        "the requests."
    ),
    "job": "Follow, cancel or retry a job. If unknown, the write may have happened: look, then confirm a retry.",
    "connect": "Show connectors and their state; get a link for a person to connect an app.",
}

INPUTS: Mapping[str, Mapping[str, Any]] = {
    "find_operations": {
        "task": {"type": "string", "description": "one step: verb, thing, application; no names or dates"},
        "kind": _TEXT,
        "effect": {"enum": ["read", "idempotent", "write"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50},
    },
    "describe_operation": {"operation": {"type": "string", "description": "kind.entity.action or query-language"}},
    "read": {
        "operation": {"type": "string", "description": "kind.entity.action or gateway://results/ID"},
        "params": _PARAMS,
        "connector": _CONNECTOR,
        "fields": _FIELDS,
        "max_bytes": _MAX_BYTES,
        "all_pages": {"type": "boolean"},
        "offset": _OFFSET,
        "limit": _LIMIT,
    },
    "write": {
        "operation": _OPERATION,
        "params": _PARAMS,
        "each": {"type": "array", "items": _PARAMS, "description": "params of many calls"},
        "steps": {"type": "array", "items": _PARAMS, "description": _STEPS},
        "connector": _CONNECTOR,
        "fields": {**_FIELDS, "description": "default: id, URL, what was written"},
        "dry_run": {"type": "boolean"},
        "idempotency_key": {"type": "string", "description": "calls with one key write once"},
    },
    "job": {
        "job_id": _TEXT,
        "wait_seconds": {"type": "integer", "minimum": 0, "maximum": MAX_WAIT},
        "do": {"enum": ["follow", "cancel", "retry"]},
        "confirm": {"type": "boolean", "description": "may happen twice"},
    },
    "connect": {"kind": _TEXT, "connector": _CONNECTOR},
}
#: arguments of `read` beside tools for operations, where it reads only stored results
RESULT_INPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "operation": _RESULT,
        "offset": _OFFSET,
        "limit": _LIMIT,
        "fields": _FIELDS,
        "max_bytes": _MAX_BYTES,
    },
    "required": ["operation"],
}
_REQUIRED = {
    "find_operations": ["task"],
    "describe_operation": ["operation"],
    "read": ["operation"],
    "job": ["job_id"],
}

#: the schemas of answers, for tools whose answer is more specific than an object
OUTPUTS: Mapping[str, Mapping[str, Any]] = {
    "find_operations": {"type": "object", "properties": {"data": {"type": "array"}}, "required": ["data"]},
    "connect": {"type": "object", "properties": {"connectors": {"type": "array"}}, "required": ["connectors"]},
}

ANNOTATIONS: Mapping[str, Mapping[str, bool]] = {
    "find_operations": {"readOnlyHint": True, "openWorldHint": False},
    "describe_operation": {"readOnlyHint": True, "openWorldHint": False},
    "read": {"readOnlyHint": True},
    "write": {"destructiveHint": True},
    "job": {"destructiveHint": True},
    "connect": {"destructiveHint": False},
}


def input_schema(name: str) -> dict[str, Any]:
    """JSON Schema of a tool's arguments."""
    schema: dict[str, Any] = {"type": "object", "properties": INPUTS[name]}
    return {**schema, "required": _REQUIRED[name]} if name in _REQUIRED else schema
