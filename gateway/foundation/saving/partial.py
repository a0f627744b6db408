"""A partial file: the first bytes of a download, in the folder of the target, with a note that identifies the file."""

import hashlib
import json
import os
from pathlib import Path
from typing import Self

from gateway.errors import Unavailable


class Partial:
    """`name.part` contains the bytes, `name.part.json` identifies the file; both are gone after a finished download."""

    def __init__(self, target: Path, resource: str) -> None:
        self.target = target
        self.size = 0
        self._resource = resource
        self._validator: str | None = None
        self._bytes = target.with_name(f"{target.name}.part")
        self._note = target.with_name(f"{target.name}.part.json")

    @classmethod
    def beside(cls, target: Path, resource: str) -> Self:
        """The partial file of an earlier download to this target, if it was of the same resource; else an empty one."""
        partial = cls(target, resource)
        try:
            note = json.loads(partial._note.read_text("utf-8"))
            if note["resource"] == resource:
                partial._validator, partial.size = note["validator"], partial._bytes.stat().st_size
        except (OSError, ValueError, KeyError, TypeError):
            partial.size = 0
        return partial

    @property
    def resuming_headers(self) -> dict[str, str]:
        """The headers that request the rest of the file, if it has not changed; none without a first part."""
        if not self.size or self._validator is None:
            return {}
        return {"Range": f"bytes={self.size}-", "If-Range": self._validator}

    def begin(self, start: int, validator: str | None) -> None:
        """Prepare for bytes from `start` on, of content with this validator; raises Unavailable if it has changed."""
        if start == 0:
            self._bytes.write_bytes(b"")
            self.size = 0
        elif start != self.size or validator not in (None, self._validator):
            self.start_over()
            raise Unavailable("the file has changed since the download began; starting over")
        else:
            return
        self._validator = validator
        self._note.write_text(json.dumps({"resource": self._resource, "validator": validator}), "utf-8")

    def append(self, chunk: bytes) -> None:
        with self._bytes.open("ab") as file:
            file.write(chunk)
        self.size += len(chunk)

    def start_over(self) -> None:
        """Discard the stored bytes: the file has changed."""
        self.size, self._validator = 0, None

    def sha256(self) -> str:
        with self._bytes.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def complete(self) -> None:
        """Flush the complete file to the disk and rename it to the target."""
        with self._bytes.open("rb+") as file:
            os.fsync(file.fileno())
        self._bytes.replace(self.target)
        self._note.unlink(missing_ok=True)

    def discard(self) -> None:
        self._bytes.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)
