"""The entities that an id in a question may belong to, and the operations that take such an id."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from gateway.kinds.catalog import Kind
from gateway.kinds.find.entries import OperationEntry
from gateway.kinds.find.words import stems

#: (kind, entity)
EntityKey = tuple[str, str]

_PREPOSITION = re.compile(r"\b(?:of|in|on|from|for|to|with|that|by|at)\b")
_CAMEL = re.compile(r"([a-z])([A-Z])")
_ID_ENDING = re.compile(r"_(?:id|gid|ids|ts)$")


def nouns_of(kinds: Iterable[Kind]) -> dict[str, set[EntityKey]]:
    """For the stem of each noun, the entities that it may name: the last noun of their names and synonyms."""
    nouns: dict[str, set[EntityKey]] = defaultdict(set)
    for kind in kinds:
        for entity_id, entity in kind.spec.entities.items():
            names = (entity_id.replace("_", " "), *(_PREPOSITION.split(synonym)[0] for synonym in entity.synonyms))
            for named in filter(None, map(stems, names)):
                nouns[named[-1]].add((kind.name, entity_id))
    return dict(nouns)


def entities_taken(entry: OperationEntry) -> frozenset[str]:
    """The entities whose ids an operation takes, as params or, for a search of the copy, as fields of its filter."""
    by_name = {stems(entity_id.replace("_", " ")): entity_id for entity_id in entry.kind.spec.entities}
    names = entry.fields if entry.action is None else entry.schema.get("properties", {})
    required = () if entry.action is None else entry.schema.get("required", ())
    return frozenset(
        entity_id for name in names if (entity_id := _named_by(entry, name, name in required, by_name)) is not None
    )


def _named_by(
    entry: OperationEntry, name: str, is_required: bool, by_name: Mapping[tuple[str, ...], str]
) -> str | None:
    """The entity whose id the param is."""
    plain = _CAMEL.sub(r"\1_\2", name).lower().split(".")[0]
    if plain in ("id", "gid"):
        return entry.entity_id if is_required else None
    bare = _ID_ENDING.sub("", plain)
    named = stems(bare.replace("_", " "))
    return by_name.get(named) or by_name.get(named[-1:]) if plain != bare or is_required else None
