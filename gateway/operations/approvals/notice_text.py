"""The params of a notice, whose texts have placeholders such as `{{url}}`. Pure.

Names of clients, connectors and workspaces are chosen by others than who wrote the params. So they become one line of
plain text that no application reads as markup, and nothing in them is a placeholder.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.errors import FieldError
from gateway.kinds.suggestions import did_you_mean

#: the placeholders, each with the value that stands for it when the params are checked. None tells what is in a request
#: or what it changes: approvers see that on the page of the approval, as far as they may
PLACEHOLDERS: Mapping[str, str] = {
    "approval_id": "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11",
    "url": "https://gateway.example.com/console/approvals/0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11",
    "operation": "tickets.update",
    "items": "1",
    "reason": "Writes need a person.",
    "connector": "Support desk",
    "workspace": "acme",
    "requested_by": "Support bot",
    "expires_at": "2026-03-01 13:00 UTC",
}
#: maximum characters of the params, and of the value of a placeholder
_MAX_PARAMS, _MAX_VALUE = 16_384, 200
_PLACEHOLDER = re.compile(r"\{\{([^{}]*+)\}\}")
#: what begins or ends markup of HTML, Slack, Markdown and mail headers, and what replaces it
_MARKUP = str.maketrans({"<": "‹", ">": "›", "[": "(", "]": ")", "|": "¦", "`": "’", "'": "’", '"': "”"})


def rendered(params: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """The params with values in place of placeholders."""
    # In JSON two opening braces stand in texts only. A value is not searched for placeholders again.
    text = _PLACEHOLDER.sub(lambda found: json.dumps(values[found[1].strip()])[1:-1], _text_of(params))
    params_rendered: dict[str, Any] = json.loads(text)
    return params_rendered


def plain(value: str) -> str:
    """A name or a reason as one line of text without markup."""
    line = " ".join("".join(each if each.isprintable() else " " for each in value).split())
    return (line if len(line) <= _MAX_VALUE else f"{line[: _MAX_VALUE - 1]}…").translate(_MARKUP)


def faults_of(params: Mapping[str, Any]) -> Iterator[FieldError]:
    """What is wrong with the params before their placeholders are replaced."""
    text = _text_of(params)
    if len(text) > _MAX_PARAMS:
        message = f"params have {len(text)} characters as JSON; at most {_MAX_PARAMS} are allowed"
        yield FieldError("/params", "params", "too_long", message)
        return
    for name in dict.fromkeys(each.strip() for each in _PLACEHOLDER.findall(text)):
        if name not in PLACEHOLDERS:
            message = f"params: {{{{{name[:50]}}}}} is no placeholder; {did_you_mean(name[:50], PLACEHOLDERS)}"
            yield FieldError("/params", "params", "unknown", message)


def _text_of(params: Mapping[str, Any]) -> str:
    return json.dumps(dict(params), ensure_ascii=False)
