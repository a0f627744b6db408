"""A kind as the page about it shows it: entities, actions, params with their members, examples in three languages."""

import json
import pprint
import shlex
from collections.abc import Mapping
from typing import Any

from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Kind
from gateway.kinds.describe import kind_view
from gateway.kinds.param_rows import param_rows, type_name
from gateway.operation_search.command_line import example_call
from gateway.upstream.download import ACTION as DOWNLOAD

_EXECUTE = '"$GATEWAY_URL/api/v1/integrations/connectors/$CONNECTOR/execute"'


def kind_reference(kind: Kind) -> dict[str, Any]:
    """The kind's description, and its entities with all that there is to say of each action."""
    view = kind_view(kind)
    entities = [_entity(kind, name, facts) for name, facts in view["entities"].items()]
    return {**view, "entities": entities}


def _entity(kind: Kind, name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "description": facts["description"],
        "fields": [(field, _field_type(schema)) for field, schema in facts["fields"].items()],
        "search_fields": list(facts.get("search_fields", {}).items()),
        "actions": [_action(kind, name, action, each) for action, each in facts["actions"].items()],
    }


def _field_type(schema: str | Mapping[str, Any]) -> str:
    return schema if isinstance(schema, str) else type_name(schema)


def _action(kind: Kind, entity: str, name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    example = facts["example"]
    return {
        "name": name,
        "anchor": f"{entity}.{name}",
        "description": facts["description"],
        "effect": facts["effect"],
        "runs": facts["runs"],
        "meta": facts["meta"],
        "paging": facts["paging"],
        "params": list(param_rows(facts["params"])),
        "samples": [
            ("curl", _curl(example)),
            ("Python", _python(kind.name, entity, name, example["params"])),
            ("CLI", example_call(kind.name, entity, name, example["params"], facts["params"])),
        ],
    }


def _curl(example: Mapping[str, Any]) -> str:
    body = shlex.quote(json.dumps(example, ensure_ascii=False))
    return f'curl -sS {_EXECUTE} \\\n  -H "Authorization: Bearer $TOKEN" \\\n  -d {body}'


def _python(kind: str, entity: str, action: str, params: Mapping[str, Any]) -> str:
    """With the client of `gateway.client`."""
    shown = pprint.pformat(dict(params), sort_dicts=False, width=100)
    match action:
        case _ if action == DOWNLOAD:
            call = f'print(await gateway.download("{kind}", "{entity}", params, to="."))'
        case _ if action == SEARCH_ACTION:
            call = f'print((await gateway.execute("{kind}", "{entity}", "{action}", params)).result["data"])'
        case _:
            call = f'print((await gateway.execute("{kind}", "{entity}", "{action}", params)).result)'
    lines = [*f"params = {shown}".splitlines(), call]
    body = "\n".join(f"    {line}" for line in lines)
    return f"from gateway.client import Gateway\n\nasync with Gateway() as gateway:\n{body}"
