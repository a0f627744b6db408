"""A stored file as its job's result describes it."""

from collections.abc import Mapping
from dataclasses import dataclass

STORED_HEADERS = ("Content-Type", "Content-Disposition", "Content-Encoding", "Last-Modified")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The description of a job's file; as JSON it is the job's result."""

    blob: str
    size: int
    sha256: str
    #: the headers of the application's response, made safe
    labels: Mapping[str, str]

    @property
    def headers(self) -> dict[str, str]:
        """Its headers, with the checksum as its strong entity tag."""
        labels = {name: self.labels[name] for name in STORED_HEADERS if name in self.labels}
        return {**labels, "ETag": f'"{self.sha256}"'}
