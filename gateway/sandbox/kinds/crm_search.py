"""The search of CRM records: filter groups over property maps."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any


def is_found(properties: Mapping[str, Any], search: Mapping[str, Any]) -> bool:
    """Whether a record matches all filters of at least one group, and contains the text of `query`."""
    words = str(search.get("query") or "").lower()
    if words and not any(words in str(value).lower() for value in properties.values()):
        return False
    groups = search.get("filterGroups") or []
    return not groups or any(all(_passes(properties, one) for one in group.get("filters", [])) for group in groups)


def _passes(properties: Mapping[str, Any], one: Mapping[str, Any]) -> bool:
    have, wanted = properties.get(one.get("propertyName", "")), one.get("value")
    match one.get("operator"):
        case "HAS_PROPERTY":
            return have not in (None, "")
        case "NOT_HAS_PROPERTY":
            return have in (None, "")
        case "NEQ":
            return _rank(have) != _rank(wanted)
        case "NOT_IN":
            return _rank(have) not in [_rank(value) for value in one.get("values", [])]
        case "NOT_CONTAINS_TOKEN":
            return not _contains(have, wanted)
        case _ if have is None:
            return False
        case "EQ":
            return _rank(have) == _rank(wanted)
        case "IN":
            return _rank(have) in [_rank(value) for value in one.get("values", [])]
        case "CONTAINS_TOKEN":
            return _contains(have, wanted)
        case "GT":
            return _rank(have) > _rank(wanted)
        case "GTE":
            return _rank(have) >= _rank(wanted)
        case "LT":
            return _rank(have) < _rank(wanted)
        case "LTE":
            return _rank(have) <= _rank(wanted)
        case "BETWEEN":
            return _rank(wanted) <= _rank(have) <= _rank(one.get("highValue"))
    return False


def _contains(have: Any, wanted: Any) -> bool:
    token = str(wanted or "").strip("*").lower()
    return token in str(have or "").lower()


def _rank(value: Any) -> tuple[int, float, str]:
    """A sort key: numbers and times, which are compared in milliseconds, before other texts."""
    text = str(value if value is not None else "")
    try:
        return 0, float(text), ""
    except ValueError:
        pass
    try:
        return 0, datetime.fromisoformat(text).timestamp() * 1000, ""
    except ValueError:
        return 1, 0.0, text.lower()
