"""An operation whole, as plain data: what an agent reads before it calls."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gateway.kinds.actions import SEARCH_ACTION
from gateway.operation_search.entries import CACHED, OperationEntry
from gateway.operation_search.schemas import constraint_sentences, tool_schema
from gateway.operation_search.signatures import signature_of


@lru_cache(CACHED)
def summary(entry: OperationEntry) -> Mapping[str, Any]:
    """The operation in a few lines: names, effect and signature; the same mapping each time."""
    return {
        "operation": entry.name,
        "application": entry.kind.spec.application,
        "kind": entry.kind.name,
        "entity": entry.entity_id,
        "action": entry.action_id,
        "effect": entry.effect.value,
        "title": entry.title,
        "signature": signature_of(entry),
        "description": entry.description,
    }


def describe(entry: OperationEntry) -> dict[str, Any]:
    """The summary, and besides: params as JSON Schema, an example, the members of the record, and how pages turn.

    For a search of the copy the params tell the query language, and `fields` what filters may name.
    """
    return {
        **summary(entry),
        "params": tool_schema(entry),
        "constraints": constraint_sentences(entry),
        "example": entry.example,
        "fields": entry.fields,
        "paging": _paging(entry),
        "runs": entry.action.runs if entry.action else "inline",
    }


def _paging(entry: OperationEntry) -> dict[str, Any] | None:
    """The param that turns the page, the one that sets its size, and the members of Meta."""
    if entry.action_id == SEARCH_ACTION:
        return {"param": "cursor", "size": "limit", "meta": ["has_more", "cursor"]}
    paging = entry.kind.operation(entry.entity_id, entry.action_id).paging
    return {"param": paging.param, "size": paging.size, "meta": list(paging.meta)} if paging else None
