"""The JSON Schema of spec files, with which editors complete and check them. Generated from the models."""

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from gateway.kinds import (
    authentication,
    bulk,
    failures,
    long_running,
    notices,
    paging,
    requests,
    spec,
    sync,
    upload_session,
)
from gateway.kinds.spec import ConnectorSpec

#: the modules of the models: the comments of their members are the descriptions
_MODULES = (spec, authentication, failures, paging, requests, long_running, bulk, sync, notices, upload_session)
#: a class and its body; `inspect` would parse the whole module for each
_CLASS = re.compile(r"^class (\w+).*\n((?:(?: .*)?\n)*)", re.MULTILINE)


def editor_schema() -> dict[str, Any]:
    """One schema for both sorts of files: one that names a `kind` is a connector.yaml, any other an entity's."""
    schema = json.loads(json.dumps(_schema_of_models()))
    definitions = schema["$defs"]
    definitions["ConnectorSpec"]["properties"].pop("entities")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A spec file of the agent connector gateway",
        "if": {"required": ["kind"]},
        "then": {"$ref": "#/$defs/ConnectorSpec"},
        "else": {"$ref": "#/$defs/Entity"},
        "$defs": dict(sorted(definitions.items())),
    }


def editor_schema_text() -> str:
    """The schema as `specs/spec.schema.json` holds it."""
    return json.dumps(editor_schema(), indent=2, ensure_ascii=False) + "\n"


def members_at(place: Sequence[str]) -> list[str]:
    """The members that a spec may have at a place, such as `authentication.oauth`; none if any name is allowed."""
    node = _resolved({"$ref": "#/$defs/ConnectorSpec"})
    for part in place:
        node = _resolved(_inner(node, part))
    return list(node.get("properties", {}))


def _inner(node: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    named = node.get("properties", {}).get(part)
    inner = [named, *node.get("patternProperties", {}).values(), node.get("additionalProperties"), node.get("items")]
    return next((schema for schema in inner if isinstance(schema, dict)), {})


def _resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema behind references and optional values."""
    while "$ref" in node or "anyOf" in node:
        if "$ref" in node:
            node = _schema_of_models()["$defs"][node["$ref"].rpartition("/")[2]]
        else:
            node = next((choice for choice in node["anyOf"] if choice.get("type") != "null"), {})
    return node


@cache
def _schema_of_models() -> dict[str, Any]:
    root = ConnectorSpec.model_json_schema()
    definitions = root.pop("$defs")
    definitions["ConnectorSpec"] = root
    source = "".join(map(inspect.getsource, _MODULES))
    comments = {name: _comments(body) for name, body in _CLASS.findall(source)}
    models = {name: model for module in _MODULES for name, model in vars(module).items() if name in definitions}
    for name, model in models.items():
        properties = definitions[name].get("properties", {})
        for base in model.__mro__:  # nearest first: a model's own comment takes precedence over an inherited one
            for field, description in comments.get(base.__name__, {}).items():
                properties.get(field, {}).setdefault("description", description)
    return {"$defs": definitions}


def _comments(source: str) -> dict[str, str]:
    """The texts of the `#:` lines above the fields of a model."""
    comments, lines = {}, list[str]()
    for line in map(str.strip, source.splitlines()):
        field = re.match(r"(\w+): ", line)
        if line.startswith("#:"):
            lines.append(line.removeprefix("#:").strip())
            continue
        if field and lines:
            comments[field[1]] = " ".join(lines)
        lines = []
    return comments
