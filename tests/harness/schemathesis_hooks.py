"""Hooks of schemathesis: how it sends bodies that are not JSON, and for which organization."""

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(context: schemathesis.SerializationContext, value: object) -> bytes:
    return str(value).encode(errors="replace")


@schemathesis.serializer("application/partial-upload")
def part(context: schemathesis.SerializationContext, value: object) -> bytes:
    return bytes(value) if isinstance(value, bytes) else str(value).encode(errors="replace")


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, object]) -> None:
    """Send the token's organization: requests for others are refused before the handler."""
    case.headers.pop("X-Organization-Id", None)
