"""Rows that PostgreSQL does not have yet, in files that outlive their process when it is killed.

A row is written before what it is about begins, and again when that has ended. Writing is a copy into the cache of the
operating system: it survives the end of the process, not that of the machine.
"""

import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import UUID, uuid4

import msgspec

log = logging.getLogger(__name__)

_SUFFIX = ".journal"
#: how lines begin: of what has begun, of what has ended, and of what another row tells
_BEGUN, _ENDED, _DROPPED = b"+", b"=", b"-"
#: the characters of an id in a line
_ID = 32


@dataclass(frozen=True, slots=True)
class Segment:
    """One file, which this process holds the lock of as long as it lives."""

    path: Path
    file: BinaryIO

    @classmethod
    def new(cls, folder: Path) -> "Segment":
        """A new file, which nobody takes up before it is locked; raises OSError."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"{uuid4().hex}{_SUFFIX}"
        partial = path.with_suffix(".partial")
        file = open(partial, "xb", buffering=0, opener=_for_owner)  # noqa: SIM115 (it stays open)
        fcntl.flock(file, fcntl.LOCK_EX)
        partial.rename(path)
        return cls(path, file)

    def delete(self) -> None:
        """Delete the file, whose rows are stored."""
        with suppress(OSError):
            self.path.unlink()
        self.file.close()


class RowJournal:
    """The rows of one process, by the id that each has in PostgreSQL."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._segment: Segment | None = None
        #: the rows of what has begun and not ended
        self._begun: dict[UUID, bytes] = {}
        #: false after a file could not be written, until another batch begins
        self._is_writable = True

    def begin(self, id_: UUID, row: bytes, instead_of: UUID | None = None) -> None:
        """Write the row of what is about to begin, as it is stored if this process is killed.

        In the same write it can replace another one: a process that is killed has left one of the two.
        """
        lines = _line(_BEGUN, id_, row)
        if instead_of is not None and self._begun.pop(instead_of, None) is not None:
            lines += _line(_DROPPED, instead_of, b"")
        self._write(lines)
        self._begun[id_] = row

    def end(self, id_: UUID, row: bytes) -> None:
        """Write the row of what has ended."""
        self._begun.pop(id_, None)
        self._write(_line(_ENDED, id_, row))

    def drop(self, id_: UUID) -> None:
        """What has begun is told by another row."""
        if self._begun.pop(id_, None) is not None:
            self._write(_line(_DROPPED, id_, b""))

    def cut(self) -> list[Segment]:
        """The files of the rows until now, to be deleted when those that have ended are stored."""
        former, self._segment, self._is_writable = self._segment, None, True
        if former is None:
            return []
        if self._begun:
            self._write(b"".join(_line(_BEGUN, id_, row) for id_, row in self._begun.items()))
        return [former]

    def close(self) -> None:
        """Leave the rows to other processes."""
        if self._segment is not None:
            self._segment.file.close()
            self._segment = None

    def _write(self, lines: bytes) -> None:
        if not self._is_writable:
            return
        try:
            if self._segment is None:
                self._segment = Segment.new(self._folder)
            if self._segment.file.write(lines) < len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # a full disk takes the beginning of a line
        except OSError:
            self._is_writable = False
            log.exception("rows cannot be written to %s: they are lost if this process is killed", self._folder)


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _line(kind: bytes, id_: UUID, row: bytes) -> bytes:
    return b"%b%b%b\n" % (kind, id_.hex.encode(), row)


@dataclass(frozen=True, slots=True)
class LeftRows:
    """The rows that killed processes have left, and their files."""

    rows: list[msgspec.Raw]
    paths: list[Path]

    def delete(self) -> None:
        """Delete the files, whose rows are stored."""
        for path in self.paths:
            path.unlink(missing_ok=True)


@contextmanager
def left_rows(folder: Path) -> Iterator[LeftRows | None]:
    """What killed processes have left; None while another process takes it up, or if there is nothing.

    All files are read together, because the end of what one file begins may be in another.
    """
    paths = list(folder.glob(f"*{_SUFFIX}"))
    if not paths:
        yield None
        return
    with (folder / "lock").open("ab") as lock:
        if not _is_locked(lock):
            yield None
            return
        begun, ended, dropped, read = dict[bytes, bytes](), dict[bytes, bytes](), set[bytes](), list[Path]()
        for path in paths:
            with suppress(FileNotFoundError), path.open("rb") as file:
                if not _is_locked(file):
                    continue  # its process lives
                read.append(path)
                _read(file, begun, ended, dropped)
        rows = {**{id_: row for id_, row in begun.items() if id_ not in dropped}, **ended}
        yield LeftRows([msgspec.Raw(row) for row in rows.values() if _is_row(row)], read)


def _read(file: BinaryIO, begun: dict[bytes, bytes], ended: dict[bytes, bytes], dropped: set[bytes]) -> None:
    """Add the lines of a file, by their ids."""
    for line in file.read().split(b"\n")[:-1]:  # an incomplete line has no end
        kind, id_, row = line[:1], line[1 : 1 + _ID], line[1 + _ID :]
        if kind == _BEGUN:
            begun[id_] = row
        elif kind == _ENDED:
            ended[id_] = row
        else:
            dropped.add(id_)


def _is_row(row: bytes) -> bool:
    """Whether it is JSON. A row that is not, after a lost machine or in a damaged file, would cost all others."""
    try:
        msgspec.json.decode(row)
    except (ValueError, RecursionError):
        log.error("a row of a killed process is lost: its file is damaged")
        return False
    return True


def _is_locked(file: BinaryIO) -> bool:
    """Lock the file until it is closed; false if another process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
