"""The progress of a run, stored with every page, so that another worker can resume after a crash."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.foundation.numbered_pages import Place

#: seconds of a run, after which it ends without the rest
MAX_SECONDS = 7 * 86_400.0


class ChangesUnavailable(Exception):
    """The incremental read cannot continue: too many records have the same time. A full synchronization is needed."""


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The position of a run; between runs, the position at which the next one begins."""

    #: Unix time from which changes are read; None for all records
    since: float | None = None
    #: when the run began; None between runs
    began: float | None = None
    #: when all records were last read
    swept: float | None = None
    #: the value that requests the next page, or the application's own cursor
    token: str | int | None = None
    #: the position in the application's log of changes from which changes are read
    log: str | None = None
    #: stored id of the parent whose records are being read
    parent: str | None = None
    #: ids below the parent whose records are not read yet, the current one first
    pending: tuple[str, ...] = ()
    #: whether it reads the list of deleted records
    is_removed: bool = False
    #: whether all records below the parent are read, because none of them was read before
    is_whole: bool = False
    #: Unix time of a record of the list's last page, from which a list in the order of time continues
    position: float | None = None
    #: whether the list may lack records, so that it proves no deletion: many have one time, or changed a moment ago
    may_lack: bool = False
    #: why some records could not be read, so that an unseen record may still exist; None if all were read
    missing: str | None = None
    #: how far a list with page numbers was read whose pages overlap, and the params of its next page
    place: Place | None = None
    request: dict[str, Any] | None = None
    #: whether the list began again, because the application refused the value that continues it
    is_again: bool = False

    @property
    def start(self) -> float | None:
        """Unix time from which changes are read at this checkpoint; None for all records."""
        return None if self.is_whole else self.since

    @property
    def is_inside(self) -> bool:
        """Whether it is after the first page of a list."""
        return self.token is not None or self.request is not None

    def at_beginning(self, **members: Any) -> "Checkpoint":
        """The same checkpoint at the first page of a list, with other members."""
        return self.replace(token=None, pending=(), place=None, request=None, is_again=False, **members)

    def overdue(self, now: float) -> str | None:
        """Why the run ends here, if it takes too long."""
        days = round(MAX_SECONDS / 86_400)
        return f"reading takes more than {days} days" if now - (self.began or now) > MAX_SECONDS else None

    def without(self, reason: str) -> "Checkpoint":
        """The same checkpoint after a list that could not be read to its end; the first reason stays."""
        return self.replace(missing=self.missing or reason)

    def dumped(self) -> str:
        return msgspec.json.encode(self).decode()

    def replace(self, **members: Any) -> "Checkpoint":
        """The same checkpoint with other members."""
        return msgspec.structs.replace(self, **members)


def loaded(text: str | None) -> Checkpoint:
    """The checkpoint that `dumped` wrote; an empty one if there is none or it cannot be decoded."""
    try:
        return msgspec.json.decode(text, type=Checkpoint) if text else Checkpoint()
    except msgspec.MsgspecError:
        return Checkpoint()


@dataclass(frozen=True, slots=True)
class ParentRecord:
    """A record that others belong to."""

    id: str
    document: Mapping[str, Any]
    #: whether the records below it may not have been read before
    is_new: bool = False
