"""A stored file as its job's result describes it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The description of a job's file in the job's row."""

    blob: str
    size: int
    sha256: str
    #: the headers that the application gave it, made safe; a member of the job's result, under this name
    labels: Mapping[str, str]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "StoredFile":
        return cls(**document)

    def document(self) -> dict[str, Any]:
        """As plain data; `of` is the way back."""
        return asdict(self)

    @property
    def headers(self) -> dict[str, str]:
        """Its headers, with the checksum as its entity tag: whatever has this tag is this file, byte for byte."""
        return {**self.labels, "ETag": f'"{self.sha256}"'}
