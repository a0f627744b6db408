"""The schema of an operation's params for tools: a plain object at the top level, and only `$defs` that are used.

Large model APIs refuse `oneOf`, `anyOf`, `allOf`, `not` and `enum` at the top level of a tool's schema. The spec's
constraints there become sentences in the description; the gateway always checks them. Frameworks that resolve every
reference do not end in a recursive schema, and hosts refuse an array without `items`, so that a tool has neither.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from gateway.kinds.find.entries import OperationEntry
from gateway.kinds.placements import plain_name

_TOP_LEVEL = ("type", "properties", "required", "additionalProperties")
_PREFIX = "#/$defs/"


def tool_schema(entry: OperationEntry) -> dict[str, Any]:
    """JSON Schema 2020-12 of the params, without combinators at the top level and without unused `$defs`."""
    schema = entry.schema
    plain = {keyword: schema[keyword] for keyword in _TOP_LEVEL if keyword in schema}
    always = [name for part in schema.get("allOf", ()) for name in part.get("required", ())]
    plain["required"] = [*dict.fromkeys(plain_name(name) for name in [*schema.get("required", ()), *always])]
    plain["properties"] = {plain_name(name): param for name, param in schema.get("properties", {}).items()}
    return portable_schema(plain, schema.get("$defs", {}))


def portable_schema(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with the definitions that it uses, without recursion and with `items` for every array.

    A recursive definition is unrolled once: the definitions on its cycle become values of their type.
    """
    reached = {name: set(definitions_used(definition, definitions)) for name, definition in definitions.items()}
    acyclic = {
        name: _portable(definition, definitions, {other for other in reached[name] if name in reached[other]})
        for name, definition in definitions.items()
    }
    plain: dict[str, Any] = _portable(schema, acyclic, frozenset())
    used = definitions_used(plain, acyclic)
    return {**plain, **({"$defs": used} if used else {})}


def compact_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with a definition that is used once where it is used, as far as both say nothing different there."""
    uses = Counter(_references(schema))
    single = {name: each for name, each in schema.get("$defs", {}).items() if uses[name] == 1}
    compact: dict[str, Any] = _inlined(schema, single)
    definitions = compact.pop("$defs", {})
    used = definitions_used(compact, definitions)
    return {**compact, **({"$defs": used} if used else {})}


def _inlined(node: Any, definitions: Mapping[str, Mapping[str, Any]]) -> Any:
    """The part of a schema with definitions in place of the references to them."""
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [_inlined(part, definitions) for part in node]
    if not isinstance(node, Mapping):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.removeprefix(_PREFIX) in definitions:
        definition = definitions[reference.removeprefix(_PREFIX)]
        own = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
        if all(definition.get(keyword, value) == value for keyword, value in own.items() if keyword != "description"):
            node = {**definition, **own}
    return {keyword: _inlined(value, definitions) for keyword, value in node.items()}


def _portable(node: Any, definitions: Mapping[str, Any], recursive: Collection[str]) -> Any:
    """The part of a schema; references to `recursive` definitions become values of their type."""
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [_portable(part, definitions, recursive) for part in node]
    if not isinstance(node, Mapping):
        return node
    definition: Mapping[str, Any] = {}
    if isinstance(node.get("$ref"), str):
        name = node["$ref"].removeprefix(_PREFIX)
        if name in recursive:
            own = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
            return _portable({"type": definitions[name].get("type", "object"), **own}, definitions, recursive)
        definition = definitions[name]
    if _has_type(node, "array") and "items" not in node:
        # Hosts look for `items` beside the type, not behind a reference.
        node = {"items": {}, **definition, **{keyword: value for keyword, value in node.items() if keyword != "$ref"}}
    return {keyword: _portable(value, definitions, recursive) for keyword, value in node.items()}


def _has_type(node: Mapping[str, Any], type_: str) -> bool:
    types = node.get("type")
    return types == type_ or (isinstance(types, list) and type_ in types)


def constraint_sentences(entry: OperationEntry) -> list[str]:
    """The constraints that a tool's schema leaves out, as sentences for its description."""
    return list(_sentences(entry.schema))


def _sentences(schema: Mapping[str, Any]) -> Iterator[str]:
    if "oneOf" in schema:
        yield f"Exactly one of these must be given: {_choices(schema['oneOf'])}."
    if "anyOf" in schema:
        yield f"At least one of these must be given: {_choices(schema['anyOf'])}."
    if "not" in schema:
        yield f"{' and '.join(schema['not'].get('required', ()))} exclude each other."
    for name, dependent in schema.get("dependentSchemas", {}).items():
        for sentence in _sentences(dependent):
            yield f"With {name}: {sentence[0].lower()}{sentence[1:]}"
        for other, limited in dependent.get("properties", {}).items():
            if "maximum" in limited:
                yield f"With {name}: {other} is at most {limited['maximum']}."


def _choices(alternatives: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(" with ".join(each.get("required", ())) for each in alternatives)


def definitions_used(schema: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions that the schema refers to, directly or through other definitions."""
    used: dict[str, Any] = {}
    ahead = list(_references(schema))
    while ahead:
        name = ahead.pop()
        if name not in used:
            used[name] = definitions[name]
            ahead += _references(definitions[name])
    return {name: definitions[name] for name in definitions if name in used}


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(_PREFIX)
        for part in node.values():
            yield from _references(part)
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for part in node:
            yield from _references(part)
