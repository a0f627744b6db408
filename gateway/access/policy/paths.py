"""Paths of members that policies redact: from the record on, through arrays; `*` is one level. Pure."""

import re
from collections.abc import Collection, Sequence
from typing import Any

_STEP = re.compile(r"\*|[^\s.,*]+")
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


def redact(value: Any, redacted: Collection[str]) -> Any:
    """The decoded record or records without the redacted members."""
    for path in redacted:
        value = _without(value, path.split("."))
    return value


def _overlaps(pattern: Sequence[str], path: Sequence[str]) -> bool:
    return all(step in ("*", name) for step, name in zip(pattern, path, strict=False))


def _without(value: Any, steps: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_without(each, steps) for each in value]
    if not isinstance(value, dict):
        return value
    step, *rest = steps
    if not rest:
        return {} if step == "*" else {name: each for name, each in value.items() if name != step}
    return {name: _without(each, rest) if step in ("*", name) else each for name, each in value.items()}
