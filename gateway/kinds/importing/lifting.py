"""Moves what nearly every operation of a document requires to the kind, so that no call has to repeat it. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from gateway.kinds.importing.model import Confidence, Finding, SourceOperation
from gateway.kinds.importing.references import node_of
from gateway.kinds.importing.words import identifier

_PLACE = "the document"
#: the share of operations that must require a param, and the minimum number of them
_NEARLY_ALL, _LEAST = 0.9, 3
#: names of params that hold a secret, which variables must not
_SECRET = re.compile(r"key|token|secret|auth|password|signature|session|idempoten", re.I)


class Lifted(Protocol):
    """An operation as an action."""

    operation: SourceOperation
    spec: dict[str, Any]


def lift(connector: dict[str, Any], mapped: Sequence[Lifted]) -> list[Finding]:
    """Move constant headers, and what nearly all requests have in headers, query and path, to the kind.

    Credentials are not params.
    """
    _drop_credentials(connector, mapped)
    findings = [*_lift_path(connector, mapped), *_lift_params(connector, mapped)]
    _move_common_headers(connector, mapped)
    return findings


def _drop_credentials(connector: dict[str, Any], mapped: Sequence[Lifted]) -> None:
    methods = connector["authentication"].values()
    sent = {("header", name.lower()) for method in methods for name in method.get("headers", ())}
    sent |= {("query", name.lower()) for method in methods for name in method.get("query", ())}
    for each in mapped:
        by_default = "query" if each.operation.method in ("GET", "DELETE") else "body"
        for name, schema in list(each.spec.get("params", {}).items()):
            if (schema.get("in", by_default), str(schema.get("as", name)).lower()) in sent:
                _drop(each, name)


def _lift_params(connector: dict[str, Any], mapped: Sequence[Lifted]) -> list[Finding]:
    """Params of headers and of the query: with a default it is constant, without one it is a variable."""
    counts = Counter(pair for each in mapped for pair in _liftable(each))
    findings = []
    for (where, wire), times in counts.items():
        if times < max(_LEAST, _NEARLY_ALL * len(mapped)) or _SECRET.search(wire):
            continue
        having = [(each, name) for each in mapped if (name := _liftable(each).get((where, wire))) is not None]
        defaults = Counter(default for each, _ in having if (default := _default_of(each, wire)) is not None)
        variable = _free_variable(connector, wire)
        value = str(defaults.most_common(1)[0][0]) if defaults else f"{{{variable}}}"
        if not defaults:
            description = having[0][0].spec["params"][having[0][1]].get("description") or variable
            connector.setdefault("environment", {})[variable] = {"description": description, "type": "text"}
        for each, name in having:
            _drop(each, name)
            if where == "query":
                each.spec["constant_query"] = {**each.spec.get("constant_query", {}), wire: value}
        if where == "header":
            connector["headers"] = {**connector.get("headers", {}), wire: value}
        reason = "a param that nearly all operations require is the same for all calls of a connector"
        findings.append(
            Finding(
                confidence=Confidence.GUESSED, place=_PLACE, reason=reason, detail=f"{wire} = {value}", member="headers"
            )
        )
    return findings


def _liftable(mapped: Lifted) -> dict[tuple[str, str], str]:
    """The required params in headers and, of any method, in the query: (place, name in the request) → param."""
    found, method = {}, mapped.operation.method
    paging = {"page", "limit", "offset", "cursor", "per_page", "page_size"}
    for name in mapped.spec.get("required", ()):
        schema = mapped.spec["params"][name]
        by_default = "query" if method in ("GET", "DELETE") else "body"
        where = schema.get("in", by_default)
        is_in_path = f"{{{name}}}" in mapped.spec["request"]
        is_plain = schema.get("type", "string") in ("string", "integer", "number")
        if where in ("header", "query") and not is_in_path and is_plain and name not in paging:
            found[where, str(schema.get("as", name))] = name
    return found


def _default_of(mapped: Lifted, wire: str) -> str | int | float | None:
    parameter = next((each for each in mapped.operation.parameters if each.get("name") == wire), {})
    schema = node_of(parameter.get("schema", parameter))
    values = schema.get("enum") if isinstance(schema.get("enum"), list) else []
    found = schema.get("default", values[0] if values and len(values) == 1 else None)
    return found if isinstance(found, str | int | float) and not isinstance(found, bool) else None


def _lift_path(connector: dict[str, Any], mapped: Sequence[Lifted]) -> list[Finding]:
    """Move a param with which every path begins, such as `/{account_id}/orders`, to the server as a variable."""
    beginnings = Counter(
        found[1] for each in mapped if (found := re.match(r"\w+ ((?:/[\w.-]+){0,2}/{\w+})(?=/)", each.spec["request"]))
    )
    if not beginnings or "server" not in connector:
        return []
    beginning, _ = beginnings.most_common(1)[0]
    having = [each for each in mapped if re.match(rf"\w+ {re.escape(beginning)}(/|$)", each.spec["request"])]
    if len(having) < max(_LEAST, len(mapped)) or any("server" in each.spec for each in having):
        return []
    static, _, param = beginning.rpartition("/")
    if any(each.spec["request"].partition(" ")[2] == static for each in mapped):
        return []
    name = param[1:-1]
    variable = _free_variable(connector, name)
    description = having[0].spec["params"][name].get("description") or variable
    connector.setdefault("environment", {})[variable] = {"description": description, "type": "text"}
    connector["server"] = f"{connector['server']}{static}/{{{variable}}}"
    for each in having:
        method, path = each.spec["request"].split(" ", 1)
        each.spec["request"] = f"{method} {path.removeprefix(beginning) or '/'}"
        _drop(each, name)
    reason = "a param with which every path begins is a variable of the connector"
    return [Finding(confidence=Confidence.GUESSED, place=_PLACE, reason=reason, detail=beginning, member="server")]


def _free_variable(connector: dict[str, Any], name: str) -> str:
    found = identifier(name.removeprefix("X-").removeprefix("x-")) or "value"
    return f"{found}_of_account" if found in connector.get("environment", {}) else found


def _drop(mapped: Lifted, name: str) -> None:
    """Remove a param from an action."""
    spec = mapped.spec
    spec["params"] = {each: schema for each, schema in spec["params"].items() if each != name}
    spec["required"] = [each for each in spec.get("required", ()) if each != name]
    spec["example"] = {each: value for each, value in spec.get("example", {}).items() if each != name}
    for member in ("params", "required", "example"):
        if not spec[member]:
            del spec[member]


def _move_common_headers(connector: dict[str, Any], mapped: Sequence[Lifted]) -> None:
    """Move constant headers that most operations have to the kind."""
    counts = Counter(pair for each in mapped for pair in each.spec.get("headers", {}).items())
    common: dict[str, str] = {}
    for (name, value), times in counts.most_common():
        if times * 2 > len(mapped):
            common.setdefault(name, value)
    if not common:
        return
    connector["headers"] = {**connector.get("headers", {}), **common}
    for each in mapped:
        own = {name: value for name, value in each.spec.get("headers", {}).items() if common.get(name) != value}
        each.spec.pop("headers", None)
        if own:
            each.spec["headers"] = own
