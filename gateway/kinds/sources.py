"""Spec files as text: their contents, and the line of each member."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class LintError:
    """One thing wrong with a spec file or its folder: where, what, and what to do."""

    path: Path
    #: 0 for a folder
    line: int
    message: str
    #: whether nothing of the file could be read
    is_unreadable: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


class SpecError(Exception):
    """A spec that cannot be used; its text is a line for each error: `path:line: what is wrong and what to do`."""

    def __init__(self, errors: Sequence[LintError]) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = tuple(errors)

    @property
    def count(self) -> str:
        """`1 error`, `3 errors`."""
        return "1 error" if len(self.errors) == 1 else f"{len(self.errors)} errors"


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; raises SpecError with the line."""
    try:
        text = path.read_text("utf-8")
        document = yaml.load(text, Loader=_LOADER)
    except FileNotFoundError as error:
        message = "there is no such file; a kind is a folder with a connector.yaml"
        raise SpecError([LintError(path, 1, message, is_unreadable=True)]) from error
    except OSError as error:
        message = f"the file cannot be read: {error.strerror or error}"
        raise SpecError([LintError(path, 1, message, is_unreadable=True)]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        message = getattr(error, "problem", None) or "this is not text in UTF-8"
        raise SpecError([LintError(path, mark.line + 1 if mark else 1, f"not YAML: {message}", True)]) from error
    if not isinstance(document, dict):
        raise SpecError([LintError(path, 1, "a spec file is a mapping, such as `description: …`", True)])
    if "&" in text and "*" in text and _holds_itself(document, set(), set()):
        raise SpecError([LintError(path, 1, "an alias (`*name`) is used within its own anchor (`&name`)", True)])
    return document


def entity_files(folder: Path) -> list[Path]:
    """The files of a kind's entities: each is named for the entity's id."""
    return sorted(path for path in folder.glob("*.yaml") if path.name != "connector.yaml")


def _holds_itself(value: Any, around: set[int], checked: set[int]) -> bool:
    """Whether a value contains itself; `around` has the ids of the values that contain it."""
    if not isinstance(value, dict | list) or id(value) in checked:
        return False
    if id(value) in around:
        return True
    inner = value.values() if isinstance(value, dict) else value
    if any(_holds_itself(each, around | {id(value)}, checked) for each in inner):
        return True
    checked.add(id(value))
    return False


@lru_cache(maxsize=64)
def composed(path: Path) -> Any:
    """A file as YAML nodes, which have line numbers; cached while a kind is linted (`composed.cache_clear`)."""
    return yaml.compose(path.read_text("utf-8"), Loader=_LOADER)


def lint_error(folder: Path, place: Sequence[str], message: str) -> LintError:
    """An error at a place of the whole spec: `entities.tickets.actions…` is in `tickets.yaml`."""
    path, members = folder / "connector.yaml", list(place)
    if len(members) > 1 and members[0] == "entities":
        path, members = folder / f"{members[1]}.yaml", members[2:]
    return LintError(path, line_of(path, members), f"{'.'.join(members) or 'the file'}: {message}")


def line_of(path: Path, place: Sequence[str]) -> int:
    """The line of the deepest member of `place` that the file has."""
    try:
        node, line = composed(path), 1
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return 1
    for part in place:
        member = next(((key, value) for name, key, value in _members(node) if name == part), None)
        if member is None:
            break
        line, node = member[0].start_mark.line + 1, member[1]
    return line


def repeated_members(path: Path) -> Iterator[LintError]:
    """An error for each member that a mapping has twice; YAML would silently use the last one."""
    pending = [composed(path)]
    visited = set()
    while pending:
        node = pending.pop()
        if id(node) in visited:  # an alias, perhaps of a node around itself
            continue
        visited.add(id(node))
        seen: set[str] = set()
        for name, key, value in _members(node):
            if isinstance(key, yaml.ScalarNode) and name in seen:
                yield LintError(path, key.start_mark.line + 1, f"{name} appears twice; remove one of them")
            seen.add(name)
            pending.append(value)


def _members(node: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name, node of the name (of the item in a list) and node of the value, for each member."""
    if isinstance(node, yaml.MappingNode):
        yield from ((str(key.value), key, value) for key, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        yield from ((str(position), item, item) for position, item in enumerate(node.value))
