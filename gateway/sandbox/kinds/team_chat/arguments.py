"""Reads the arguments of the methods of the team chat."""

from collections.abc import Mapping
from typing import Any

from gateway.sandbox.calls import Call, Refusal


def arguments(call: Call) -> Mapping[str, Any]:
    """The arguments of a method that reads: from the query or a form, never from JSON."""
    return {**call.query, **(call.body if call.is_form else {})}


def required(call: Call, name: str) -> str:
    """A required argument; raises Refusal if it is missing."""
    value = call.body.get(name) if call.method == "POST" else None
    found = value or call.query.get(name)
    if found in (None, ""):
        raise Refusal(400, "invalid_arguments", f"missing required field: {name}")
    return str(found)
