"""Which fields of an entity are indexed, chosen by their names and types when the entity is registered.

All kinds share three sort-key columns (two for strings, one for numbers) and one word index. Conditions on other fields
read the document: they find the same records, but more slowly.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from gateway.context_store.fields import NUMBERS, Field, FieldType
from gateway.context_store.tokenizer import MAX_TEXT, MAX_WORD, words

TEXT_KEYS = ("key_a", "key_b")
NUMBER_KEY = "key_n"
#: characters of a string in its sort key; records are sorted and compared by these
KEY_LENGTH = 200
#: maximum bytes of all words of a record; the maximum of a tsvector is 1 MiB
MAX_TERMS = 512 * 1024
#: the term that marks a field as truncated: its text has more words than terms, or a longer word
TRUNCATED = "~"

_MODIFIED = re.compile(r"updated|modified|edited", re.IGNORECASE)
_CREATED = re.compile(r"creat", re.IGNORECASE)
_TIME = re.compile(r"(_at|At|_time|Time|date|Date|stamp|_on|\bts)$")
_ADDRESS = re.compile(r"ur[li]$|link$", re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """The indexed fields of one entity."""

    #: key column → field
    keys: Mapping[str, str] = field(default_factory=dict)
    #: fields in the word index, with the type at registration; the order numbers them
    worded: Mapping[str, FieldType] = field(default_factory=dict)

    def key_of(self, field_: Field) -> str | None:
        """The column of the field's sort key."""
        column = self._columns.get(field_.name)
        fits = field_.type in NUMBERS if column == NUMBER_KEY else field_.type is FieldType.STRING
        return column if fits else None

    def prefix_of(self, entity_id: int, field_: Field) -> str | None:
        """The prefix of the field's terms in this entity; fields below an object share the object's prefix."""
        name = field_.declared
        if name not in self.worded or (name == field_.name and self.worded[name] is not field_.type):
            return None
        return f"{entity_id}/{self._numbers[name]}/"

    @cached_property
    def _columns(self) -> Mapping[str, str]:
        return {name: column for column, name in self.keys.items()}

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.worded)}


def chosen(fields: Mapping[str, FieldType], indexed: Sequence[str] = ()) -> Layout:
    """The layout for an entity with these search fields; `indexed` are the preferred ones for sort keys."""
    strings = [name for name in fields if fields[name] is FieldType.STRING]
    preferred = [
        *(name for name in indexed if name in strings),
        *_matching(_MODIFIED, strings)[:1],
        *_matching(_CREATED, [name for name in strings if _TIME.search(name)])[:1],
        *_matching(_TIME, strings),
    ]
    texts = list(dict.fromkeys(preferred))[: len(TEXT_KEYS)]
    numbers = [name for name in fields if fields[name] in NUMBERS]
    number = next(
        iter([*(name for name in indexed if name in numbers), *(["id"] if "id" in numbers else []), *numbers]), None
    )
    keys = dict(zip(TEXT_KEYS, texts, strict=False)) | ({NUMBER_KEY: number} if number else {})
    return Layout(
        keys, {name: fields[name] for name in fields if name not in keys.values() and _is_worded(name, fields)}
    )


def dumped(layout: Layout) -> str:
    """The layout as JSON, for `loaded`."""
    return msgspec.json.encode({"keys": layout.keys, "worded": list(layout.worded.items())}).decode()


def loaded(document: str) -> Layout:
    """The layout that `dumped` wrote."""
    members = msgspec.json.decode(document)
    return Layout(members["keys"], {name: FieldType(type_) for name, type_ in members["worded"]})


class Tokenizer:
    """Computes the terms of an entity's records; a load spends most of its time here."""

    def __init__(self, layout: Layout, entity_id: int) -> None:
        self._fields = [
            (f"{entity_id}/{number}/", f" {entity_id}/{number}/", name.split("."), type_)
            for number, (name, type_) in enumerate(layout.worded.items())
        ]

    def terms(self, record: Mapping[str, Any]) -> str:
        """The terms of a record, separated by blanks: `entity/field/word`; numbers are `#` and their double."""
        parts: list[str] = []
        for prefix, separator, path, type_ in self._fields:
            value: Any = record
            for segment in path:
                value = value.get(segment) if isinstance(value, dict) else None
            if value is not None and (terms := _terms_of(value, type_)):
                parts.append(prefix + separator.join(terms))
        text = " ".join(parts)
        return text if len(text) * 4 <= MAX_TERMS else self._truncated(text)

    def _truncated(self, text: str) -> str:
        """As many complete terms as fit into a tsvector."""
        encoded = text.encode()
        if len(encoded) <= MAX_TERMS:
            return text
        signs = " ".join(prefix + TRUNCATED for prefix, *_ in self._fields)
        return f"{signs} {encoded[: encoded.rindex(b' ', 0, MAX_TERMS - len(signs))].decode()}"


def number_term(value: float) -> str:
    """The term of a number; equal doubles have the same one."""
    try:
        return f"#{float(value) + 0.0!r}"  # + 0.0, because -0.0 is 0
    except OverflowError:
        return "#inf"


def _matching(pattern: re.Pattern[str], names: Sequence[str]) -> list[str]:
    return [name for name in names if pattern.search(name)]


def _is_worded(name: str, fields: Mapping[str, FieldType]) -> bool:
    """Whether to index words of the field; fractions are compared, but rarely looked up."""
    if fields[name] in (FieldType.BOOLEAN, FieldType.NUMBER) or _TIME.search(name) or _ADDRESS.search(name):
        return False
    return not any(other.startswith(f"{name}.") for other in fields)


def _terms_of(value: Any, type_: FieldType) -> Iterable[str]:
    """The terms of one field's value, if it is of the declared type."""
    if isinstance(value, str):
        return () if type_ is FieldType.INTEGER else _terms_of_text(value)
    if type_ is FieldType.STRING:
        return ()
    if isinstance(value, int | float):
        return () if isinstance(value, bool) else (number_term(value),)
    if type_ is FieldType.INTEGER:
        return ()
    return {term for scalar in _scalars(value) for term in _terms_of(scalar, FieldType.ANY)}


def _terms_of_text(text: str) -> list[str]:
    terms = words(text)
    if len(text) >= MAX_WORD and (len(text) > MAX_TEXT or max(map(len, terms), default=0) == MAX_WORD):
        terms.append(TRUNCATED)
    return terms


def _scalars(value: Any) -> Iterator[str | int | float]:
    """All strings and numbers within the value; without recursion, because a record may be nested very deeply."""
    rest = [value]
    while rest:
        current = rest.pop()
        if isinstance(current, dict):
            rest.extend(current.values())
        elif isinstance(current, list):
            rest.extend(current)
        elif isinstance(current, str | int | float) and not isinstance(current, bool):
            yield current
