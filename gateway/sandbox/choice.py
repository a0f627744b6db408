"""Finds the operation of a call, because several operations may have the same method and path. Pure."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from gateway.kinds.catalog import Operation
from gateway.kinds.graphql_documents import with_selection
from gateway.kinds.requests import Action
from gateway.sandbox.calls import Call
from gateway.sandbox.filters import as_text


def chosen(operations: Sequence[Operation], call: Call) -> Operation | None:
    """The operation whose document and constants the call has, and of whose required members it lacks fewest."""
    matching = [operation for operation in operations if _matches(operation, call)]
    return min(matching, key=lambda each: _lacking(each, call), default=None)


def _chosen_fields(operation: Operation, document: str) -> str:
    """The document without the fields that callers choose."""
    return _without_selections(document, tuple(each.wire for each in operation.placements if each.where == "fragment"))


@lru_cache(maxsize=1024)
def _without_selections(document: str, fragments: Sequence[str]) -> str:
    for fragment in fragments:
        document = with_selection(document, fragment, ())
    return document


def _lacking(operation: Operation, call: Call) -> tuple[int, int]:
    """A sort key: the number of missing required members, then more required and fixed ones first."""
    required, fixed = operation.action.required, _fixed(operation.action)
    in_query = [each for each in operation.placements if each.where == "query"]
    needed = [each.wire for each in in_query if each.name in required]
    in_body = [each for each in operation.placements if each.where == "body" and each.name in required]
    needed_in_body = {each.wire.partition(".")[0] for each in in_body} if call.is_json else set()
    missing = sum(name not in call.query for name in needed) + len(needed_in_body - call.body.keys())
    return missing, -len(needed) - len(needed_in_body) - sum(each.name in fixed for each in in_query)


def _matches(operation: Operation, call: Call) -> bool:
    """Whether a call has the document and the constants of an operation."""
    action = operation.action
    if action.graphql is not None:
        return _chosen_fields(operation, str(call.body.get("query"))) == _chosen_fields(operation, action.graphql)
    fixed = _fixed(action)
    chosen = {
        each.wire: fixed[each.name] for each in operation.placements if each.where == "query" and each.name in fixed
    }
    if opens_upload_session(operation, call):
        chosen = {}  # the constants of the session replace those of an upload in one request
    in_query = all(name in call.query for name in action.constant_query)
    in_query = in_query and all(call.query.get(name) == as_text(value) for name, value in chosen.items())
    return in_query and _has(operation, call.body, action.constant_body)


def _has(operation: Operation, value: Any, constant: Any) -> bool:
    """Whether a part of a body has the constants of an operation; those that are missing do not count."""
    if isinstance(constant, dict) and isinstance(value, Mapping):
        return all(name not in value or _has(operation, value[name], inner) for name, inner in constant.items())
    if isinstance(constant, list) and isinstance(value, list):
        return all(_has(operation, each, inner) for each, inner in zip(value, constant, strict=False))
    return value == constant or operation.action.param_in(constant) is not None


def opens_upload_session(operation: Operation, call: Call) -> bool:
    """Whether a call has the constants that open an upload session; without them it uploads in one request."""
    how = operation.action.upload_session
    return how is not None and all(call.query.get(name) == value for name, value in how.constant_query.items())


def _fixed(action: Action) -> dict[str, Any]:
    """The params with only one allowed value, which is their default."""
    schemas = action.params.items()
    return {name: schema["default"] for name, schema in schemas if schema.get("enum") == [schema.get("default")]}
