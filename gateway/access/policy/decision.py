"""Decides calls by the policies of an organization. Pure.

Most statements of an organization say nothing of a given call: its client, operation and connector do not match. So the
statements that remain are found once for each of these three, and only their conditions are evaluated for a call. If no
condition reads the context, the decision itself is kept.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any

import cedarpy
import msgspec

from gateway.access.policy.language import PolicyStatement
from gateway.access.policy.model import NOTHING, Approval, Counted, Decision, History, PolicyCall, Verdict
from gateway.access.policy.schema import PRESENT, Room, Type, Unreadable, action_id, params_type, value_of
from gateway.kinds.catalog import Operation

#: maximum characters of the statements that are kept for combinations of client, operation and connector, each of
#: which counts as some more
_MAX_KEPT, _COMBINATION = 16 << 20, 800
#: characters of statements that are found and parsed for a call within a moment
_SMALL = 64 << 10
#: maximum comparisons in a decision, of characters of texts with those of patterns, and of elements of arrays: each
#: takes about 30 ms
_MAX_MATCHED, _MAX_COMPARED = 32 << 20, 1 << 20
_COMPARING = frozenset({"==", "!=", "contains", "containsAll", "containsAny"})
_ERRING = re.compile(r"policy `(\w+)`")
_WHOLE = "*"
#: the expression `context` in Cedar's JSON format
_CONTEXT: Mapping[str, Any] = {"Var": "context"}


class DecidedSet:
    """The statements of an organization that decide together."""

    def __init__(self, statements: Sequence[PolicyStatement]) -> None:
        #: the numbered statements by the client, person or group that their scope names; under None those of any
        self._by_principal: dict[tuple[str, str] | None, list[tuple[int, PolicyStatement]]] = defaultdict(list)
        for numbered in enumerate(statements):
            self._by_principal[_named_principal(numbered[1])].append(numbered)
        self._kept: dict[tuple[Any, ...], Residual] = {}
        self._kept_size = 0
        self.is_small = sum(each.size for each in statements) <= _SMALL

    def decide(self, call: PolicyCall, now: datetime) -> Decision:
        """The decision of a call."""
        return self.about(call).decide(call, now)

    def always(self, call: PolicyCall) -> Decision | None:
        """The decision of a call whatever its params, time and surface are; None if it depends on them."""
        return self.about(call).always

    def about(self, call: PolicyCall) -> "Residual":
        """The statements about the client, operation and connector of a call."""
        found = self.kept(call)
        if found is None:
            statements = _about(self._of_principal(call), call)
            found, size = Residual(statements, call), _COMBINATION + sum(each.size for each in statements)
            if self._kept_size + size > _MAX_KEPT:
                self._kept, self._kept_size = {}, 0
            self._kept[_key(call)] = found
            self._kept_size += size
        return found

    def kept(self, call: PolicyCall) -> "Residual | None":
        """The same, if they were found for an earlier call."""
        found = self._kept.get(_key(call))
        return found if found is not None and found.is_of(call.operation) else None

    def _of_principal(self, call: PolicyCall) -> list[PolicyStatement]:
        """The statements whose scope may have the principal of a call, in their order."""
        named = {None, call.principal, *_parents_of_principal(call)} & self._by_principal.keys()
        numbered = chain.from_iterable(self._by_principal[name] for name in named)
        return [statement for _, statement in sorted(numbered, key=itemgetter(0))]


def _key(call: PolicyCall) -> tuple[Any, ...]:
    return (call.client_id, call.groups, call.acting_client_id, call.entity, call.action, call.effect, call.target)


class Residual:
    """The statements about one client, operation and connector."""

    def __init__(self, statements: Sequence[PolicyStatement], call: PolicyCall) -> None:
        self._statements = statements
        self._operation = call.operation
        self._reads = {name for statement in statements for name in _context_names(statement)}
        self._params = {path for statement in statements for path in _param_paths(statement.document["conditions"])}
        #: characters of patterns that texts are matched with, and how often arrays may be compared
        self._matched, self._compared = map(sum, zip((1, 1), *map(_comparisons, statements), strict=True))
        #: dotted paths of the params whose sums a statement reads
        self.summed = {path for statement in statements for path in summed_paths(statement)}
        target = call.target
        self.entities = [
            {
                "uid": _entity(call.principal),
                "attrs": {},
                "parents": [_entity(each) for each in _parents_of_principal(call)],
            },
            {
                "uid": {"type": "Connector", "id": str(target.connector_id)},
                "attrs": {"name": target.name},
                "parents": [
                    {"type": "Workspace", "id": target.workspace_name},
                    {"type": "Kind", "id": target.kind},
                ],
            },
            {
                "uid": {"type": "Action", "id": _action_of(call)},
                "attrs": {},
                "parents": [{"type": "Action", "id": call.effect.value}],
            },
        ]
        self.request = {
            "principal": _entity(call.principal),
            "action": {"type": "Action", "id": _action_of(call)},
            "resource": {"type": "Connector", "id": str(target.connector_id)},
        }
        self.always: Decision | None = self._unconditional()
        if self.always is None:
            _ = self._policies  # parsed with the statements, because that takes as long

    @property
    def redacts(self) -> tuple[str, ...]:
        """The paths that some call redacts."""
        return tuple(sorted({path for each in self._statements for path in each.redacted}))

    def is_of(self, operation: Operation | None) -> bool:
        """Whether it was made for this version of the kind; an imported kind may change while the process runs."""
        own = self._operation
        return own is operation or (own is not None and operation is not None and own.spec is operation.spec)

    @cached_property
    def _policies(self) -> cedarpy.PolicySet:
        return _policies(enumerate(self._statements))

    @cached_property
    def _entities(self) -> cedarpy.Entities:
        return cedarpy.Entities.from_json_str(json.dumps(self.entities))

    @cached_property
    def _types(self) -> Type:
        return params_type(self._operation)

    def _unconditional(self) -> Decision | None:
        """The decision, if nothing of the context can change it."""
        if not self._statements:
            return Decision(verdict=Verdict.DENY)
        if not self._reads:
            return self._decided({})
        final = [
            (index, each)
            for index, each in enumerate(self._statements)
            if each.is_forbid and each.approval is None and not _context_names(each)
        ]
        decision = self._decided({}, _policies(final)) if final else None
        if decision is not None and decision.policies:
            return decision
        return None if any(not each.is_forbid for each in self._statements) else Decision(verdict=Verdict.DENY)

    def decide(self, call: PolicyCall, now: datetime) -> Decision:
        """The decision of a call of that client, operation and connector."""
        if self.always is not None:
            return self.always
        try:
            context = self.context(call, now)
        except Unreadable:
            return Decision(
                verdict=Verdict.DENY,
                advice="a param that a policy reads has a value that Cedar cannot hold, or is too large",
            )
        return self._decided(context)

    def context(self, call: PolicyCall, now: datetime) -> dict[str, Any]:
        """The members of the context that a statement reads; raises Unreadable."""
        context: dict[str, Any] = {"params": self._params_of(call)}
        if self._reads & {"time", _WHOLE}:
            moment = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            context["time"] = {"__extn": {"fn": "datetime", "arg": moment}}
        if self._reads & {"surface", _WHOLE}:
            context["surface"] = call.surface.value
        if self._reads & {"approved", _WHOLE}:
            context["approved"] = call.is_approved
        if self.reads_history:
            context |= self._history_of(call.history)
        return context

    @property
    def reads_history(self) -> bool:
        """Whether a statement reads what the client has called before."""
        return bool(self._reads & {"calls", "writes", "sum", _WHOLE})

    def _history_of(self, history: History) -> dict[str, Any]:
        integer = {"type": "Long"}
        sums: dict[str, Any] = {}
        for path in self.summed:
            *outer, last = path.split(".")
            type_ = _type_at(self._types, path)
            if type_ is not None:
                record = sums
                for name in outer:
                    record = record.setdefault(name, {})
                record[last] = _counted(history.sums.get(path, NOTHING), type_)
        return {
            "calls": _counted(history.calls, integer),
            "writes": _counted(history.writes, integer),
            "sum": sums,
        }

    def _params_of(self, call: PolicyCall) -> Any:
        if not self._params:
            return {}
        whole = Room()
        room = Room(
            min(whole.text, _MAX_MATCHED // self._matched), min(whole.elements, _MAX_COMPARED // self._compared)
        )
        return value_of(call.params, _narrowed(self._types, self._params), room)

    def _decided(self, context: Mapping[str, Any], policies: cedarpy.PolicySet | None = None) -> Decision:
        """Cedar's decision with the annotations of the statements that made it; a forbid that errs denies."""
        reasons, errors, is_allowed = self._evaluated(context, self._policies if policies is None else policies)
        erring = [each for each in errors if each is None or each.is_forbid]
        if erring:
            labels = tuple(each.label for each in erring if each is not None)
            return Decision(verdict=Verdict.DENY, policies=labels, advice=_advice(filter(None, erring)))
        if is_allowed:
            return _allowed(reasons, ())
        final = [each for each in reasons if each.approval is None]
        if final or not reasons:
            return Decision(verdict=Verdict.DENY, policies=_labels(final), advice=_advice(final))
        # Only forbids that a person may lift: without them, is the call permitted?
        permits = _policies((index, each) for index, each in enumerate(self._statements) if not each.is_forbid)
        granted, _, is_permitted = self._evaluated(context, permits)
        if not is_permitted:
            return Decision(verdict=Verdict.DENY)
        return _allowed(granted, reasons)

    def _evaluated(
        self, context: Mapping[str, Any], policies: cedarpy.PolicySet
    ) -> tuple[list[PolicyStatement], list[PolicyStatement | None], bool]:
        """The statements that decide, those that err (None for an error of no statement), and whether Cedar allows."""
        request = {**self.request, "context": msgspec.json.encode(context).decode()}
        result = cedarpy.is_authorized(request, policies, self._entities)
        errors: list[PolicyStatement | None] = []
        for error in result.diagnostics.errors:
            found = _ERRING.search(error)
            errors.append(None if found is None else self._statements[int(found[1][1:])])
        reasons = sorted(int(each[1:]) for each in result.diagnostics.reasons)
        return [self._statements[index] for index in reasons], errors, result.allowed


