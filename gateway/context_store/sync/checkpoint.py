"""The progress of a run. It is stored with every page, so that a worker resumes there after a crash."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec


class ChangesUnavailable(Exception):
    """The incremental read cannot continue: too many records have the same time. A full synchronization is needed."""


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a run has come; between runs, where the next one begins."""

    #: Unix time from which changes are wanted; None: everything
    since: float | None = None
    #: when the run began; None between runs
    began: float | None = None
    #: when everything was read last
    swept: float | None = None
    #: the value that requests the next page, or the application's own cursor
    token: str | int | None = None
    #: stored id of the parent whose records are read
    parent: str | None = None
    #: ids below the parent that are still to be read, the current one first
    pending: tuple[str, ...] = ()
    #: whether it reads the list of deleted records
    is_removed: bool = False
    #: whether all below the parent is wanted, because nothing of it was read before
    is_whole: bool = False
    #: whether something could not be read, so that a record not seen may still exist
    is_partial: bool = False

    @property
    def start(self) -> float | None:
        """The time from which the list at this checkpoint is to tell changes; None: everything."""
        return None if self.is_whole else self.since

    def dumped(self) -> str:
        return msgspec.json.encode(self).decode()

    def replace(self, **members: Any) -> "Checkpoint":
        """The same checkpoint with other members."""
        return msgspec.structs.replace(self, **members)


def loaded(text: str | None) -> Checkpoint:
    """The checkpoint that `dumped` wrote; the first one if there is none or it has another version."""
    try:
        return msgspec.json.decode(text, type=Checkpoint) if text else Checkpoint()
    except msgspec.MsgspecError:
        return Checkpoint()


@dataclass(frozen=True, slots=True)
class ParentRecord:
    """A record below which others lie."""

    id: str
    document: Mapping[str, Any]
    #: whether what lies below it may not have been read before
    is_new: bool = False
