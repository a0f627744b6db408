"""Reads params from a command line: `key=value`, `key:=json`, `key=@file` and `@params.json`."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import msgspec

from gateway.kinds.command_line import Schema, dereferenced, typed

PARAMS_HELP = """\b
Params:
  per_page=2              a value; numbers and lists (a,b) where expected
  ticket.subject=Fire     a member of an object
  ticket:='{"id": 1}'     JSON
  body=@letter.txt        the text of a file; with := its JSON
  @params.json            many params at once; @- reads them from stdin
"""


def read_params(words: Iterable[str], schema: Schema) -> dict[str, Any]:
    """The params in the words, each value converted to the type in its schema; raises click.BadParameter."""
    params: dict[str, Any] = {}
    for word in words:
        if word.startswith("@"):
            params.update(_object(word, _file(word[1:])))
        else:
            _put(params, *_read_word(word, schema))
    return params


def _read_word(word: str, schema: Schema) -> tuple[list[str], Any]:
    name, equals, text = word.partition("=")
    is_json = name.endswith(":")
    name = name.removesuffix(":")
    if not equals or not name:
        raise click.BadParameter(f"{word!r} is not a param; write key=value, key:=json or @file")
    if text.startswith("@"):
        text = _file(text[1:])
        return _path(name, schema), _json(name, text) if is_json else text
    path = _path(name, schema)
    return path, _json(name, text) if is_json else typed_value(name, text, schema_at(schema, path))


def _path(name: str, schema: Schema) -> list[str]:
    """The parts of a dotted name; one part if the operation has a param with that name, dots included."""
    return [name] if name in schema.get("properties", {}) else name.split(".")


def _put(params: dict[str, Any], path: list[str], value: Any) -> None:
    *outer, last = path
    for name in outer:
        inner = params.setdefault(name, {})
        if not isinstance(inner, dict):
            raise click.BadParameter(f"{'.'.join(path)}: {name} has a value already and cannot be an object too")
        params = inner
    if isinstance(params.get(last), list) and isinstance(value, list):
        value = [*params[last], *value]
    params[last] = value


def schema_at(schema: Schema, path: Iterable[str]) -> Schema:
    """The schema of a member; {} if the schema does not describe it."""
    definitions, found = schema.get("$defs", {}), schema
    for name in path:
        found = dereferenced(found.get("properties", {}).get(name, {}), definitions)
    return {**found, "$defs": definitions}


def typed_value(name: str, text: str, schema: Schema) -> Any:
    """The text converted to the type in the schema; raises click.BadParameter."""
    try:
        return typed(text, schema)
    except msgspec.DecodeError as error:
        raise _no_json(name, text, error) from error


def _json(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise _no_json(name, text, error) from error


def _no_json(name: str, text: str, error: msgspec.DecodeError) -> click.BadParameter:
    return click.BadParameter(f"{name}: {text[:60]!r} is not JSON ({error}); quote it for the shell")


def _object(word: str, text: str) -> dict[str, Any]:
    found = _json(word, text)
    if not isinstance(found, dict):
        raise click.BadParameter(f"{word} must contain a JSON object of params")
    return found


def _file(name: str) -> str:
    try:
        return sys.stdin.read().removeprefix("\ufeff") if name == "-" else Path(name).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from error


def read_pairs(words: Iterable[str], option: str) -> dict[str, str]:
    """The values of a repeatable option by name; each is `NAME=VALUE` or `NAME=@FILE`. Raises click.BadParameter."""
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or "\n" in name:
            # The beginning of a private key, which was given without a name, is no secret.
            raise click.BadParameter(f"{word[:20]!r}: write {option} NAME=VALUE, or NAME=@FILE")
        pairs[name] = value_or_file(value)
    return pairs


def value_or_file(text: str) -> str:
    """The text, or for `@FILE` the content of the file without a final line feed."""
    return _file(text[1:]).rstrip("\n") if text.startswith("@") else text
