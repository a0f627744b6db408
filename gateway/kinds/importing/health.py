"""Chooses the health check of a kind: a read that needs credentials and no choice of a person. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.kinds.importing.model import Node, SourceOperation
from gateway.kinds.importing.references import node_of
from gateway.kinds.importing.words import words

#: names of entities that are the caller's own record, the best for a health check first
_OWN_RECORDS = ("me", "user", "self", "current_user", "account", "whoami", "users_me", "profile")
#: words of paths that applications answer to anyone
_OPEN_PATHS = frozenset(
    {"ping", "health", "healthz", "healthcheck", "status", "version", "versions", "openapi", "docs"}
)


def health_check_of(root: Node, named: Iterable[tuple[str, SourceOperation, Mapping[str, Any]]]) -> dict[str, Any]:
    """The members `health_check` and `health_check_params`; none if no read would show whether credentials work.

    `named` has the operations with their `entity.action` and their specs.
    """
    reads = [each for each in named if each[2]["effect"] == "read" and "download" not in each[2]]
    protected = [each for each in reads if _needs_credentials(root, each[1])]
    found = [
        (name, operation, spec, params)
        for name, operation, spec in protected
        if (params := _params(operation, spec)) is not None
    ]
    if not found:
        return {}
    name, _, _, params = min(found, key=lambda each: _rank(each[0], each[1], each[3]))
    return {"health_check": name, **({"health_check_params": params} if params else {})}


def _needs_credentials(root: Node, operation: SourceOperation) -> bool:
    """Whether the application refuses the operation without credentials, as far as the document says."""
    of_document = root.get("security")
    if operation.security is not None:
        return bool(operation.security) and all(operation.security)
    if isinstance(of_document, list) and of_document:
        return all(node_of(each) for each in of_document)
    last = words(operation.path.rpartition("/")[2])
    return of_document is None and not _OPEN_PATHS.intersection(last)


def _params(operation: SourceOperation, spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """Obvious values of the required params; None if one of them has none."""
    declared = {str(each["name"]): node_of(each.get("schema", each)) for each in operation.parameters}
    found = {}
    for name in spec.get("required", ()):
        schema = spec["params"][name]
        default = declared.get(str(schema.get("as", name)), {}).get("default")
        values = [each for each in (default, *schema.get("enum", ())) if each is not None]
        types = schema.get("type")
        if not values and types == "boolean":
            values = [False]
        if not values and types == "integer" and any(word in ("limit", "size", "count") for word in words(name)):
            values = [max(1, schema.get("minimum", 1))]
        if not values or f"{{{name}}}" in spec["request"]:
            return None
        found[name] = values[0]
    return found


def _rank(name: str, operation: SourceOperation, params: Mapping[str, Any]) -> tuple[Any, ...]:
    entity, _, action = name.partition(".")
    is_own = entity in _OWN_RECORDS and action == "get"
    path = operation.path
    is_get = operation.method == "GET"
    return (
        not is_get,
        bool(params),
        not is_own,
        operation.is_deprecated,
        action != "list",
        path.count("/"),
        len(path),
        path,
    )
