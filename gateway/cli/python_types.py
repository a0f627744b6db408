"""A kind as Python types: `Literal`s of its entities and actions, a `TypedDict` of each operation's params. Pure."""

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Schema = Mapping[str, Any]

_SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_HEADING = '''"""{title} for type checkers; written by `gateway types {kind} --python`.

    connector: {name} = desk      # as connect("{kind}", …) returns it
    calls: {name}Gateway = gateway      # a gateway.client.Gateway, for connectors of this kind
"""

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict, overload

from gateway import Page
from gateway.client import Answer, Connector
'''
#: keyword arguments of `execute` in both protocols
_SELECTION = "select: Sequence[str] | None = None, exclude: Sequence[str] | None = None"
_HOSTED = f"{_SELECTION}, intent: str | None = None, dry_run: bool = False, idempotency_key: str | None = None"
_DOWNLOAD, _SEARCH = "download", "context_store_search"


def python_types(kind: Mapping[str, Any]) -> str:
    """The source of a Python module, for a kind as `kind_view` describes it."""
    module = _Module()
    calls = [
        _Call(entity, action, *module.params(entity, action, facts.get("params") or {}))
        for entity, facts_of_entity in kind["entities"].items()
        for action, facts in facts_of_entity["actions"].items()
        if action != _DOWNLOAD
    ]
    name = _camel(kind["kind"])
    parts = [
        _HEADING.format(title=kind["title"], kind=kind["kind"], name=name),
        f"Entity: TypeAlias = {_literal(list(kind['entities']))}",
        *(
            f"{_camel(entity)}Action: TypeAlias = {_literal(list(facts_of_entity['actions']))}"
            for entity, facts_of_entity in kind["entities"].items()
        ),
        *module.classes,
        _protocol(
            name,
            f'The `execute` of a connector that `connect("{kind["kind"]}", …)` returns.',
            calls=[each for each in calls if each.action != _SEARCH],
            first="self, ",
            last=_SELECTION,
            answer="Page",
        ),
        _protocol(
            f"{name}Gateway",
            "The `execute` of a `Gateway`, for connectors of this kind.",
            calls=calls,
            first="self, connector: str | Connector, ",
            last=_HOSTED,
            answer="Answer",
        ),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


@dataclass(frozen=True, slots=True)
class _Call:
    """One operation, the type of its params, and whether any are required."""

    entity: str
    action: str
    params: str
    is_required: bool


@dataclass
class _Module:
    """Collects the `TypedDict`s of a module, in the order in which they are written."""

    classes: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def params(self, entity: str, action: str, schema: Schema) -> tuple[str, bool]:
        """The type of an operation's params, and whether any are required."""
        name = f"{_camel(entity)}{_camel(action)}Params"
        return self._object(name, schema, schema.get("$defs", {})), bool(schema.get("required"))

    def _object(self, name: str, schema: Schema, definitions: Mapping[str, Schema]) -> str:
        required = schema.get("required", ())
        members = {
            member: (self._type(f"{name}{_camel(member)}", facts, definitions), member in required)
            for member, facts in schema.get("properties", {}).items()
        }
        self.classes.append(_typed_dict(name, members))
        return name

    def _type(self, name: str, schema: Schema, definitions: Mapping[str, Schema]) -> str:
        reference = schema.get("$ref")
        if reference is not None:
            return self._definition(name, reference.removeprefix("#/$defs/"), definitions)
        if "enum" in schema:
            return _literal(schema["enum"])
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            return _union(self._type(f"{name}{index or ''}", each, definitions) for index, each in enumerate(choices))
        expected = schema.get("type", ())
        kinds = [expected] if isinstance(expected, str) else expected
        return _union(self._of(name, kind, schema, definitions) for kind in kinds) if kinds else "Any"

    def _definition(self, name: str, reference: str, definitions: Mapping[str, Schema]) -> str:
        """The type that a reference names; Any for a recursive one and for an object without members."""
        schema = definitions.get(reference, {})
        key = f"{reference} {sorted(schema.get('properties', {}))}"
        if key not in self._names:
            self._names[key] = "dict[str, Any]"
            self._names[key] = self._type(name, schema, definitions)
        return self._names[key]

    def _of(self, name: str, kind: str, schema: Schema, definitions: Mapping[str, Schema]) -> str:
        if kind == "array":
            return f"Sequence[{self._type(f'{name}Item', schema.get('items', {}), definitions)}]"
        if kind == "object":
            return self._object(name, schema, definitions) if schema.get("properties") else "dict[str, Any]"
        if schema.get("format") == "comma-separated":
            return "str | Sequence[str | int]"
        return _SIMPLE.get(kind, "Any")


def _typed_dict(name: str, members: Mapping[str, tuple[str, bool]]) -> str:
    types = {each: kind if is_required else f"NotRequired[{kind}]" for each, (kind, is_required) in members.items()}
    if all(each.isidentifier() and not keyword.iskeyword(each) for each in types):
        lines = [f"    {each}: {kind}" for each, kind in types.items()] or ["    pass"]
        return "\n".join([f"class {name}(TypedDict):", *lines])
    lines = [f"        {each!r}: {kind}," for each, kind in types.items()]
    return "\n".join([f"{name} = TypedDict(", f"    {name!r},", "    {", *lines, "    },", ")"])


def _protocol(name: str, docstring: str, calls: Sequence[_Call], first: str, last: str, answer: str) -> str:
    lines = [f"class {name}(Protocol):", f'    """{docstring}"""', ""]
    for call in calls:
        lines += ["    @overload"] if len(calls) > 1 else []
        params = f"params: {call.params}" + ("" if call.is_required else " | None = None")
        named = f'entity: Literal["{call.entity}"], action: Literal["{call.action}"]'
        lines += [f"    async def execute({first}{named}, {params}, *, {last}) -> {answer}: ..."]
    return "\n".join(lines)


def _literal(values: Sequence[Any]) -> str:
    return f"Literal[{', '.join(repr(value) for value in values)}]"


def _union(types: Iterator[str]) -> str:
    found = dict.fromkeys(types)
    return "Any" if "Any" in found else " | ".join(found)


def _camel(name: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", name)
    return "".join(word[:1].upper() + word[1:] for word in words)
