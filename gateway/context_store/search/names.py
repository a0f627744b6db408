"""Other spellings of field names: `created_at` for `createdAt`, `type_` for `type`, `properties_email`.

Existing clients spell the names of the product documents in several ways. A name means a declared field if the two
differ only in case, in separators, and in the prefix of the application's properties.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from gateway.context_store.fields import resolved
from gateway.context_store.search.parse import MAX_DEPTH
from gateway.errors import FieldError, InvalidQuery
from gateway.kinds.search_operators import Operator
from gateway.upstream.property_names import PropertyNames

Params = dict[str, Any]
Fields = Mapping[str, Any]

#: an operator of existing clients that this search does not have
_ANY = "any"


class Names:
    """The spellings of the field names of one entity."""

    def __init__(self, fields: Fields, property_names: Mapping[str, str]) -> None:
        self._fields = fields
        self._properties = PropertyNames(property_names)

    @cached_property
    def _by_alias(self) -> dict[str, str]:
        """Spelling → field; declared names take precedence. Most searches do not need it."""
        others = {alias: name for name in self._fields for alias in self._aliases(name)}
        return others | {_normalized(name): name for name in self._fields}

    def declared(self, name: Any) -> Any:
        """The declared name; a name without one is returned unchanged, and `parse` refuses it."""
        if not isinstance(name, str) or name in self._fields:
            return name
        declared = self._by_alias.get(_normalized(name))
        if declared is not None:
            return declared
        translated = ".".join(self._properties.ours(segment) for segment in name.split("."))
        return translated if resolved(translated, self._fields) else name

    def _aliases(self, name: str) -> Iterable[str]:
        head, dot, last = name.rpartition(".")
        yield _normalized(f"{head}{dot}{self._properties.theirs(last)}")


def with_declared_names(params: Mapping[str, Any], names: Names, at: str = "") -> Params:
    """The params with all field names replaced by declared ones; raises InvalidQuery for the operator `any`."""
    changed = dict(params)
    query = params.get("query")
    if isinstance(query, Mapping):
        changed_query = dict(query)
        if "filter" in changed_query:
            changed_query["filter"] = _filter(changed_query["filter"], names, f"{at}/query/filter")
        if isinstance(changed_query.get("sort"), Sequence) and not isinstance(changed_query["sort"], str):
            changed_query["sort"] = [_sort(entry, names) for entry in changed_query["sort"]]
        changed["query"] = changed_query
    paths = params.get("fields")
    if isinstance(paths, Sequence) and not isinstance(paths, str):
        changed["fields"] = [_path(entry, names) for entry in paths]
    return changed


def _filter(document: Any, names: Names, at: str, depth: int = 0) -> Any:
    """A filter that is nested too deeply is returned unchanged; `parse` refuses it."""
    if not isinstance(document, Mapping) or depth > MAX_DEPTH:
        return document
    return {name: _operator(name, operand, names, f"{at}/{name}", depth) for name, operand in document.items()}


def _operator(name: str, operand: Any, names: Names, at: str, depth: int) -> Any:
    if name == _ANY:
        message = (
            "any is not offered here; name the member within the array instead, "
            'such as {"eq": {"custom_fields.value": "vip"}}, or use array_contains'
        )
        raise InvalidQuery(message, faults=[FieldError(at, _ANY, "unknown_operator", message)])
    if name in (Operator.AND, Operator.OR) and isinstance(operand, Sequence) and not isinstance(operand, str):
        return [_filter(part, names, f"{at}/{number}", depth + 1) for number, part in enumerate(operand)]
    if name == Operator.NOT:
        return _filter(operand, names, at, depth + 1)
    return _renamed(operand, names)


def _sort(entry: Any, names: Names) -> Any:
    if isinstance(entry, Mapping) and "field" in entry:
        return {**entry, "field": names.declared(entry["field"])}
    return _renamed(entry, names)


def _renamed(members: Any, names: Names) -> Any:
    """The members under declared names; unchanged if two of them mean the same field."""
    if not isinstance(members, Mapping):
        return members
    renamed = {names.declared(name): value for name, value in members.items()}
    return renamed if len(renamed) == len(members) else members


def _path(entry: Any, names: Names) -> Any:
    if isinstance(entry, str):
        return names.declared(entry)
    if isinstance(entry, Sequence) and entry and all(isinstance(segment, str) for segment in entry):
        return names.declared(".".join(entry)).split(".")
    return entry


def _normalized(name: str) -> str:
    return name.replace("_", "").replace(".", "").lower()
