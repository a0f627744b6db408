"""The engine of `pattern` in params: linear in the text, with a bound on what it compiles and matches."""

import re
from collections.abc import Callable, Iterator, Mapping
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
#: `\b` and `\B`: with these the engine takes up to four times as long for a text that is not ASCII
_WORD_BOUNDARY, _SLOWER = re.compile(r"\\[bB]"), 4
#: escapes of classes, and the maximum of them in a pattern: to translate them takes the square of their number
_CLASS, MAX_CLASSES = re.compile(r"\\[dDwWsS]"), 20
#: the keywords in which it is followed which texts a pattern matches
FOLLOWED = frozenset({"properties", "additionalProperties", "items", "allOf", "anyOf", "oneOf", "$ref"})

OPTIONS = jsonschema_rs.RegexOptions(size_limit=_MAX_SIZE)


def validator_of(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """The validator of params; raises ValueError for what is no schema, and for a pattern that is not compiled."""
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True, pattern_options=OPTIONS)


def is_pattern(pattern: str) -> bool:
    """Whether an imported pattern is used: the linear engine has no look-arounds and no references to groups."""
    return len(pattern) <= _MAX_CHARACTERS and not _FLAGS.search(pattern) and _is_compiled(pattern)


def is_slow(pattern: str) -> bool:
    """Whether it may take long to compile a pattern."""
    return len(_CLASS.findall(pattern)) > MAX_CLASSES


def without_unusable(schema: Any) -> Any:
    """A schema without the patterns that are too large, or in a syntax that the engine does not have."""
    return _with_patterns(schema, _is_compiled)


def without_patterns(schema: Any) -> Any:
    """A schema that accepts texts and names whether or not they match patterns."""
    return _with_patterns(schema, lambda _: False)


def _with_patterns(schema: Any, is_kept: Callable[[str], bool]) -> Any:
    if isinstance(schema, list):
        return [_with_patterns(each, is_kept) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        name: _with_patterns(value, is_kept)
        for name, value in schema.items()
        if name != "pattern" or not isinstance(value, str) or is_kept(value)
    }
    named = found.get("patternProperties")
    if isinstance(named, dict):
        found["patternProperties"] = {pattern: value for pattern, value in named.items() if is_kept(pattern)}
    return found


def has_pattern(schema: Any) -> bool:
    """Whether a schema, or one within it, has a pattern."""
    inner = schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ()
    return (isinstance(schema, Mapping) and "pattern" in schema) or any(map(has_pattern, inner))


@lru_cache(4096)
def weight_of(pattern: str) -> int:
    """What a byte of a text weighs: the compiled pattern's bytes as a power of two; 0 for one that is not checked."""
    size = _SMALL
    while size <= _MAX_SIZE and not _is_compiled(pattern, size):
        size *= 2
    if size > _MAX_SIZE:
        return 0
    return size * _SLOWER if _WORD_BOUNDARY.search(pattern) else size


def weight_elsewhere(schema: Any, definitions: Mapping[str, Any]) -> int:
    """The weight of the patterns in a schema that stand in other keywords than those in which they are followed."""
    if isinstance(schema, list):
        return sum(weight_elsewhere(each, definitions) for each in schema)
    if not isinstance(schema, Mapping):
        return 0
    weight = 0
    for keyword, value in schema.items():
        if keyword == "properties" and isinstance(value, Mapping):
            weight += sum(weight_elsewhere(each, definitions) for each in value.values())
        elif keyword in FOLLOWED:
            weight += weight_elsewhere(value, definitions)
        elif keyword != "pattern":
            found = set(_patterns({keyword: value}))
            # A reference may lead to any definition.
            weight += sum(map(weight_of, {*found, *_patterns(definitions)} - {""} if "" in found else found))
    return weight


def _patterns(schema: Any) -> Iterator[str]:
    """The patterns within a schema; an empty one for a reference."""
    if isinstance(schema, list):
        for each in schema:
            yield from _patterns(each)
    elif isinstance(schema, Mapping):
        for keyword, value in schema.items():
            if keyword == "$ref":
                yield ""
            elif keyword == "pattern" and isinstance(value, str):
                yield value
            elif keyword == "patternProperties" and isinstance(value, Mapping):
                yield from value
            yield from _patterns(value)


@lru_cache(4096)
def _is_compiled(pattern: str, size: int = _MAX_SIZE) -> bool:
    if is_slow(pattern):
        return False
    options = jsonschema_rs.RegexOptions(size_limit=size)
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except ValueError:
        return False
    return True
