"""Paths of members that policies redact: from the record on, through arrays; `*` is one level. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

_STEP = re.compile(r"\*|[^\s.,*]+")
#: a word of a text, and the parts of one
_WORD, _PART = re.compile(r"\w+(?:-\w+)*"), re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W_A-Z]+")
#: a character of a text that is JSON itself, such as a filter
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
#: maximum parts of a word that are looked at, and characters of a text whose words are
_MAX_PARTS, _MAX_WORDS = 12, 10_000
#: maximum paths of an annotation, and steps of a path
_MAX_PATHS, _MAX_STEPS = 50, 10


def paths_of(text: str) -> tuple[str, ...]:
    """The paths of an annotation's text."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def faulty_path(text: str) -> str | None:
    """What is wrong with the paths of an annotation; None if nothing is."""
    paths = paths_of(text)
    if not paths or len(paths) > _MAX_PATHS:
        return f"needs 1 to {_MAX_PATHS} paths, such as email, *.phone"
    for path in paths:
        steps = path.split(".")
        if len(steps) > _MAX_STEPS or not all(_STEP.fullmatch(step) for step in steps):
            return f"{path!r} is not a path; write members joined by points, such as requester.email or *.phone"
    return None


def covers(redacted: Collection[str], path: Sequence[str]) -> bool:
    """Whether a path is redacted, lies below a redacted member, or has one below it."""
    return any(_overlaps(each.split("."), path) for each in redacted)


def first_redacted(redacted: Collection[str], paths: Iterable[str]) -> str | None:
    """The first of these dotted paths that is redacted or lies below a redacted member."""
    for path in paths:
        steps = path.split(".")
        if any(len(each) <= len(steps) and _overlaps(each, steps) for each in (one.split(".") for one in redacted)):
            return path
    return None


def first_telling(redacted: Collection[str], params: Mapping[str, Any]) -> str | None:
    """The first param of a read that names a redacted member: a filter, a sort order or a query, whose answer could
    tell the member's value. The name may be that of the param, or a word of its text; case, `_` and `-` do not count.
    """
    names = {name for path in redacted if (name := _plain(path.replace("*", "").rstrip(".").rpartition(".")[2]))}
    return next((place for place, text in _texts(params, "") if _tells(names, text)), None) if names else None


def _tells(names: Collection[str], text: str) -> bool:
    """Whether a text has one of these names; a long text also if the name is only a part of a word."""
    text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    plain = text.lower().replace("_", "").replace("-", "")
    named = {name for name in names if name in plain}
    return bool(named) and (len(text) > _MAX_WORDS or bool(named & _names_in(text)))


def _texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """The names and texts within params, each with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for name, member in value.items():
            below = f"{place}.{name}" if place else name
            yield below, name
            yield from _texts(member, below)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _texts(item, place)


def _names_in(text: str) -> set[str]:
    """The words of a text, and the words of which each of them is made by capitals, `_` or `-`, one or several."""
    found: set[str] = set()
    for word in _WORD.findall(text):
        parts = [part.lower() for part in _PART.findall(word)][:_MAX_PARTS]
        found |= {"".join(parts[begin:end]) for begin in range(len(parts)) for end in range(begin + 1, len(parts) + 1)}
    return found


def _plain(name: str) -> str:
    return "".join(_PART.findall(name)).lower()


def _overlaps(pattern: Sequence[str], path: Sequence[str]) -> bool:
    return all(step in ("*", name) for step, name in zip(pattern, path, strict=False))
