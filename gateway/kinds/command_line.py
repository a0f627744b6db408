"""Command lines of calls, as examples show them; `gateway call` reads their words as the same params."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from gateway.kinds.actions import SEARCH_ACTION

Schema = Mapping[str, Any]

_NAME = re.compile(r"\w+")


def example_call(kind: str, entity: str, action: str, params: Mapping[str, Any], schema: Schema) -> str:
    """The command line of one operation, ready to paste into a shell."""
    if action == SEARCH_ACTION:
        return shlex.join(["gateway", "search", kind, entity, "--limit", "10"])
    # `gateway download` saves a whole file, and chooses ranges itself
    words = [word for name, value in params.items() if name != "range_header" for word in words_of(name, value, schema)]
    if action == "download":
        return shlex.join(["gateway", "download", kind, entity, *words])
    return shlex.join(["gateway", "call", kind, entity, action, *words])


def is_key_file(field: Mapping[str, Any]) -> bool:
    """Whether a credential is the whole text of a file, such as a private key."""
    return field.get("format") in ("private_key", "key_file")


def credential_word(name: str, field: Mapping[str, Any]) -> str:
    """How an example of `--credential` gives a credential."""
    if not is_key_file(field):
        return f"{name}=…"
    return f"{name}=@{'key.json' if field['format'] == 'key_file' else 'key.pem'}"


def words_of(name: str, value: Any, schema: Schema) -> Iterator[str]:
    """The words for a param: `key=value` if that is read as the same value, else `key:=json`."""
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


def dereferenced(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """The definition that a schema refers to, or the schema itself."""
    reference = schema.get("$ref", "")
    return definitions.get(reference.removeprefix("#/$defs/"), {}) if reference else schema


def typed(text: str, schema: Schema) -> Any:
    """The text converted to the type in the schema; if that is not possible, the text, which the gateway will refuse.

    Raises msgspec.DecodeError for text that begins like a JSON array or object, but is invalid.
    """
    expected = schema.get("type", "string")
    for name in [expected] if isinstance(expected, str) else expected:
        match name:
            case "integer" if re.fullmatch("-?[0-9]+", text):
                return int(text)
            case "number" if _is_number(text):
                return float(text) if "." in text or "e" in text.lower() else int(text)
            case "boolean" if text.lower() in ("true", "false", "yes", "no"):
                return text.lower() in ("true", "yes")
            case "null" if text == "null":
                return None
            case "array":
                return _array(text, schema)
            case "object" if text.startswith("{"):
                return msgspec.json.decode(text)
    return text


def _array(text: str, schema: Schema) -> Any:
    if text.startswith("["):
        return msgspec.json.decode(text)
    items = dereferenced(schema.get("items", {}), schema.get("$defs", {}))
    return [typed(part, items) for part in text.split(",")]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and text.lower().lstrip("-") not in ("nan", "inf", "infinity")
