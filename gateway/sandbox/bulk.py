"""Bulk requests of an application, simulated from the spec: each item goes to the operation's own handler."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import getitem
from typing import Any

from gateway.contract.kinds import Effect
from gateway.kinds.bulk import ITEMS, Bulk
from gateway.kinds.catalog import Operation
from gateway.kinds.placements import Placement, put
from gateway.sandbox import filters
from gateway.sandbox.calls import Call, Handler, Refusal, Reply, nested
from gateway.sandbox.operations import Operations


def bulk_handler(application: Operations, operation: Operation, own: Handler) -> Handler:
    """The handler of an operation's bulk request, which calls the operation's own handler for each item.

    A read leaves out records that do not exist; a write with one of them is refused as a whole.
    """
    how, bulk = operation.action.bulk, operation.bulk
    assert how is not None
    assert bulk is not None
    is_read = operation.action.effect is Effect.READ

    def answer(call: Call) -> Reply:
        calls = [_own_call(operation, bulk, how, call, item) for item in _items(how, bulk, call)]
        if not is_read:
            for each in calls:
                application.require_row(application.table_of(operation), next(reversed(list(each.params.values()))))
        records = []
        for each in calls:
            try:
                reply = own(each)
            except Refusal as refusal:
                if not is_read or refusal.status != 404:
                    raise
            else:
                assert isinstance(reply, Reply)
                records.append(reduce(getitem, operation.action.record or (), reply.body))
        return Reply(nested(how.records, records))

    return answer


def _items(how: Bulk, bulk: Operation, call: Call) -> list[Any]:
    placement = next(each for each in bulk.placements if each.name == ITEMS)
    items = call.body.get(placement.wire) or []
    if placement.where == "query":
        texts = call.query_list(placement.wire)
        items = texts if placement.explode else [part for text in texts for part in text.split(",") if part]
    if not 0 < len(items) <= how.max_items:
        raise Refusal(400, message=f"{placement.wire} has {len(items)} items; send 1 to {how.max_items}")
    return list(items)


def _own_call(operation: Operation, bulk: Operation, how: Bulk, call: Call, item: Any) -> Call:
    """The call of one item, in the form of the operation's own request."""
    params: dict[str, Any] = dict(zip(re.findall(r"{(\w+)}", how.request), call.params.values(), strict=True))
    params |= {each.name: _shared(each, call) for each in bulk.placements if each.name in how.params}
    if isinstance(how.item, Mapping):
        params |= {name: item.get(member) for member, name in zip(how.item, how.item_params, strict=True)}
    else:
        params[how.item_params[0]] = item
    placed: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "body": {}}
    for placement in operation.placements:
        if (value := params.get(placement.name)) is not None:
            put(placed[placement.where], (placement.wire,), value if placement.where == "body" else _text(value))
    return replace(call, method=operation.method, params=placed["path"], query=placed["query"], body=placed["body"])


def _shared(placement: Placement, call: Call) -> Any:
    return (call.query if placement.where == "query" else call.body).get(placement.wire)


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else filters.as_text(value)
