"""Property names as callers know them and as the application does: `crm_object_id` for one that it prefixes itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.foundation import payloads
from gateway.kinds.catalog import Operation
from gateway.upstream.responses import OperationResult

Params = dict[str, Any]

#: members of a record or schema that are keyed by, list or are property names
_KEYED = ("properties", "propertiesWithHistory")
_LISTS = ("requiredProperties", "searchableProperties", "secondaryDisplayProperties")
_SINGLE = ("primaryDisplayProperty",)


@dataclass(frozen=True, slots=True)
class PropertyNames:
    """A kind's `property_names`, both ways; `crm_*: hs_*` stands for every name that begins so."""

    names: Mapping[str, str]
    _ours: Mapping[str, str] = field(init=False)
    #: prefix of callers' names → prefix of the application's names
    _prefixes: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        exact = {theirs: ours for ours, theirs in self.names.items() if not ours.endswith("*")}
        prefixes = {ours[:-1]: theirs[:-1] for ours, theirs in self.names.items() if ours.endswith("*")}
        object.__setattr__(self, "_ours", exact)
        object.__setattr__(self, "_prefixes", prefixes)

    def theirs(self, name: str) -> str:
        """The application's name for a property; a name without a rule is the same on both sides."""
        if name in self.names:
            return self.names[name]
        found = next((ours for ours in self._prefixes if name.startswith(ours)), None)
        return name if found is None else self._prefixes[found] + name.removeprefix(found)

    def ours(self, name: str) -> str:
        """The callers' name for a property; a name that `theirs` could not map back stays as it is."""
        if name in self._ours:
            return self._ours[name]
        found = next((ours for ours, theirs in self._prefixes.items() if name.startswith(theirs)), None)
        renamed = name if found is None else found + name.removeprefix(self._prefixes[found])
        return renamed if self.theirs(renamed) == name else name


def with_their_names(operation: Operation, params: Params) -> Params:
    """The params with the application's names wherever they name properties."""
    names = PropertyNames(operation.spec.property_names)
    changed = dict(params)
    for member in ("properties", "propertiesWithHistory", "idProperty"):
        if member in params:
            changed[member] = _named_by_them(params[member], names)
    if "sorts" in params:
        changed["sorts"] = [_entry_of_theirs(sort, names) for sort in params["sorts"]]
    if "filterGroups" in params:
        changed["filterGroups"] = [
            {**group, "filters": [_entry_of_theirs(entry, names) for entry in group["filters"]]}
            if "filters" in group
            else group
            for group in params["filterGroups"]
        ]
    return changed


def _named_by_them(value: str | list[str], names: PropertyNames) -> str | list[str]:
    """One name, names separated by commas, or a list of names."""
    if isinstance(value, str):
        return ",".join(names.theirs(name.strip()) for name in value.split(","))
    return [names.theirs(name) for name in value]


def _entry_of_theirs(entry: Params, names: PropertyNames) -> Params:
    return {**entry, "propertyName": names.theirs(entry["propertyName"])} if "propertyName" in entry else entry


def with_our_names(operation: Operation, answer: OperationResult) -> OperationResult:
    """The answer with callers' names, in records and in the schemas that describe them."""
    names = PropertyNames(operation.spec.property_names)
    decoded = payloads.editable(answer.result)
    renamed = [_record(item, names) for item in decoded] if isinstance(decoded, list) else _record(decoded, names)
    return replace(answer, result=msgspec.Raw(msgspec.json.encode(renamed)))


def _record(record: Any, names: PropertyNames) -> Any:
    if not isinstance(record, dict):
        return record
    return {member: _member(member, value, names) for member, value in record.items()}


def _member(member: str, value: Any, names: PropertyNames) -> Any:
    match value:
        case dict() if member in _KEYED:
            return _keyed(value, names)
        case list() if member in _KEYED:
            return [_definition(entry, names) for entry in value]
        case list() if member in _LISTS:
            return [names.ours(name) if isinstance(name, str) else name for name in value]
        case str() if member in _SINGLE:
            return names.ours(value)
        case _:
            return value


def _keyed(properties: Mapping[str, Any], names: PropertyNames) -> dict[str, Any]:
    """Renamed keys, except where the account has a property of its own by that name: neither value may be lost."""
    return {name if (ours := names.ours(name)) in properties else ours: value for name, value in properties.items()}


def _definition(entry: Any, names: PropertyNames) -> Any:
    """A schema's description of one property."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return entry
    return {**entry, "name": names.ours(entry["name"])}
