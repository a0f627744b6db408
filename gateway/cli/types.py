"""`gateway types`: the kinds, entities and actions, from the gateway or from the shipped specs."""

from collections.abc import Iterator, Mapping
from typing import Any

import click
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.cli.client_session import from_gateway_or_specs, gateway_options
from gateway.cli.failures import EXIT_CODES
from gateway.cli.output import is_table, output_option, write
from gateway.cli.python_types import python_types
from gateway.cli.shell_completion import complete_action, complete_entity, complete_kind
from gateway.cli.words import printable
from gateway.client import Gateway
from gateway.errors import UnknownAction, UnknownEntity
from gateway.kinds.command_line import credential_word, example_call
from gateway.kinds.suggestions import did_you_mean, known_actions

Facts = Mapping[str, Any]
#: maximum depth of nested objects whose members are shown
_MAX_DEPTH = 3


@click.command(epilog=EXIT_CODES)
@click.argument("kind", required=False, shell_complete=complete_kind)
@click.argument("entity", required=False, shell_complete=complete_entity)
@click.argument("action", required=False, shell_complete=complete_action)
@click.option("--offline", is_flag=True, help="Use the shipped specs instead of the gateway.")
@click.option("--python", "is_python", is_flag=True, help="Print the operations of KIND as a module of Python types.")
@output_option
@gateway_options
def types(
    kind: str | None,
    entity: str | None,
    action: str | None,
    offline: bool,
    is_python: bool,
) -> None:
    """Show kinds, entities and operations, with an example for each operation.

    \b
    gateway types support-desk tickets
    gateway types support-desk --python > support_desk.py
    """
    if is_python and (kind is None or entity is not None):
        raise click.UsageError("--python needs a KIND and no ENTITY: gateway types KIND --python")
    facts = from_gateway_or_specs(lambda gateway: _facts(gateway, kind), lambda: _shipped(kind), is_offline=offline)
    if kind is None:
        write(facts, ("application", "kind", "description"))
        return
    assert isinstance(facts, dict)
    if is_python:
        click.echo(python_types(facts), nl=False)
        return
    place = _place(facts, entity, action)
    if is_table():
        for part in _rendered(facts, place, entity, action):
            # commands in the text are copied, so their lines must not be broken
            Console().print(part, soft_wrap=isinstance(part, Text))
    else:
        write(place)


async def _facts(gateway: Gateway, kind: str | None) -> Any:
    return await gateway.types() if kind is None else await gateway.type(kind)


def _shipped(kind: str | None) -> Any:
    from gateway.kinds.describe import kind_summary, kind_view
    from gateway.kinds.loading import load_catalog, own_folders

    catalog = load_catalog(own_folders())
    return [kind_summary(each) for each in catalog] if kind is None else kind_view(catalog.kind(kind))


def _place(kind: Facts, entity: str | None, action: str | None) -> Any:
    """The requested part of a kind; raises UnknownEntity and UnknownAction."""
    if entity is None:
        return kind
    entities = kind["entities"]
    if entity not in entities:
        raise UnknownEntity(f"{kind['kind']} has no entity {entity!r}; {did_you_mean(entity, entities)}")
    actions = entities[entity]["actions"]
    if action is not None and action not in actions:
        raise UnknownAction(f"{kind['kind']} {entity} has no action {action!r}; {known_actions(action, actions)}")
    return entities[entity] if action is None else actions[action]


def _rendered(kind: Facts, place: Facts, entity: str | None, action: str | None) -> list[RenderableType]:
    """The requested part of a kind as text and tables."""
    if entity is None:
        return [_heading(kind["title"], kind["description"]), *_connecting(kind), *_entities(kind)]
    if action is None:
        actions = [_example(kind, entity, name, facts) for name, facts in place["actions"].items()]
        return [_heading(f"{kind['kind']} {entity}", place["description"]), *actions]
    heading = _heading(f"{kind['kind']} {entity} {action}", f"{place['description']} ({place['effect']})")
    return [heading, _params(place["params"]), _example(kind, entity, action, place)]


def _heading(title: str, description: str) -> Text:
    return Text.assemble((printable(title), "bold"), "\n", printable(description), "\n")


def _connecting(kind: Facts) -> list[RenderableType]:
    """A `gateway connect` command for each authentication method."""
    variables = [f"--env {name}=…" for name, facts in kind["environment"].items() if facts.get("required")]
    lines = []
    for method in kind["auth_methods"]:
        needed = [
            f"--credential {credential_word(name, field)}"
            for name, field in method["fields"].items()
            if field["required"]
        ]
        words = variables if method["oauth"] and kind["oauth"] else [*variables, *needed]
        lines.append(" ".join(["gateway connect", kind["kind"], *words]))
    return [Text("\n".join([*lines, ""]), style="cyan")]


def _entities(kind: Facts) -> list[RenderableType]:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("entity", "actions", "description"):
        table.add_column(name, overflow="fold")
    for name, entity in kind["entities"].items():
        table.add_row(name, ", ".join(entity["actions"]), Text(printable(entity["description"])))
    return [table]


def _params(schema: Facts) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("param", "type", "needed", "description"):
        table.add_column(name, overflow="fold")
    for name, needed, facts in _rows(schema, schema.get("$defs", {})):
        table.add_row(name, _type_of(facts), "yes" if needed else "", Text(printable(facts.get("description", ""))))
    return table if table.rows else Text("no params\n")


def _rows(schema: Facts, definitions: Facts, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, bool, Facts]]:
    """Dotted name, whether required, and schema of each param and of the members of objects."""
    for name, param in schema.get("properties", {}).items():
        facts = {**definitions.get(param.get("$ref", "").removeprefix("#/$defs/"), {}), **param}
        yield f"{prefix}{name}", name in schema.get("required", ()), facts
        if depth < _MAX_DEPTH:
            yield from _rows(facts, definitions, f"{prefix}{name}.", depth + 1)


def _type_of(param: Facts) -> str:
    if "enum" in param:
        return " | ".join(str(value) for value in param["enum"])
    expected = param.get("type", "any")
    name = expected if isinstance(expected, str) else " or ".join(expected)
    return f"array of {_type_of(param['items'])}" if name == "array" and "items" in param else name


def _example(kind: Facts, entity: str, action: str, facts: Facts) -> RenderableType:
    params = facts.get("example", {}).get("params", {})
    line = example_call(kind["kind"], entity, action, params, facts.get("params") or {})
    return Text.assemble((action, "bold"), f"  {printable(facts['description'])}\n", (f"  {line}\n", "cyan"))
