"""JSON that would hold the event loop is encoded in a thread."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gateway.foundation.aio.turns import in_thread

#: bytes of JSON, and characters of a text, that are decoded, encoded and signed at once
LARGE = 1 << 20
#: values of a document that is encoded at once
_MANY = 2000


async def encoded(document: Any) -> bytes:
    """The JSON of a document; a large one is encoded in a thread."""
    return await in_thread(msgspec.json.encode, document) if is_large(document) else msgspec.json.encode(document)


def is_large(document: Any) -> bool:
    """Whether it has more than `LARGE` characters of text, or more than 2,000 values; looks at no more of it."""
    characters, values, left = 0, 0, [document]
    while left:
        value = left.pop()
        inner: Iterable[Any] = ()
        if isinstance(value, str | bytes):
            characters += len(value)
        elif isinstance(value, msgspec.Raw):
            characters += len(memoryview(value))
        elif isinstance(value, Mapping):
            values += len(value)
            inner = (*value, *value.values()) if values <= _MANY else ()
        elif isinstance(value, list | tuple):
            values += len(value)
            inner = value if values <= _MANY else ()
        elif isinstance(value, msgspec.Struct):
            inner = [getattr(value, name) for name in value.__struct_fields__]
        if characters > LARGE or values > _MANY:
            return True
        left.extend(inner)
    return False
