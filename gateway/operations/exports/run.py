"""One run of an export: stores each page with a checkpoint, then writes all pages to one file."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import msgspec
from msgspec.structs import replace

from gateway.contract.exports import FileFormat
from gateway.errors import InternalError, UpstreamRejected, UpstreamTooLarge
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.paging import PageWalk
from gateway.foundation.aio.turns import in_thread, in_turn, mapped
from gateway.foundation.telemetry.metrics import EXPORT_RECORDS
from gateway.jobs.model import StoredJob
from gateway.jobs.results import line_of
from gateway.jobs.run_context import JobRunContext
from gateway.jobs.store import JobStore
from gateway.jobs.stored_files.store import StoredFiles
from gateway.operations.exports.formats import (
    CONTENT_TYPES,
    MAX_CHARACTERS,
    chunks_of,
    csv_header,
    csv_rows,
    members_of,
)
from gateway.operations.exports.model import ExportParams, ExportState
from gateway.operations.exports.pages import RecordPages
from gateway.operations.spending import Taken
from gateway.upstream.field_selection import FieldSelection, selected_records
from gateway.upstream.http_ranges.integrity import File
from gateway.upstream.responses import OperationResult

#: maximum columns of a CSV file without a selection; records may have any number of different fields
_MAX_COLUMNS = 2000
#: bytes of a record that is put on one line in a thread
_LONG = 256 << 10
#: time after which an export that was accepted ends
_LONGEST = timedelta(days=3)


@dataclass(frozen=True, kw_only=True)
class ExportRun:
    """Runs an export from where its last attempt stopped; only a page without a stored checkpoint is read again."""

    pages: RecordPages
    jobs: JobStore
    files: StoredFiles
    job: StoredJob
    params: ExportParams
    run_context: JobRunContext
    taken: Taken
    #: paths of members that the policies redact
    redact: Sequence[str]

    async def run(self) -> OperationResult:
        """The stored file as the job's result; raises GatewayError."""
        selection = FieldSelection(**self.job.selection).redacting(self.redact)
        begun = ExportState.of(self.run_context.state, self.params.params, selection.redact)
        state = await self._collect(begun, selection)
        file = File(200, self._headers(), None, self._chunks(state))
        progress = _Storing(self.run_context, state.records)
        stored = await self.files.save(self.job.organization_id, self.job.id, self.job.fence, file, progress)
        return OperationResult(result=msgspec.Raw(msgspec.json.encode(stored)), redacted=state.redact)

    async def _collect(self, state: ExportState, selection: FieldSelection) -> ExportState:
        """Store the remaining pages, each with the checkpoint of the next."""
        walk = PageWalk()
        while state.following is not None:
            if CLOCK.now() - self.job.created_at > _LONGEST:
                raise UpstreamTooLarge(f"the export has not ended in {_LONGEST.days} days; ask for less")
            records, following, incomplete, place = await self.pages.page(state.following, state.place)
            if following is None:
                incomplete = incomplete or walk.ended(records)
            lines = await mapped(_line, await selected_records(records, selection), _is_long)
            state = replace(
                state,
                following=following,
                place=place,
                incomplete=state.incomplete or incomplete,
                records=state.records + len(lines),
                size=state.size + sum(len(memoryview(line)) for line in lines),
                parts=state.parts + bool(lines),
                columns=await self._columns(lines, state.columns),
            )
            self.files.require_size(state.size)
            await self.run_context.checkpoint(state.document(), lines, state.parts if lines else None)
            await self.taken.returned_records(len(lines))
            EXPORT_RECORDS.add(self.params.file, by=len(lines))
            await self.run_context.progress(state.records, None, f"{state.records} records collected")
            if following is not None:
                walk.add(following, records, incomplete, may_repeat=place is not None)
        if state.incomplete is not None:
            raise UpstreamRejected(f"{state.incomplete}; the export has read {state.records} records")
        return state

    async def _columns(self, lines: Sequence[msgspec.Raw], known: Sequence[str]) -> Sequence[str]:
        if self.params.file is FileFormat.NDJSON or self.job.selection.get("select_fields"):
            return known
        columns = dict.fromkeys(known)

        def add(line: msgspec.Raw) -> None:
            columns.update(dict.fromkeys(members_of(line)))
            if len(columns) > _MAX_COLUMNS:
                raise UpstreamTooLarge(
                    f"the records have more than {_MAX_COLUMNS} fields; name the columns with select_fields"
                )

        await mapped(add, lines)
        return list(columns)

    def _headers(self) -> Mapping[str, str]:
        extension = self.params.file.extension
        name = f"{self.job.entity}.{extension}"
        return {
            "Content-Type": CONTENT_TYPES[extension],
            "Content-Disposition": f'attachment; filename="{name}"',
        }

    async def _chunks(self, state: ExportState) -> AsyncIterator[bytes]:
        """The bytes of the file; raises InternalError before the last byte if a record is missing."""
        is_csv = self.params.file is not FileFormat.NDJSON
        columns = self.job.selection.get("select_fields") or state.columns
        records = 0
        if is_csv:
            yield csv_header(columns, self.params.file).encode()
        async for lines in self.jobs.lines(self.job, state.parts):
            records += lines.count("\n")
            if not is_csv:
                yield lines.encode()
                continue
            for rows in chunks_of(lines, len(columns)):
                if len(rows) > MAX_CHARACTERS:
                    text = await in_thread(partial(csv_rows, columns=columns), rows)
                else:
                    text = await in_turn(partial(csv_rows, rows, columns))
                yield text.encode()
        if records != state.records:
            raise InternalError(f"the stored pages have {records} records of {state.records}")


@dataclass(frozen=True, slots=True)
class _Storing:
    """The progress while the file is written: the job counts records, and all of them are collected."""

    run_context: JobRunContext
    records: int

    async def progress(self, done: int, total: int | None, message: str) -> None:
        """Report that all records are collected."""
        await self.run_context.progress(self.records, self.records, f"{self.records} records; {message}")


def _line(record: msgspec.Raw) -> msgspec.Raw:
    """The record on one line."""
    return msgspec.Raw(line_of(record).rstrip("\n").encode())


def _is_long(record: msgspec.Raw) -> bool:
    return len(memoryview(record)) > _LONG
