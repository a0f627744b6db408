"""An export: its params and its progress."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.contract.exports import FileFormat
from gateway.foundation.numbered_pages import Place


class ExportParams(msgspec.Struct, frozen=True):
    """The params of an export's job."""

    file: FileFormat
    #: the params of the first page
    params: dict[str, Any] = {}


class ExportState(msgspec.Struct, frozen=True, kw_only=True):
    """The checkpoint of an export: pages up to here are stored as parts of the job's result."""

    #: the params of the next page; None after the last
    following: Mapping[str, Any] | None
    records: int = 0
    #: bytes of the records
    size: int = 0
    parts: int = 0
    #: columns of a CSV file, if no selection names them
    columns: Sequence[str] = ()
    #: why records of the list are or may be missing
    incomplete: str | None = None
    #: where the reading of a list continues whose pages overlap
    place: Place | None = None
    #: paths of members that every page leaves out
    redact: Sequence[str] = ()

    @classmethod
    def of(cls, state: Mapping[str, Any], first: Mapping[str, Any], redact: Sequence[str]) -> "ExportState":
        """The state of an earlier attempt, or the beginning; the next pages leave out `redact`."""
        if "export" not in state:
            return cls(following=first, redact=redact)
        found = msgspec.convert(state["export"], cls)
        return replace(found, redact=[path for path in found.redact if path in redact])

    def document(self) -> dict[str, Any]:
        """The state of the job, for `of`."""
        return {"export": msgspec.to_builtins(self)}
