"""The search of the site: all words must occur; titles count more than text. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gateway.kinds.spec import ConnectorSpec

_WORD = re.compile(r"[\w-]+")
#: points of a word in the title
_IN_TITLE = 20
#: further points at the beginning of a word of the title
_BEGINS_TITLE = 10
#: points of each occurrence in the text
_IN_TEXT = 1
#: the maximum number of occurrences that count
_MAX_IN_TEXT = 5
#: characters of a snippet before the first word found
_BEFORE = 60
#: characters of a snippet after the first word found
_AFTER = 140


@dataclass(frozen=True, slots=True)
class SearchEntry:
    """A search result: a section, an operation or an error."""

    address: str
    title: str
    place: str
    text: str
    lower_title: str = field(init=False)
    lower_text: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower_title", f"{self.title} {self.place}".lower())
        object.__setattr__(self, "lower_text", self.text.lower())


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry, and the part of its text around the first word found."""

    entry: SearchEntry
    snippet: str


def search(entries: Iterable[SearchEntry], phrase: str, limit: int) -> list[Hit]:
    """The entries that contain every word of the phrase, the best first."""
    words = list(dict.fromkeys(map(_singular, _WORD.findall(phrase.lower()))))
    if not words:
        return []
    scored = ((_score(entry, words), entry) for entry in entries)
    best = sorted((each for each in scored if each[0]), key=lambda each: -each[0])[:limit]
    return [Hit(entry, _snippet(entry, words)) for _, entry in best]


def _singular(word: str) -> str:
    """The word without the `s` of a plural, so that it also finds the singular."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _score(entry: SearchEntry, words: Sequence[str]) -> int:
    """The points of an entry; 0 if a word is missing."""
    total = 0
    for word in words:
        count = min(entry.lower_text.count(word), _MAX_IN_TEXT) * _IN_TEXT
        if word in entry.lower_title:
            begins = re.search(rf"\b{re.escape(word)}", entry.lower_title)
            count += _IN_TITLE + (_BEGINS_TITLE if begins else 0)
        if not count:
            return 0
        total += count
    return total


def _snippet(entry: SearchEntry, words: Sequence[str]) -> str:
    found = [place for word in words if (place := entry.lower_text.find(word)) >= 0]
    start = max(min(found, default=0) - _BEFORE, 0)
    end = start + _BEFORE + _AFTER
    shown = entry.text[start:end]
    if start:
        shown = f"… {shown.partition(' ')[2]}"
    return f"{shown.rpartition(' ')[0]} …" if end < len(entry.text) else shown


def words_of(spec: ConnectorSpec) -> str:
    """The words that find an application: its names, synonyms and entities."""
    return " ".join((spec.application, spec.kind, spec.title, *spec.synonyms, *spec.entities)).lower()


def kinds_with(specs: Sequence[ConnectorSpec], phrase: str) -> list[ConnectorSpec]:
    """The kinds whose words contain every word of the phrase."""
    words = phrase.lower().split()
    return [spec for spec in specs if all(word in words_of(spec) for word in words)]