def _allowed(permits: Sequence[PolicyStatement], lifted: Sequence[PolicyStatement]) -> Decision:
    """The call is permitted, perhaps after approvals."""
    redacted = tuple(sorted({path for each in permits for path in each.redacted}))
    asking = [each for each in (*lifted, *permits) if each.approval is not None]
    if not asking:
        return Decision(verdict=Verdict.ALLOW, policies=_labels(permits), redact=redacted)
    approvals = tuple(
        Approval(
            policy=each.label,
            reason=each.approval or "",
            approvers=each.annotations.get("approvers"),
            expires=each.annotations.get("expires"),
            question=each.annotations.get("reason"),
        )
        for each in asking
    )
    return Decision(
        verdict=Verdict.APPROVE,
        policies=_labels(asking),
        advice=_advice(asking),
        approvals=approvals,
        redact=redacted,
    )


def _labels(statements: Iterable[PolicyStatement]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.label for each in statements))


def _advice(statements: Iterable[PolicyStatement]) -> str | None:
    return next((each.annotations["advice"] for each in statements if "advice" in each.annotations), None)


def _policies(numbered: Iterable[tuple[int, PolicyStatement]]) -> cedarpy.PolicySet:
    """The statements for Cedar; the id of each is its index, because labels are not unique."""
    documents = {f"p{index}": statement.document for index, statement in numbered}
    return cedarpy.PolicySet.from_json_str(
        json.dumps({"staticPolicies": documents, "templates": {}, "templateLinks": []}), release_gil=True
    )


