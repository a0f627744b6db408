"""Kinds that an operator might write or import by mistake: of one word, very large, with markup and very long texts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from gateway.kinds.starter import starter_files

#: markup in the languages of the pages that show a kind: HTML, Jinja, Markdown and CSV
MARKUP = '<script>alert("1")</script>{{ 7 * 7 }}{% raw %}[x](javascript:alert(1))`|=1+1\n# Heading\n'
#: operations of the large kind
MANY = 5_000
_ACTIONS = ("list", "get", "create", "update", "delete")


def write_kind(root: Path, kind: str, **members: Any) -> Path:
    """The folder of a valid kind with one entity; `members` replace those of its connector.yaml."""
    folder = root / kind
    folder.mkdir(parents=True)
    for name, text in starter_files(kind).items():
        (folder / name).write_text(text)
    change_file(folder / "connector.yaml", members)
    return folder


def change_file(path: Path, members: Mapping[str, Any]) -> None:
    """Replace members of a spec file."""
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **members}, sort_keys=False))


def write_large_kind(root: Path) -> Path:
    """A kind with 5,000 operations."""
    folder = write_kind(root, "warehouse")
    for number in range(MANY // len(_ACTIONS)):
        path = f"/things{number}"
        actions: dict[str, Any] = {}
        for action in _ACTIONS:
            is_one, is_read = action in ("get", "update", "delete"), action in ("list", "get")
            actions[action] = {
                "request": f"{_METHODS[action]} {path}{'/{thing_id}' if is_one else ''}",
                "effect": "read" if is_read else "idempotent" if is_one else "write",
                "description": f"{action.capitalize()} the things of shelf {number}.",
                "records" if action == "list" else "record": "$",
                **({"params": {"thing_id": {"type": "string", "description": "its id"}}} if is_one else {}),
                **({"required": ["thing_id"], "example": {"thing_id": "1"}} if is_one else {}),
            }
        entity = {"description": f"Things of shelf {number}.", "actions": actions}
        (folder / f"things{number}.yaml").write_text(yaml.safe_dump(entity, sort_keys=False))
    return folder


_METHODS = {"list": "GET", "get": "GET", "create": "POST", "update": "PUT", "delete": "DELETE"}


def write_wordy_kind(root: Path) -> Path:
    """A kind with markup in every text, and with 100 KB in those that may be so long."""
    text = f"{MARKUP}{'word ' * 20_000}"
    folder = write_kind(root, "wordy", title=text, description=text, synonyms=[MARKUP], application=MARKUP[:60])
    entity = yaml.safe_load((folder / "items.yaml").read_text())
    for action in entity["actions"].values():
        action |= {"description": text, "phrases": [MARKUP]}
        for schema in action.get("params", {}).values():
            schema["description"] = text
    change_file(folder / "items.yaml", {"description": text, "synonyms": [MARKUP], "actions": entity["actions"]})
    return folder


def kind_document(kind: str, server: str | None = None) -> dict[str, Any]:
    """A valid kind as an import stores it, perhaps at another server."""
    files = {name.removesuffix(".yaml"): yaml.safe_load(text) for name, text in starter_files(kind).items()}
    connector = files.pop("connector")
    if server is not None:
        connector |= {"server": server, "hosts": [server.removeprefix("https://")]}
    return {"connector": connector, "entities": files}
