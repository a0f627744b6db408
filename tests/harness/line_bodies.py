"""How schemathesis sends bodies that are no JSON: lines and parts of files, as what it makes up."""

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(context: schemathesis.SerializationContext, value: object) -> bytes:
    return str(value).encode(errors="replace")


@schemathesis.serializer("application/partial-upload")
def part(context: schemathesis.SerializationContext, value: object) -> bytes:
    return bytes(value) if isinstance(value, bytes) else str(value).encode(errors="replace")
