"""Finds the operation of a call, because several operations may have the same method and path. Pure."""

from collections.abc import Sequence

from gateway.kinds.catalog import Operation
from gateway.kinds.graphql_documents import with_selection
from gateway.kinds.requests import Action
from gateway.sandbox.calls import Call


def chosen(operations: Sequence[Operation], call: Call) -> Operation | None:
    """The operation whose document and constants the call has, and of whose required query members it lacks fewest."""
    matching = [operation for operation in operations if _matches(operation, call)]
    return min(matching, key=lambda each: _lacking(each, call), default=None)


def _chosen_fields(operation: Operation, document: str) -> str:
    """The document without the fields that callers choose."""
    for placement in operation.placements:
        if placement.where == "fragment":
            document = with_selection(document, placement.wire, ())
    return document


def _lacking(operation: Operation, call: Call) -> tuple[int, int]:
    """A sort key: the number of missing required query members, then more required ones first."""
    required = operation.action.required
    needed = [each.wire for each in operation.placements if each.where == "query" and each.name in required]
    return sum(name not in call.query for name in needed), -len(needed)


def _matches(operation: Operation, call: Call) -> bool:
    """Whether a call has the document and the constants of an operation."""
    action = operation.action
    if action.graphql is not None:
        return _chosen_fields(operation, str(call.body.get("query"))) == _chosen_fields(operation, action.graphql)
    chosen = [each.wire for each in operation.placements if each.where == "query" and each.name in _fixed(action)]
    in_query = all(name in call.query for name in (*action.constant_query, *chosen))
    constant = {name: value for name, value in action.constant_body.items() if action.param_in(value) is None}
    return in_query and all(call.body.get(name, value) == value for name, value in constant.items())


def opens_upload_session(operation: Operation, call: Call) -> bool:
    """Whether a call has the constants that open an upload session; without them it uploads in one request."""
    how = operation.action.upload_session
    return how is not None and all(call.query.get(name) == value for name, value in how.constant_query.items())


def _fixed(action: Action) -> list[str]:
    """The params with only one allowed value, which is their default."""
    return [name for name, schema in action.params.items() if schema.get("enum") == [schema.get("default")]]
