"""How schemathesis sends bodies of one JSON document a line: as the text that it makes up."""

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(context: schemathesis.SerializationContext, value: object) -> bytes:
    return str(value).encode(errors="replace")
