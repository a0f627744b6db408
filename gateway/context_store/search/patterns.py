"""Patterns: `%` matches any text, `_` any one character, a backslash escapes the next one; case is ignored."""

import re

from gateway.context_store.tokenizer import folded, words
from gateway.kinds.search_operators import Operator

_WILDCARD = re.compile(r"(?<!\\)(?:\\\\)*[%_]")
_LONELY_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
_LITERAL = re.compile(r"(?:[^%_\\]|\\.)*", re.DOTALL)
_LITERALS = re.compile(r"(?:[^%_\\]|\\.)+", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def pattern_of(operator: Operator, value: str) -> str:
    """The pattern for PostgreSQL's LIKE on folded text."""
    text = folded(value)
    if operator is Operator.LIKE:
        pattern = text + "\\" if _LONELY_BACKSLASH.search(text) else text
        return pattern if _WILDCARD.search(text) else f"%{pattern}%"
    literal = re.sub(r"([\\%_])", r"\\\1", text)
    before = "" if operator is Operator.STARTSWITH else "%"
    after = "" if operator is Operator.ENDSWITH else "%"
    return f"{before}{literal}{after}"


def start_of(pattern: str) -> str:
    """The literal beginning of every matching text; empty for a pattern without wildcards, which means "contains"."""
    if not _WILDCARD.search(pattern):
        return ""
    literal = _LITERAL.match(pattern)
    return _ESCAPED.sub(r"\1", literal[0]) if literal else ""


def words_within(operator: Operator, value: str) -> list[str]:
    """Parts of words that every matching text contains, the longest first."""
    literals = [value]
    if operator is Operator.LIKE:
        literals = [_ESCAPED.sub(r"\1", literal) for literal in _LITERALS.findall(value)]
    return sorted({word for literal in literals for word in words(literal)}, key=lambda word: (-len(word), word))
