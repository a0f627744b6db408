"""Patterns of operations, `kind.entity.action` with `*`. Pure."""

import re
from fnmatch import translate
from functools import lru_cache

#: what a pattern may consist of
PATTERN = r"^[A-Za-z0-9_.*-]{1,200}$"


def matches(pattern: str, operation: str) -> bool:
    """Whether the pattern has the operation; `*` stands for any characters, points too."""
    return _compiled(pattern).match(operation) is not None


def covers(outer: str, inner: str) -> bool:
    """Whether a pattern has every operation that another pattern has.

    A `*` of the inner pattern is any text, which only a `*` of the outer one has.
    """
    return matches(outer, inner)


@lru_cache(maxsize=10_000)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))
