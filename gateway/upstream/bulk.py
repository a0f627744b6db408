"""Combines many calls of one operation into one request, and finds the outcome of each call in its response: pure."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from gateway.contract.kinds import Effect
from gateway.errors import GatewayError, OutcomeUnknown, ReauthorizationRequired, with_unknown_outcome
from gateway.foundation import payloads
from gateway.kinds.bulk import ITEMS, Bulk
from gateway.upstream.long_running.portions import texts_of
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.responses import OperationResult, raw_at
from gateway.upstream.retries import NOTHING_DONE

#: errors after which the application has certainly executed none of the items, whatever the spec says
_NOTHING_DONE = (*NOTHING_DONE, ReauthorizationRequired)

#: the outcome of one call of a bulk request; None if the call is to be sent by itself
Outcome: TypeAlias = OperationResult | GatewayError | None
#: the values that tell the records of one bulk request apart
Match: TypeAlias = tuple[str | None, ...]


def group_of(call: PreparedCall) -> str | None:
    """The key shared by calls that one bulk request can replace; None for a call that is sent by itself."""
    how, bulk = call.operation.action.bulk, call.operation.bulk
    if how is None or bulk is None or call.variant is not call.operation:
        return None
    shared = _shared(how, call)
    if not shared.keys() <= bulk.action.params.keys() or any(name not in shared for name in how.required):
        return None
    return msgspec.json.encode([str(call.operation), shared], order="deterministic").decode()


def match_of(call: PreparedCall) -> Match:
    """The values that identify this call's record in the response."""
    return tuple(_text(call.params[name]) for name in _how(call).match)


def bulk_call(calls: Sequence[PreparedCall]) -> PreparedCall:
    """The bulk request that replaces the calls of one group; calls for the same record share an item."""
    how, bulk = _how(calls[0]), calls[0].operation.bulk
    assert bulk is not None
    items = {match_of(call): _item(how, call.params) for call in calls}
    shared = {name: _as_declared(how, name, value) for name, value in _shared(how, calls[0]).items()}
    return PreparedCall.of(bulk, {**shared, ITEMS: list(items.values())})


def outcomes(calls: Sequence[PreparedCall], answer: OperationResult) -> list[Outcome]:
    """The outcome of each call. If the response has no record for a call: OutcomeUnknown for a write, else None."""
    paths = tuple(_how(calls[0]).match.values())
    records = {tuple(_text_at(record, path) for path in paths): record for record in answer.records}
    found = (records.get(match_of(call)) for call in calls)
    return [
        _unmentioned(call) if record is None else OperationResult(result=record)
        for call, record in zip(calls, found, strict=True)
    ]


def outcomes_of_error(calls: Sequence[PreparedCall], error: GatewayError) -> list[Outcome]:
    """The outcome of each call of a failed bulk request. Writes are sent one by one only if none was executed."""
    if calls[0].effect is not Effect.WRITE:
        return [None] * len(calls)
    status = error.upstream.status if error.upstream else None
    if status is None or error.is_outcome_unknown:
        return [error] * len(calls)
    if isinstance(error, _NOTHING_DONE) or status in _how(calls[0]).rejects_all:
        return [None] * len(calls)
    unknown = with_unknown_outcome(error, {"request_sent": True}, safe_to_retry=False)
    return [unknown] * len(calls)


def _unmentioned(call: PreparedCall) -> Outcome:
    if call.effect is not Effect.WRITE:
        return None
    words = f"{call.operation}: the application's answer to many calls does not mention this one; look it up"
    extra = {"outcome": "unknown", "known": {"request_sent": True}, "safe_to_retry": False}
    return OutcomeUnknown(words, extra=extra)


def _how(call: PreparedCall) -> Bulk:
    how = call.operation.action.bulk
    assert how is not None
    return how


def _shared(how: Bulk, call: PreparedCall) -> dict[str, Any]:
    """The params that are not part of the item."""
    return {name: value for name, value in call.params.items() if name not in how.item_params}


def _as_declared(how: Bulk, name: str, value: Any) -> Any:
    """The value; a comma-separated text becomes a list where the bulk request declares an array."""
    is_list = how.params.get(name, {}).get("type") == "array"
    return texts_of(value) if is_list and isinstance(value, str) else value


def _item(how: Bulk, params: Mapping[str, Any]) -> Any:
    if isinstance(how.item, str):
        return params[how.item_params[0]]
    names = zip(how.item, how.item_params, strict=True)
    return {member: params[name] for member, name in names if name in params}


def _text_at(record: msgspec.Raw, path: Sequence[str]) -> str | None:
    raw = raw_at(record, tuple(path))
    return None if raw is None else _text(payloads.value(raw))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
