"""Spec files as text: their contents, and the line of each member."""

import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: maximum bytes of a file, and of its values after each alias is replaced by what it stands for
_MAX_BYTES, _MAX_VALUES = 32 << 20, 1_000_000
#: maximum depth of nested lists and mappings: the YAML library's C code crashes the process at many thousands
_MAX_DEPTH = 100
#: errors of a summary, and its maximum characters
_SUMMARIZED, _MAX_SUMMARY = 3, 1000


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
    def summary(self) -> str:
        """The number of errors and the first of them, for one line of a log."""
        shown = "; ".join(map(str, self.errors[:_SUMMARIZED]))
        return f"{self.count}: {shown:.{_MAX_SUMMARY}}{'; …' if len(self.errors) > _SUMMARIZED else ''}"

    @property
    def count(self) -> str:
        """`1 error`, `3 errors`."""
        return "1 error" if len(self.errors) == 1 else f"{len(self.errors)} errors"


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; raises SpecError with the line."""
    try:
        text = _text_of(path)
        if _is_too_deep(text):
            raise SpecError([LintError(path, 1, f"has more than {_MAX_DEPTH} lists or mappings in one another", True)])
        document = yaml.load(text, Loader=_LOADER)
    except FileNotFoundError as error:
        message = "there is no such file; a kind is a folder with a connector.yaml"
        raise SpecError([LintError(path, 1, message, is_unreadable=True)]) from error
    except OSError as error:
        message = f"the file cannot be read: {error.strerror or error}"
        raise SpecError([LintError(path, 1, message, is_unreadable=True)]) from error
    except UnicodeDecodeError as error:
        raise SpecError([LintError(path, 1, "not YAML: this is not text in UTF-8", True)]) from error
    except (yaml.YAMLError, ValueError) as error:  # a ValueError is a day such as 2026-13-01, or a number too long
        mark = getattr(error, "problem_mark", None)
        message = getattr(error, "problem", None) or str(error)
        raise SpecError([LintError(path, mark.line + 1 if mark else 1, f"not YAML: {message}", True)]) from error
    if not isinstance(document, dict):
        raise SpecError([LintError(path, 1, "a spec file is a mapping, such as `description: …`", True)])
    if "&" in text and "*" in text:
        if _holds_itself(document, set(), set()):
            raise SpecError([LintError(path, 1, "an alias (`*name`) is used within its own anchor (`&name`)", True)])
        if _values_in(document, {}) > _MAX_VALUES:
            raise SpecError([LintError(path, 1, f"its aliases make more than {_MAX_VALUES:,} values", True)])
    return document


def _text_of(path: Path) -> str:
    """The text of a regular file; reading a pipe could wait forever."""
    mode = path.stat()
    if not stat.S_ISREG(mode.st_mode) and not stat.S_ISDIR(mode.st_mode):
        raise OSError(None, "it is not a regular file")
    if mode.st_size > _MAX_BYTES:
        raise OSError(None, f"it has more than {_MAX_BYTES >> 20} MiB")
    return path.read_text("utf-8")


def _is_too_deep(text: str) -> bool:
    """Whether lists and mappings are nested too deeply; files with few marks of nesting need no second parsing."""
    is_indented = f"\n{' ' * _MAX_DEPTH}" in text
    if not is_indented and sum(map(text.count, ("[", "{", "- ", "? "))) <= _MAX_DEPTH:
        return False
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                return True
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return False


def _values_in(value: Any, counted: dict[int, int]) -> int:
    """The number of values in a value that does not hold itself, as if each alias was written out."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in counted:
        inner = value.values() if isinstance(value, dict) else value
        counted[id(value)] = 1 + sum(_values_in(each, counted) for each in inner)
    return counted[id(value)]


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
    #: for each collection around the event: the names of a mapping, None for a list; and whether a name is next
    around: list[tuple[set[str] | None, bool]] = []
    for event in yaml.parse(path.read_text("utf-8"), Loader=_LOADER):
        if isinstance(event, yaml.CollectionEndEvent):
            around.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        names, is_name = around[-1] if around else (None, False)
        if names is not None:
            around[-1] = names, not is_name
            if is_name and isinstance(event, yaml.ScalarEvent):
                if event.value in names:
                    mark: Any = event.start_mark
                    yield LintError(path, mark.line + 1, f"{event.value} appears twice; remove one of them")
                names.add(event.value)
        if isinstance(event, yaml.MappingStartEvent):
            around.append((set(), True))
        elif isinstance(event, yaml.SequenceStartEvent):
            around.append((None, False))


def _members(node: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name, node of the name (of the item in a list) and node of the value, for each member."""
    if isinstance(node, yaml.MappingNode):
        yield from ((str(key.value), key, value) for key, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        yield from ((str(position), item, item) for position, item in enumerate(node.value))
