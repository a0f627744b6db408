"""How schemathesis sends requests: bodies that are no JSON as what it makes up, all for the token's organization."""

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(context: schemathesis.SerializationContext, value: object) -> bytes:
    return str(value).encode(errors="replace")


@schemathesis.serializer("application/partial-upload")
def part(context: schemathesis.SerializationContext, value: object) -> bytes:
    return bytes(value) if isinstance(value, bytes) else str(value).encode(errors="replace")


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, object]) -> None:
    """Requests are of the token's own organization: every other is refused before its handler reads anything."""
    case.headers.pop("X-Organization-Id", None)
