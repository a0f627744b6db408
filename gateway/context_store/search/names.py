"""Field names as callers may write them: `created_at` for `createdAt`, `type_` for `type`, `properties_email`.

Known clients spell the names of product documents their own way. A name that means one declared field, whatever its
case and separators and whichever prefix the application gives its own properties, is taken for that field.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from gateway.connectors.property_names import PropertyNames
from gateway.context_store.fields import resolved
from gateway.context_store.search.parse import AND, MAX_DEPTH, NOT, OR
from gateway.errors import FieldError, InvalidQuery

Params = dict[str, Any]
Fields = Mapping[str, Any]

#: an operator that known clients offer and this search does not
_ANY = "any"


class Names:
    """The names by which one entity's fields may be called."""

    def __init__(self, fields: Fields, property_names: Mapping[str, str]) -> None:
        self._fields = fields
        self._properties = PropertyNames(property_names)

    @cached_property
    def _by_alias(self) -> dict[str, str]:
        """The fields by what they may be called, declared names before others; most searches never ask."""
        others = {alias: name for name in self._fields for alias in self._aliases(name)}
        return others | {_plain(name): name for name in self._fields}

    def known(self, name: Any) -> Any:
        """The declared name that is meant; what means none stays as it is, for `parse` to complain about."""
        if not isinstance(name, str) or name in self._fields:
            return name
        meant = self._by_alias.get(_plain(name))
        if meant is not None:
            return meant
        translated = ".".join(self._properties.ours(segment) for segment in name.split("."))
        return translated if resolved(translated, self._fields) else name

    def _aliases(self, name: str) -> Iterable[str]:
        head, dot, last = name.rpartition(".")
        yield _plain(f"{head}{dot}{self._properties.theirs(last)}")


def with_known_names(params: Mapping[str, Any], names: Names, at: str = "") -> Params:
    """The search's params with declared names wherever fields are named; raises InvalidQuery for the operator `any`."""
    changed = dict(params)
    query = params.get("query")
    if isinstance(query, Mapping):
        asked = dict(query)
        if "filter" in asked:
            asked["filter"] = _filter(asked["filter"], names, f"{at}/query/filter")
        if isinstance(asked.get("sort"), Sequence) and not isinstance(asked["sort"], str):
            asked["sort"] = [_sort(entry, names) for entry in asked["sort"]]
        changed["query"] = asked
    paths = params.get("fields")
    if isinstance(paths, Sequence) and not isinstance(paths, str):
        changed["fields"] = [_path(entry, names) for entry in paths]
    return changed


def _filter(document: Any, names: Names, at: str, depth: int = 0) -> Any:
    """What nests too deeply stays as it is, for `parse` to complain about."""
    if not isinstance(document, Mapping) or depth > MAX_DEPTH:
        return document
    return {name: _operator(name, asked, names, f"{at}/{name}", depth) for name, asked in document.items()}


def _operator(name: str, asked: Any, names: Names, at: str, depth: int) -> Any:
    if name == _ANY:
        message = (
            "any is not offered here; name the member within the array instead, "
            'such as {"eq": {"custom_fields.value": "vip"}}, or use array_contains'
        )
        raise InvalidQuery(message, faults=[FieldError(at, _ANY, "unknown_operator", message)])
    if name in (AND, OR) and isinstance(asked, Sequence) and not isinstance(asked, str):
        return [_filter(part, names, f"{at}/{place}", depth + 1) for place, part in enumerate(asked)]
    if name == NOT:
        return _filter(asked, names, at, depth + 1)
    return _renamed(asked, names)


def _sort(entry: Any, names: Names) -> Any:
    if isinstance(entry, Mapping) and "field" in entry:
        return {**entry, "field": names.known(entry["field"])}
    return _renamed(entry, names)


def _renamed(members: Any, names: Names) -> Any:
    """The members under declared names, unless two of them mean the same field."""
    if not isinstance(members, Mapping):
        return members
    renamed = {names.known(name): value for name, value in members.items()}
    return renamed if len(renamed) == len(members) else members


def _path(entry: Any, names: Names) -> Any:
    if isinstance(entry, str):
        return names.known(entry)
    if isinstance(entry, Sequence) and entry and all(isinstance(segment, str) for segment in entry):
        return names.known(".".join(entry)).split(".")
    return entry


def _plain(name: str) -> str:
    return name.replace("_", "").replace(".", "").lower()