def _action_of(call: PolicyCall) -> str:
    return action_id(call.target.kind, call.entity, call.action)


def _parents_of_principal(call: PolicyCall) -> set[tuple[str, str]]:
    """The groups of a person, and the client that acts for the person in a session."""
    acting = () if call.acting_client_id is None else (("Client", str(call.acting_client_id)),)
    return {*(("Group", name) for name in call.groups or ()), *acting}


def _entity(uid: tuple[str, str]) -> dict[str, str]:
    return {"type": uid[0], "id": uid[1]}


def _about(statements: Iterable[PolicyStatement], call: PolicyCall) -> list[PolicyStatement]:
    """The statements whose scope (principal, action, resource) has the call."""
    target, principal, action = call.target, call.principal, ("Action", _action_of(call))
    principals = {principal, *_parents_of_principal(call)}
    actions = {action, ("Action", call.effect.value)}
    connector = ("Connector", str(target.connector_id))
    resources = {connector, ("Workspace", target.workspace_name), ("Kind", target.kind)}
    return [
        each
        for each in statements
        if _has(each.document["principal"], principal, principals)
        and _has(each.document["action"], action, actions)
        and _has(each.document["resource"], connector, resources)
    ]


def _has(scope: Mapping[str, Any], entity: tuple[str, str], ancestors: set[tuple[str, str]]) -> bool:
    """Whether a part of a scope has an entity with these ancestors, itself among them."""
    match scope["op"]:
        case "All":
            return True
        case "==":
            return _uid(scope["entity"]) == entity
        case "in":
            listed = scope["entities"] if "entities" in scope else [scope["entity"]]
            return any(_uid(each) in ancestors for each in listed)
        case "is":
            return scope["entity_type"] == entity[0] and ("in" not in scope or _uid(scope["in"]["entity"]) in ancestors)
    return True


def _named_principal(statement: PolicyStatement) -> tuple[str, str] | None:
    scope = statement.document["principal"]
    return _uid(scope["entity"]) if scope["op"] in ("==", "in") else None


def _uid(document: Mapping[str, str]) -> tuple[str, str]:
    return document["type"], document["id"]


def _context_names(statement: PolicyStatement) -> set[str]:
    """The members of the context that the conditions of a statement read; `*` for the whole."""
    return set(_accesses(statement.document["conditions"]))


