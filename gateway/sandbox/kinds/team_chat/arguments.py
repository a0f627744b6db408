"""Where the methods of the team chat find their arguments."""

from collections.abc import Mapping
from typing import Any

from gateway.sandbox.calls import Call, Refusal


def arguments(call: Call) -> Mapping[str, Any]:
    """The arguments of a reading method: of the address or of a form, never of JSON."""
    return {**call.query, **(call.body if call.is_form else {})}


def required(call: Call, name: str) -> str:
    """An argument that must be there."""
    value = call.body.get(name) if call.method == "POST" else None
    found = value or call.query.get(name)
    if found in (None, ""):
        raise Refusal(400, "invalid_arguments", f"missing required field: {name}")
    return str(found)
