"""The OpenAPI Overlay Specification 1.0: corrections that are applied to each version of a document."""

from collections.abc import Mapping, MutableMapping, MutableSequence
from typing import Any

from jsonpath import JSONPathError, JSONPathMatch, finditer

from gateway.kinds.importing.model import Confidence, Finding, ImportFailed, Node
from gateway.kinds.importing.references import node_of

_PLACE = "the overlay"


def apply_overlay(document: Any, overlay: Node) -> list[Finding]:
    """Apply the actions of an overlay to a document, in order; returns a finding for each that matches no node.

    Raises ImportFailed for an invalid overlay, with the number of the wrong action.
    """
    if not str(overlay.get("overlay", "")).startswith("1."):
        raise ImportFailed("not an overlay: it must have `overlay: 1.0.0` and `actions`")
    actions = overlay.get("actions")
    findings = []
    for number, action in enumerate(actions if isinstance(actions, list) else (), 1):
        found = _targets(document, node_of(action), number)
        if not found:
            reason = "an action of the overlay matches nothing; correct its target or remove it"
            findings.append(
                Finding(
                    confidence=Confidence.NEEDS_PERSON,
                    place=_PLACE,
                    reason=reason,
                    detail=f"{number}: {action['target']}",
                )
            )
        # In reverse order: removing a list item changes the positions of those after it.
        for node in reversed(found):
            _apply(document, node, node_of(action))
    return findings


def _targets(document: Any, action: Node, number: int) -> list[JSONPathMatch]:
    target = action.get("target")
    if not isinstance(target, str):
        raise ImportFailed(
            f"action {number} of the overlay has no `target`; write a JSONPath such as $.paths['/x'].get"
        )
    if not {"update", "remove"} & set(action):
        raise ImportFailed(f"action {number} of the overlay has neither `update` nor `remove`")
    try:
        return list(finditer(target, document))
    except JSONPathError as error:
        raise ImportFailed(f"action {number} of the overlay: {target} is not a JSONPath: {error}") from error


def _apply(document: Any, node: JSONPathMatch, action: Node) -> None:
    if action.get("remove") is True:
        _remove(document, node)
    elif isinstance(node.obj, MutableMapping) and isinstance(action.get("update"), Mapping):
        merge(node.obj, action["update"])
    elif isinstance(node.obj, MutableSequence):
        node.obj.append(_copied(action.get("update")))
    elif node.parent is not None:
        holder: Any = node.parent.obj
        holder[node.parts[-1]] = _copied(action.get("update"))


def _remove(document: Any, node: JSONPathMatch) -> None:
    if node.parent is None:
        raise ImportFailed("an action of the overlay would remove the whole document; correct its `target`")
    holder: Any = node.parent.obj
    del holder[node.parts[-1]]


def merge(target: MutableMapping[str, Any], update: Mapping[str, Any]) -> None:
    """Merge as overlays require: objects member by member, lists by appending; other values are replaced."""
    for name, value in update.items():
        present = target.get(name)
        if isinstance(present, MutableMapping) and isinstance(value, Mapping):
            merge(present, value)
        elif isinstance(present, list) and isinstance(value, list):
            present.extend(_copied(value))
        else:
            target[name] = _copied(value)


def _copied(value: Any) -> Any:
    """A deep copy, so that several targets of one update do not share an object."""
    if isinstance(value, Mapping):
        return {name: _copied(each) for name, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value
