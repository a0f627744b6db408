"""Paths of members that policies redact: from the record on, through arrays; `*` is one level. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from html import unescape
from itertools import accumulate
from typing import Any
from unicodedata import category, combining, normalize

import inflection

_STEP, _INDEX = re.compile(r"\*|[^\s.,*]+"), re.compile(r"\s*[+-]?\d+")
#: a part of a word, and what lies between words
_PART, _BETWEEN = re.compile(r"\d+|[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+"), re.compile(r"[\W_]+")
#: a character as query languages, JSON and URLs escape it: by its number, or a blank one; a run of backslashes is read
#: once, and group 4 is octal
_ESCAPED = re.compile(
    r"(?<!\\)\\++(?:u([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,5})\}|x([0-9a-fA-F]{2})|[bfnrtv]|([0-7]{1,3}))"
    r"|%([0-9a-fA-F]{2})"
)
_OCTAL = 4
#: how often a text may be escaped: an application may read a URL within a query within JSON
_MAX_ESCAPES = 4
#: minimum letters of a singular; shorter ones are no words (`i` of `is`)
_MIN_SINGULAR = 3
#: maximum characters of a text whose words are looked at
_MAX_WORDS = 10_000
#: maximum characters of a text that is not ASCII, and of a run of combining ones: to normalize it takes the square
_MAX_NOT_ASCII, _MAX_COMBINING = 64 << 10, 30
#: two characters that become combining ones (half-width voiced marks)
_VOICED = "\uff9e\uff9f"
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
        if len(steps) > _MAX_STEPS or not all(_STEP.fullmatch(step) and step.isprintable() for step in steps):
            return f"{path!r} is not a path; write members joined by points, such as requester.email or *.phone"
    return None


def covers(redacted: Collection[str], path: Sequence[str], *, is_scalar: bool = False) -> bool:
    """Whether a path is redacted, lies below a redacted member, or has one below it.

    A path may name an item of an array by its index (`lines.0.note`), as PostgreSQL reads it. A scalar has no members.
    """
    return any(_meets(each.split("."), path, is_scalar) for each in redacted)


def first_redacted(redacted: Collection[str], paths: Iterable[str]) -> str | None:
    """The first of these dotted paths that is redacted or lies below a redacted member."""
    for path in paths:
        steps = path.split(".")
        if any(len(each) <= len(steps) and _overlaps(each, steps) for each in (one.split(".") for one in redacted)):
            return path
    return None


def first_telling(redacted: Collection[str], params: Mapping[str, Any], placing: Collection[str] = ()) -> str | None:
    """The first param of a read that names a redacted member: a filter, a sort order or a query, whose answer could
    tell the member's value.

    The name may be that of the param, or words of its text, in the singular or the plural; capitals, signs between its
    letters, forms of a letter that are compatible (NFKC) and escapes do not count. If a path has no name (`*`), every
    param tells but those of `placing`, which choose the record or the page. A text that takes long to read may have
    any name: one that is long and not ASCII, has a long run of combining characters, or escapes a huge number.
    """
    names = {form for path in redacted for form in _forms(path.replace("*", "").rstrip(".").rpartition(".")[2])}
    named = names - {""}
    telling = (place for place, text in _texts(params, "") if _tells(named, text))
    found = next(telling, None) if named else None
    if found is None and "" in names:
        return next((name for name in params if name not in placing), None)
    return found


def _tells(names: Collection[str], text: str) -> bool:
    """Whether a text has one of these names, as it stands or if its escapes are read."""
    try:
        return any(_is_slow(each) or _has_one(names, each) for each in _readings(text))
    except ValueError:  # a number of more digits than Python reads
        return True


def _is_slow(text: str) -> bool:
    """Whether a text takes long to normalize."""
    return not text.isascii() and (len(text) > _MAX_NOT_ASCII or _has_long_run(text))


def _has_long_run(text: str) -> bool:
    """Whether more combining characters than a word has follow each other."""
    run = 0
    for each in text:
        run = run + 1 if each > "\u02ff" and _is_combining(each) else 0
        if run > _MAX_COMBINING:
            return True
    return False


def _is_combining(character: str) -> bool:
    return combining(character) > 0 or category(character).startswith("M") or character in _VOICED


def _readings(text: str) -> Iterator[str]:
    """The text, and what it becomes each time its escapes are read."""
    yield text
    for _ in range(_MAX_ESCAPES):
        before, text = text, unescape(_ESCAPED.sub(_read, text))
        if text == before:
            return
        yield text


def _read(escaped: re.Match[str]) -> str:
    group = escaped.lastindex
    return " " if group is None else chr(int(escaped[group], 8 if group == _OCTAL else 16))


@lru_cache(4096)
def _forms(name: str) -> frozenset[str]:
    """The letters of a name as it stands, in the singular and in the plural."""
    singular = inflection.singularize(name)
    forms = (name, inflection.pluralize(name), singular if len(singular) >= _MIN_SINGULAR else name)
    return frozenset(map(_letters, forms))


def _has_one(names: Collection[str], text: str) -> bool:
    """Whether one of these names is made of whole parts of a text; of a long text, of any of its letters."""
    letters = _letters(text)
    found = [name for name in names if name in letters]
    if not found or len(text) > _MAX_WORDS:
        return bool(found)
    bounds = {0, *accumulate(len(_letters(part)) for part in _PART.findall(normalize("NFKC", text)))}
    return any(
        each.start() in bounds and each.start() + len(name) in bounds
        for name in found
        for each in re.finditer(f"(?={re.escape(name)})", letters)
    )


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


def _letters(text: str) -> str:
    """The letters and digits of a text, compatible forms (NFKC) as one and without capitals."""
    return _BETWEEN.sub("", normalize("NFKC", text).casefold())


def _meets(pattern: Sequence[str], path: Sequence[str], is_scalar: bool) -> bool:
    if not pattern or not path:
        return not (pattern and is_scalar)
    if _INDEX.fullmatch(path[0]) and _meets(pattern, path[1:], is_scalar):
        return True
    return pattern[0] in ("*", path[0]) and _meets(pattern[1:], path[1:], is_scalar)


def _overlaps(pattern: Sequence[str], path: Sequence[str]) -> bool:
    return all(step in ("*", name) for step, name in zip(pattern, path, strict=False))
