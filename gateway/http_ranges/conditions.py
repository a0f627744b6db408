"""Conditional requests (RFC 9110 §13): whether the client's copy is still the file."""

import re

_ENTITY_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')


def if_range_matches(if_range: str | None, etag: str | None, last_modified: str | None) -> bool:
    """Whether a range may be given (§13.1.5): no condition, the same strong tag, or exactly the same date."""
    if if_range is None:
        return True
    wanted = if_range.strip(" \t")
    if wanted.startswith(('"', "W/")):
        return wanted == etag and is_entity_tag(wanted) and not wanted.startswith("W/")
    return bool(wanted) and wanted == last_modified


def is_not_modified(if_none_match: str | None, etag: str | None) -> bool:
    """Whether 304 is the answer (§13.1.2): the tag is among those the client has, weakly compared; `*` is any file."""
    if if_none_match is None:
        return False
    if if_none_match.strip(" \t") == "*":
        return True
    held = {tag.removeprefix("W/") for tag in _ENTITY_TAG.findall(if_none_match)}
    return etag is not None and etag.removeprefix("W/") in held


def is_entity_tag(text: str) -> bool:
    """Whether the text is an entity tag as §8.8.3 spells it."""
    return _ENTITY_TAG.fullmatch(text) is not None
