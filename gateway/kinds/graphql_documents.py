"""GraphQL documents as text: the fields that callers choose. Pure."""

import re
from collections.abc import Sequence
from typing import Final

#: field names separated by dots; it matches no other GraphQL syntax, so that callers cannot add any
FIELD_NAMES: Final = r"^[_A-Za-z][_0-9A-Za-z]*(\.[_A-Za-z][_0-9A-Za-z]*)*$"


def has_fragment(document: str, fragment: str) -> bool:
    return _head(document, fragment) is not None


def with_selection(document: str, fragment: str, fields: Sequence[str]) -> str:
    """The document; its fragment selects only these fields: `owner.login` becomes `owner { login }`."""
    head = _head(document, fragment)
    if head is None:
        return document
    end, depth = head.end(), 1
    while depth and end < len(document):
        depth += {"{": 1, "}": -1}.get(document[end], 0)
        end += 1
    selected = " ".join(name.replace(".", " { ") + " }" * name.count(".") for name in fields)
    return f"{document[: head.end()]} {selected} {document[end - 1 :]}"


def _head(document: str, fragment: str) -> re.Match[str] | None:
    return re.search(rf"\bfragment\s+{re.escape(fragment)}\s+on\s+\w+\s*{{", document)
