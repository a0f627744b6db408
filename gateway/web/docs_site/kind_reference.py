"""The content of the pages of a kind: connecting; and of an entity: actions, params with their members, examples."""

import json
import pprint
import shlex
from collections.abc import Mapping
from typing import Any

from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Kind
from gateway.kinds.command_line import credential_word, example_call
from gateway.kinds.describe import kind_view
from gateway.kinds.param_rows import param_rows, type_name
from gateway.upstream.download import ACTION as DOWNLOAD
from gateway.web.openapi.samples import typescript_call

_PATH = "/api/v1/integrations/connectors/{connector_id}/execute"
_EXECUTE = '"$GATEWAY_URL/api/v1/integrations/connectors/$CONNECTOR/execute"'
_OPENING = "from gateway.client import Gateway\n\nasync with Gateway() as gateway:"


def kind_reference(kind: Kind) -> dict[str, Any]:
    """The kind's description, with samples to connect it, and its entities with their actions in brief."""
    view = kind_view(kind)
    entities = [_in_brief(name, facts) for name, facts in view["entities"].items()]
    scopes = kind.spec.oauth.scopes if kind.spec.oauth else ()
    return {**view, "entities": entities, "scopes": scopes, "connect_samples": _connect_samples(view)}


def entity_reference(kind: Kind, entity: str) -> dict[str, Any]:
    """An entity with the details of each action; raises UnknownEntity."""
    kind.entity(entity)
    return _entity(kind, entity, kind_view(kind)["entities"][entity])


def _in_brief(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    actions = [
        {"name": action, "anchor": f"{name}.{action}", "description": each["description"]}
        for action, each in facts["actions"].items()
    ]
    return {"name": name, "description": facts["description"], "actions": actions}


def _connect_samples(view: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Samples that connect it: by the first method without consent and sunset, else by consent."""
    name, kind = view["application"], view["kind"]
    environment = {each: variable.get("example") or "…" for each, variable in view["environment"].items()}
    keyed = [each for each in view["auth_methods"] if not each["oauth"] and not each["sunset"]]
    if not keyed:
        return _consent_samples(kind, environment)
    credentials = {field: "…" for field, facts in keyed[0]["fields"].items() if facts["required"]}
    body = {"workspace_name": "acme", "connector_type": kind, "name": name, "credentials": credentials}
    body |= {"environment": environment} if environment else {}
    words = [word for each in environment.items() for word in ("--env", "=".join(each))]
    words += [
        word for each in credentials for word in ("--credential", credential_word(each, keyed[0]["fields"][each]))
    ]
    arguments = f'"{kind}", {credentials | environment}, name="{name}"'
    return [
        ("curl", _curl('"$GATEWAY_URL/api/v1/integrations/connectors"', body)),
        (
            "Python",
            f"{_OPENING}\n    connector = await gateway.connectors.create({arguments})\n    print(connector.id)",
        ),
        ("TypeScript", typescript_call("POST", "/api/v1/integrations/connectors", body=body)),
        ("CLI", shlex.join(["gateway", "connect", kind, "--name", name, *words])),
    ]


def _consent_samples(kind: str, environment: Mapping[str, str]) -> list[tuple[str, str]]:
    path = "/api/v1/integrations/connectors/oauth/initiate"
    body: dict[str, Any] = {
        "workspace_name": "acme",
        "connector_type": kind,
        "redirect_url": "https://app.example.com/connected",
    }
    body |= {"environment": environment} if environment else {}
    words = [word for each in environment.items() for word in ("--env", "=".join(each))]
    return [
        ("curl", _curl(f'"$GATEWAY_URL{path}"', body)),
        ("TypeScript", typescript_call("POST", path, body=body)),
        ("CLI", shlex.join(["gateway", "connect", kind, *words])),
    ]


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
            ("curl", _curl(_EXECUTE, example)),
            ("Python", _python(kind.name, entity, name, example["params"])),
            ("TypeScript", typescript_call("POST", _PATH, body=example, parse_as="blob" if name == DOWNLOAD else None)),
            ("CLI", example_call(kind.name, entity, name, example["params"], facts["params"])),
        ],
    }


def _curl(url: str, document: Mapping[str, Any]) -> str:
    body = shlex.quote(json.dumps(document, ensure_ascii=False))
    return f'curl -sS {url} \\\n  -H "Authorization: Bearer $TOKEN" \\\n  -d {body}'


def _python(kind: str, entity: str, action: str, params: Mapping[str, Any]) -> str:
    """A call with `gateway.client`."""
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
    return f"{_OPENING}\n{body}"
