"""References to secrets, `vault://HOST[:PORT]/MOUNT/PATH#FIELD`, and the prefixes that allow them. Pure."""

import re
from dataclasses import dataclass
from typing import Self

#: maximum characters of a reference
_MAX_LENGTH = 1000
# Percent-encoding, queries, users and empty segments are not part of it, so that texts are compared as they are sent.
_PLACE = re.compile(
    r"vault://(?P<host>[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?P<port>:[1-9][0-9]{0,4})?"
    r"(?P<path>(?:/[A-Za-z0-9_.~@=-]+)+)"
)
_FIELD = re.compile(r"[A-Za-z0-9_.~@=-]{1,200}")


@dataclass(frozen=True, slots=True)
class SecretPlace:
    """A server of Vault, and the segments of a path there, of which the first is the mount of a KV engine."""

    #: host and port as they are in the URL, in lower case
    netloc: str
    segments: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Self:
        """The place that is written `vault://HOST[:PORT]/MOUNT[/PATH]`; raises ValueError."""
        found = _PLACE.fullmatch(text) if len(text) <= _MAX_LENGTH else None
        segments = tuple(found["path"][1:].split("/")) if found else ()
        if found is None or {".", ".."} & set(segments):
            raise ValueError(
                "must be written vault://HOST[:PORT]/MOUNT/PATH, without percent-encoding and dot segments"
            )
        return cls((found["host"] + (found["port"] or "")).lower(), segments)

    def contains(self, other: "SecretPlace") -> bool:
        """Whether the other place is at this one or below it: the same host and port, and whole segments."""
        return self.netloc == other.netloc and other.segments[: len(self.segments)] == self.segments


@dataclass(frozen=True, slots=True)
class SecretReference:
    """One field of a secret in Vault's key-value engine, version 2."""

    place: SecretPlace
    field: str

    @classmethod
    def read(cls, text: str) -> Self:
        """The reference that is written `vault://HOST[:PORT]/MOUNT/PATH#FIELD`; raises ValueError."""
        place, _, field = text.partition("#")
        read = SecretPlace.read(place)
        if len(read.segments) < 2 or not _FIELD.fullmatch(field):
            raise ValueError("must be written vault://HOST[:PORT]/MOUNT/PATH#FIELD")
        return cls(read, field)

    @property
    def url(self) -> str:
        return f"vault://{self.place.netloc}/{'/'.join(self.place.segments)}#{self.field}"
