"""The OpenAPI Overlay Specification 1.0: corrections that are applied to a document, whose next version keeps them."""

from collections.abc import Mapping, MutableMapping, MutableSequence
from typing import Any

from jsonpath import JSONPathError, JSONPathMatch, finditer

from gateway.spec_import.model import Confidence, Finding, ImportFailed, Node
from gateway.spec_import.references import node_of

_PLACE = "the overlay"


def apply_overlay(document: Any, overlay: Node) -> list[Finding]:
    """Change a document as the actions of an overlay say, in their order; an action without a target is a finding.

    Raises ImportFailed for what is not an overlay, with the number of the action that is wrong.
    """
    if not str(overlay.get("overlay", "")).startswith("1."):
        raise ImportFailed("not an overlay: it begins with `overlay: 1.0.0` and has `actions`")
    actions = overlay.get("actions")
    findings = []
    for number, action in enumerate(actions if isinstance(actions, list) else (), 1):
        found = _targets(document, node_of(action), number)
        if not found:
            reason = "an action of the overlay finds nothing to change; correct its target or remove it"
            findings.append(Finding(Confidence.NEEDS_PERSON, _PLACE, reason, f"{number}: {action['target']}"))
        # From the end, so that the places of list items stay true while others are removed.
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
        raise ImportFailed("an action of the overlay removes the whole document; name what it removes in `target`")
    holder: Any = node.parent.obj
    del holder[node.parts[-1]]


def merge(target: MutableMapping[str, Any], update: Mapping[str, Any]) -> None:
    """Merge as overlays do: objects member by member, lists one after the other, all else replaced."""
    for name, value in update.items():
        present = target.get(name)
        if isinstance(present, MutableMapping) and isinstance(value, Mapping):
            merge(present, value)
        elif isinstance(present, list) and isinstance(value, list):
            present.extend(_copied(value))
        else:
            target[name] = _copied(value)


def _copied(value: Any) -> Any:
    """A copy: an update with several targets would be one object in all of them."""
    if isinstance(value, Mapping):
        return {name: _copied(each) for name, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value
