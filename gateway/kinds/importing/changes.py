"""The differences between two versions of a kind that concern its callers. Pure."""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.requests import Action

#: members of the kind whose change concerns all its operations
_OF_KIND = (
    "server",
    "hosts",
    "environment",
    "authentication",
    "oauth",
    "headers",
    "failure",
    "rate_limit",
    "health_check",
)
#: members of an action whose change is reported as old → new
_TOLD = (
    "request",
    "effect",
    "server",
    "headers",
    "constant_query",
    "content_type",
    "request_body",
    "records",
    "record",
    "download",
    "tool",
    "output_schema",
    "runs",
)
#: keywords of a param that limit what callers may send
_OF_PARAM = ("type", "enum", "format", "pattern", "minimum", "maximum", "minLength", "maxLength", "items", "properties")
_MAX_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: where, what, and whether calls that worked may fail."""

    place: str
    text: str
    is_breaking: bool = False

    def __str__(self) -> str:
        return f"{'!' if self.is_breaking else ' '} {self.place}: {self.text}"


def changes_between(old: Kind, new: Kind) -> Iterator[Change]:
    """Every difference between two versions of a kind; descriptions count only for tools, whose server wrote them."""
    for member in _OF_KIND:
        before, after = getattr(old.spec, member), getattr(new.spec, member)
        if before != after:
            yield Change(
                "connector", f"{member} {_shown(before)} → {_shown(after)}", member in ("server", "authentication")
            )
    moved = dict(_renamed(old, new))
    for key in sorted({*old.operations, *new.operations}):
        before, after = old.operations.get(key), new.operations.get(key)
        if before is not None and key in moved:
            yield Change(str(before), f"renamed to {'.'.join(moved[key])}", True)
        elif before is not None and after is None:
            yield Change(str(before), f"removed ({before.action.request})", True)
        elif before is None and after is not None and key not in moved.values():
            yield Change(str(after), f"added ({after.action.request})")
        elif before is not None and after is not None:
            yield from _of_operation(before, after)


def with_confirmed_effects(
    connector: Mapping[str, Any], entities: Mapping[str, Any], accepted: Kind
) -> Mapping[str, Any]:
    """The entities of an MCP server; tools that are as they were accepted keep the effects that a person confirmed.

    A tool of another server, or at another address of it, is another tool.
    """
    if connector["server"] != accepted.spec.server:
        return entities
    made, known = copy.deepcopy(dict(entities)), accepted.operations
    for entity, members in made.items():
        for name, action in members["actions"].items():
            before = known.get((entity, name))
            if before is None or before.action.tool is None:
                continue
            if Action.model_validate({**action, "effect": before.action.effect}) == before.action:
                action["effect"] = str(before.action.effect)
    return made


def _renamed(old: Kind, new: Kind) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """The operations with the same request and another name: their old and their new keys."""
    by_request = {_sent(operation): key for key, operation in new.operations.items()}
    for key, operation in old.operations.items():
        other = by_request.get(_sent(operation))
        if key not in new.operations and other is not None and other not in old.operations:
            yield key, other


def _sent(operation: Operation) -> tuple[str, str | None]:
    """What tells the requests of operations apart."""
    return operation.action.request, operation.action.tool


def _of_operation(old: Operation, new: Operation) -> Iterator[Change]:
    place = str(old)
    for member in _TOLD:
        before, after = getattr(old.action, member), getattr(new.action, member)
        if before != after:
            is_breaking = member in ("effect", "records", "record", "download", "tool")
            yield Change(place, f"{member} {_shown(before)} → {_shown(after)}", is_breaking)
    if old.action.tool is not None and _texts(old) != _texts(new):
        yield Change(place, f"descriptions {_shown(_texts(old))} → {_shown(_texts(new))}")
    if old.paging != new.paging:
        yield Change(place, f"paging {old.action.paging or 'none'} → {new.action.paging or 'none'}")
    for name in sorted({*old.action.params, *new.action.params}):
        yield from _of_param(place, name, old, new)
    gone = sorted(set(old.fields) - set(new.fields))
    if gone:
        yield Change(place, f"fields of records removed: {', '.join(gone)}", True)


def _texts(operation: Operation) -> Any:
    """What models read of a tool: its description, and the schemas of its params."""
    return [operation.action.description, operation.action.params]


def _of_param(place: str, name: str, old: Operation, new: Operation) -> Iterator[Change]:
    before, after = old.action.params.get(name), new.action.params.get(name)
    is_required = name in new.action.required
    if after is None:
        yield Change(place, f"param {name} removed", True)
    elif before is None:
        yield Change(place, f"{'required ' if is_required else ''}param {name} added", is_required)
    else:
        if is_required != (name in old.action.required):
            yield Change(place, f"{name} is {'now' if is_required else 'no longer'} required", is_required)
        for keyword in _OF_PARAM:
            if _meaning(before.get(keyword)) != _meaning(after.get(keyword)):
                yield Change(
                    place, f"{name}: {keyword} {_shown(before.get(keyword))} → {_shown(after.get(keyword))}", True
                )


def _meaning(value: Any) -> Any:
    """A schema without descriptions and examples."""
    if isinstance(value, Mapping):
        return {name: _meaning(each) for name, each in value.items() if name not in ("description", "examples")}
    return [_meaning(each) for each in value] if isinstance(value, list) else value


def _shown(value: Any) -> str:
    if value is None or value in ((), "", {}):
        return "none"
    if isinstance(value, tuple) and all(isinstance(each, str) for each in value):
        value = ".".join(value) or "$"
    text = value if isinstance(value, str) else json.dumps(value, default=_plain, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_defaults=True) if hasattr(value, "model_dump") else str(value)
