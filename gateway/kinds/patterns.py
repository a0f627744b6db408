"""The engine of `pattern` in params: linear in the text, with a bound on what it compiles and matches."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jsonschema_rs

#: maximum bytes of a compiled pattern, about 400 states; a byte of a text takes up to 2 µs with so many
_MAX_SIZE = 1 << 15
#: patterns of this size or less weigh the same
_SMALL = 1 << 12
#: maximum characters of an imported pattern
_MAX_CHARACTERS = 500
#: maximum sum, over the texts of a call, of their bytes times the size of their pattern: 50 ms of matching
MAX_WORK = 1 << 29
#: flags such as `(?i)`, which JSON Schema's patterns lack: to ignore case in large classes takes 3 ms to compile each
_FLAGS = re.compile(r"\(\?[a-zA-Z-]+[:)]")

OPTIONS = jsonschema_rs.RegexOptions(size_limit=_MAX_SIZE)


def validator_of(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """The validator of params; raises ValueError for what is no schema, and for a pattern that is not compiled."""
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True, pattern_options=OPTIONS)


def is_pattern(pattern: str) -> bool:
    """Whether an imported pattern is used: the linear engine has no look-arounds and no references to groups."""
    return len(pattern) <= _MAX_CHARACTERS and not _FLAGS.search(pattern) and _is_compiled(pattern)


def without_unusable(schema: Any) -> Any:
    """A schema without the patterns that are too large, or in a syntax that the engine does not have."""
    if isinstance(schema, list):
        return [without_unusable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: without_unusable(value)
        for name, value in schema.items()
        if name != "pattern" or not isinstance(value, str) or _is_compiled(value)
    }


def has_pattern(schema: Any) -> bool:
    """Whether a schema, or one within it, has a pattern."""
    inner = schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ()
    return (isinstance(schema, Mapping) and "pattern" in schema) or any(map(has_pattern, inner))


@lru_cache(4096)
def weight_of(pattern: str) -> int:
    """The size of a pattern when compiled, in bytes, as a power of two; 0 for one that is not checked."""
    size = _SMALL
    while size <= _MAX_SIZE and not _is_compiled(pattern, size):
        size *= 2
    return size if size <= _MAX_SIZE else 0


@lru_cache(4096)
def _is_compiled(pattern: str, size: int = _MAX_SIZE) -> bool:
    options = jsonschema_rs.RegexOptions(size_limit=size)
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except ValueError:
        return False
    return True
