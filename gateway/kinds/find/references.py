"""The entities that an id in a question may belong to, and the operations that take such an id."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gateway.kinds.catalog import Kind
from gateway.kinds.find.entries import OperationEntry
from gateway.kinds.find.words import stems

#: (kind, entity)
EntityKey = tuple[str, str]

_PREPOSITION = re.compile(r"\b(?:of|in|on|from|for|to|with|that|by|at)\b")
_CAMEL = re.compile(r"([a-z])([A-Z])")
_ID_ENDING = re.compile(r"_(?:id|gid|ids|ts)$")
#: weight of a noun for an entity: it is its name, the end of its name, a synonym, the end of a synonym
_NAME, _END_OF_NAME, _SYNONYM, _END_OF_SYNONYM = 1.0, 0.6, 0.5, 0.3
#: certainty that an operation takes an id: a required param, a description that names it, a param, a field of a filter
_REQUIRED, _DESCRIBED, _PARAM, _FILTER = 1.0, 0.8, 0.7, 0.5


def nouns_of(kinds: Iterable[Kind]) -> dict[str, dict[EntityKey, float]]:
    """For the stem of each noun, the entities that it may name, with weights."""
    nouns: dict[str, dict[EntityKey, float]] = defaultdict(dict)
    for kind in kinds:
        for entity_id, entity in kind.spec.entities.items():
            own = stems(entity_id.replace("_", " "))
            if own:
                nouns[own[-1]][kind.name, entity_id] = _NAME if len(own) == 1 else _END_OF_NAME
            for synonym in entity.synonyms:
                named = stems(_PREPOSITION.split(synonym)[0])
                if named:
                    weight = _SYNONYM if len(named) == 1 else _END_OF_SYNONYM
                    nouns[named[-1]].setdefault((kind.name, entity_id), weight)
    return nouns


def entities_taken(entry: OperationEntry) -> dict[str, float]:
    """The entities whose ids an operation takes, with a certainty."""
    taken: dict[str, float] = defaultdict(float)
    by_name = {stems(entity_id.replace("_", " ")): entity_id for entity_id in entry.kind.spec.entities}
    for name, schema, is_required in _params(entry):
        for entity_id, certainty in _named_by(entry, name, schema, is_required, by_name):
            taken[entity_id] = max(taken[entity_id], certainty)
    return dict(taken)


def _params(entry: OperationEntry) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """The params; for a search of the copy, the fields that its filter may use."""
    if entry.action is None:
        yield from ((name, {}, False) for name in entry.fields)
        return
    required = entry.schema.get("required", ())
    yield from ((name, schema, name in required) for name, schema in entry.schema.get("properties", {}).items())


def _named_by(
    entry: OperationEntry,
    name: str,
    schema: Mapping[str, Any],
    is_required: bool,
    by_name: Mapping[tuple[str, ...], str],
) -> Iterator[tuple[str, float]]:
    plain = _CAMEL.sub(r"\1_\2", name).lower().split(".")[0]
    if plain in ("id", "gid"):
        if is_required:
            yield entry.entity_id, _REQUIRED
        return
    if is_required and "properties" not in schema:
        described = stems(schema.get("description", ""))
        yield from (
            (entity_id, _DESCRIBED) for noun, entity_id in by_name.items() if len(noun) == 1 and noun[0] in described
        )
    bare = _ID_ENDING.sub("", plain)
    named = stems(bare.replace("_", " "))
    entity_id = by_name.get(named) or by_name.get(named[-1:])
    is_text = schema.get("type") == "string" and "enum" not in schema
    if entity_id is not None and (plain != bare or is_required or is_text):
        yield entity_id, _FILTER if entry.action is None else _REQUIRED if is_required else _PARAM
