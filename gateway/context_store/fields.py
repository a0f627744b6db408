"""The fields that a search may name: those that an entity declares, and members of its objects and arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class FieldType(StrEnum):
    """The type of a declared field; a scalar field treats a value of another JSON type as missing."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ARRAY = "array"
    OBJECT = "object"
    #: only the value shows the type: object-or-string fields, and all members of objects and arrays
    ANY = "any"

    @classmethod
    def named(cls, name: str) -> "FieldType":
        """The type that a spec calls `name`; `object_or_string` is `any`."""
        return cls.ANY if name == "object_or_string" else cls(name)


SCALARS = frozenset({FieldType.STRING, FieldType.INTEGER, FieldType.NUMBER, FieldType.BOOLEAN})
NUMBERS = frozenset({FieldType.INTEGER, FieldType.NUMBER})

#: maximum segments of a dotted path
MAX_PATH = 8


@dataclass(frozen=True, slots=True)
class Field:
    """One field as a query names it."""

    name: str
    type: FieldType
    #: the name of the declared field, or of the one that contains it
    declared: str

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(self.name.split("."))

    @property
    def is_scalar(self) -> bool:
        return self.type in SCALARS


def resolved(name: str, fields: Mapping[str, FieldType]) -> Field | None:
    """The field called `name`; None if it is neither declared nor within a declared object or array."""
    if name in fields:
        return Field(name, fields[name], name)
    segments = name.split(".")
    if len(segments) > MAX_PATH or not all(segments):
        return None
    ancestors = (".".join(segments[:length]) for length in range(len(segments) - 1, 0, -1))
    declared = next((ancestor for ancestor in ancestors if ancestor in fields), None)
    if declared is None or fields[declared] in SCALARS:
        return None
    return Field(name, FieldType.ANY, declared)