def _param_paths(node: Any) -> Iterator[tuple[str, ...]]:
    """The paths of the params that an expression reads; the empty one for all.

    A param that it only asks for ends with an empty name: of a record, no member is read.
    """
    if isinstance(node, list):
        for each in node:
            yield from _param_paths(each)
    elif node == _CONTEXT:
        yield ()
    elif isinstance(node, Mapping):
        chain, asked = _chain(node), _asked(node)
        if chain[:1] == ["params"]:
            yield tuple(chain[1:])
        elif asked[:1] == ["params"]:
            yield (*asked[1:], "")
        elif not chain and not asked:
            for each in node.values():
                yield from _param_paths(each)


def _asked(node: Mapping[str, Any]) -> list[str]:
    """The names of a member of `context` that an expression `has`; none for another expression."""
    asked = node.get("has")
    return _chain({".": asked}) if isinstance(asked, Mapping) else []


def _narrowed(type_: Type, paths: set[tuple[str, ...]]) -> Type:
    """A type with no more members of records than those at the paths."""
    if () in paths or type_["type"] != "Record":
        return PRESENT if paths == {("",)} else type_
    below: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for name, *rest in paths:
        below[name].add(tuple(rest))
    members = {name: _narrowed(each, below[name]) for name, each in type_["attributes"].items() if name in below}
    return {**type_, "attributes": members}


def _comparisons(statement: PolicyStatement) -> tuple[int, int]:
    """How many characters of patterns a statement matches texts with, and how often it may compare arrays."""
    patterns = compared = 0
    for name, found in _members(statement.document["conditions"]):
        if name == "like" and isinstance(found, Mapping) and "pattern" in found:
            patterns += len(found["pattern"])
        elif name in _COMPARING:
            compared += 1
        elif name == "Set" and isinstance(found, list):
            # A set is sorted, whose elements may be arrays.
            compared += sum("Value" not in each for each in found) * len(found).bit_length()
    return patterns, compared


def _members(node: Any) -> Iterator[tuple[str, Any]]:
    """The members of all objects within an expression."""
    if isinstance(node, list):
        for each in node:
            yield from _members(each)
    elif isinstance(node, Mapping):
        for name, each in node.items():
            yield name, each
            yield from _members(each)


def reads_history(statement: PolicyStatement) -> bool:
    """Whether a statement reads what the client has called before."""
    return bool(_context_names(statement) & {"calls", "writes", "sum", _WHOLE})


def summed_paths(statement: PolicyStatement) -> set[str]:
    """The dotted paths of the params whose sums a statement reads: `amount` for `context.sum.amount.today`."""
    return {".".join(path[1:-1]) for path in _chains(statement.document["conditions"]) if path[0] == "sum" and path[2:]}


def _chains(node: Any) -> Iterator[list[str]]:
    """The members of `context` that an expression reads, each as the names from `context` on."""
    if isinstance(node, list):
        for each in node:
            yield from _chains(each)
    elif isinstance(node, Mapping):
        chain = _chain(node)
        if chain:
            yield chain
        else:
            for each in node.values():
                yield from _chains(each)


def _chain(node: Any) -> list[str]:
    """The names of an access that begins at `context`; none for another expression."""
    names: list[str] = []
    while isinstance(node, Mapping) and isinstance(node.get("."), Mapping) and "attr" in node["."]:
        names.append(node["."]["attr"])
        node = node["."]["left"]
    return names[::-1] if node == _CONTEXT else []


def _type_at(type_: Type, path: str) -> Type | None:
    """The type of a param at a dotted path; None if the operation has no such param."""
    found: Type | None = type_
    for name in path.split("."):
        found = None if found is None else found.get("attributes", {}).get(name)
    return found


def _counted(counted: Counted, type_: Type) -> dict[str, Any]:
    """Numbers as values of a Cedar type, whose decimals have four digits."""
    if type_["type"] == "Long":
        return {"last_hour": int(counted.last_hour), "today": int(counted.today)}
    return {
        name: {"__extn": {"fn": "decimal", "arg": f"{value:.4f}"}}
        for name, value in (("last_hour", counted.last_hour), ("today", counted.today))
    }


def _accesses(node: Any) -> Iterator[str]:
    """The members of `context` that an expression reads; `*` for all of it."""
    if isinstance(node, list):
        for each in node:
            yield from _accesses(each)
    elif node == _CONTEXT:
        yield _WHOLE
    elif isinstance(node, Mapping):
        found = node.get(".") or node.get("has")
        access: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        if access.get("left") == _CONTEXT:
            yield access["attr"]
        else:
            for each in node.values():
                yield from _accesses(each)
