"""Params as they are typed on a command line: `key=value`, `key:=json`, `key=@file` and `@params.json`."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import msgspec

from gateway.operation_search.command_line import Schema, dereferenced, typed

PARAMS_HELP = """\b
Params:
  per_page=2              a value; numbers and lists (a,b) where the operation expects them
  ticket.subject=Fire     a member of an object
  ticket:='{"id": 1}'     JSON
  body=@letter.txt        the text of a file; with := its JSON
  @params.json            many params at once; @- reads them from stdin
"""


def read_params(words: Iterable[str], schema: Schema) -> dict[str, Any]:
    """The params in the words, each value typed as its schema has it; raises click.BadParameter."""
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
    """A name with dots is a path into an object, unless the operation has a param of that very name."""
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
    """The schema of a member; {} where the schema does not describe it."""
    definitions, found = schema.get("$defs", {}), schema
    for name in path:
        found = dereferenced(found.get("properties", {}).get(name, {}), definitions)
    return {**found, "$defs": definitions}


def typed_value(name: str, text: str, schema: Schema) -> Any:
    """The text as the type that is expected; raises click.BadParameter."""
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
        raise click.BadParameter(f"{word} must hold a JSON object of params")
    return found


def _file(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from error


def read_pairs(words: Iterable[str], option: str) -> dict[str, str]:
    """`NAME=VALUE` and `NAME=@FILE` of an option that may be repeated."""
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{word!r}: write {option} NAME=VALUE, or NAME=@FILE")
        pairs[name] = value_or_file(value)
    return pairs


def value_or_file(text: str) -> str:
    """The text, or for `@FILE` the content of the file without a final line feed."""
    return _file(text[1:]).rstrip("\n") if text.startswith("@") else text
