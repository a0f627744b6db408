"""A call as one types it: what `gateway types` shows, and what `gateway call` reads back as the same params."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from gateway.cli.arguments import Schema, typed

_SEARCH_ACTION = "context_store_search"
_NAME = re.compile(r"\w+")


def example_call(kind: str, entity: str, action: str, params: Mapping[str, Any], schema: Schema) -> str:
    """The command line of one operation, ready to paste into a shell."""
    if action == _SEARCH_ACTION:
        return shlex.join(["gateway", "search", kind, entity, "--limit", "10"])
    # a file is saved whole, so its ranges are the command's own business
    words = [word for name, value in params.items() if name != "range_header" for word in words_of(name, value, schema)]
    if action == "download":
        return shlex.join(["gateway", "download", kind, entity, *words])
    return shlex.join(["gateway", "call", kind, entity, action, *words])


def words_of(name: str, value: Any, schema: Schema) -> Iterator[str]:
    """The words that say a param: `key=value` where that reads back as the same value, else `key:=json`."""
    inner = schema.get("properties", {}).get(name, {})
    if isinstance(value, dict) and value and all(_NAME.fullmatch(member) for member in value):
        for member, each in value.items():
            for word in words_of(member, each, {**inner, "$defs": schema.get("$defs", {})}):
                yield f"{name}.{word}"
        return
    text = _text(value)
    if (
        text is not None
        and not text.startswith("@")
        and typed(text, {**inner, "$defs": schema.get("$defs", {})}) == value
    ):
        yield f"{name}={text}"
    else:
        yield f"{name}:={msgspec.json.encode(value).decode()}"


def _text(value: Any) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case list() if value and all(isinstance(item, str | int) and "," not in str(item) for item in value):
            return ",".join(str(item) for item in value)
        case _:
            return None
