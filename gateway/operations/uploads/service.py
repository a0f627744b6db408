"""The use case: begin an upload, read its offset, and continue it. The application stores the bytes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import msgspec
from msgspec.structs import replace

from gateway.access.audit.entry import Entry
from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.contract.policies import Surface
from gateway.contract.uploads import UploadView
from gateway.errors import (
    Conflict,
    MalformedRequest,
    NotResumable,
    RateLimited,
    Unavailable,
    UploadOffsetMismatch,
    UpstreamError,
)
from gateway.operations.accounting import Accounted, describe, recorded
from gateway.operations.call import OperationCall
from gateway.operations.permission import Permission
from gateway.operations.runs import OperationRuns
from gateway.operations.spending import Spending
from gateway.operations.uploads.store import Upload, UploadStore
from gateway.upstream.field_selection import FieldSelection, selected_of
from gateway.upstream.prepared import PreparedCall, prepare
from gateway.upstream.responses import OperationResult
from gateway.upstream.upload import ACTION, SourceFile, with_file
from gateway.upstream.upload_session import OffsetMoved, SessionUpload, completed, open_session
from gateway.upstream.withheld import withheld

#: the audit name of a request whose upload does not exist
_OPERATION = "upload"
#: errors after which an upload can be continued; neither the audit log nor the metrics count them
_RESUMABLE = (MalformedRequest, Conflict, RateLimited, UpstreamError, Unavailable, asyncio.CancelledError)


@dataclass(frozen=True, slots=True)
class UploadState:
    """The state of an upload."""

    upload: Upload
    #: bytes that the application has stored
    offset: int
    #: bytes of which each part but the last is a multiple
    multiple: int
    #: the application's answer to the whole file
    answer: OperationResult | None = None

    @property
    def view(self) -> UploadView:
        """The upload as callers see it, without the application's answer."""
        upload, is_complete = self.upload, self.answer is not None
        ids = str(upload.id), str(upload.connector_id)
        return UploadView(*ids, upload.entity, upload.size, self.offset, is_complete, upload.expires_at)


@dataclass(frozen=True, slots=True)
class _Resumed:
    """A stored upload with its connector and the session at the application."""

    upload: Upload
    connector: ResolvedConnector
    session: SessionUpload

    def state(self, found: int | OperationResult) -> UploadState:
        multiple = self.session.how.multiple
        if isinstance(found, int):
            return UploadState(self.upload, found, multiple)
        return UploadState(self.upload, self.upload.size, multiple, found)


@dataclass(frozen=True)
class Uploads:
    """Uploads of callers."""

    audit: Audit
    connectors: ConnectorResolver
    permission: Permission
    spending: Spending
    runs: OperationRuns
    store: UploadStore

    async def create(self, caller: Caller, call: OperationCall, file: SourceFile) -> UploadState:
        """Begin an upload of `file.size` bytes, of which none is sent yet.

        Raises InvalidParams as a call does, NotResumable for an application without upload sessions, and Conflict for a
        connector with too many open uploads. The audit log has the beginning as `accepted`, and the end.
        """
        with recorded(self.audit, caller, call) as entry:
            resolved = await self.connectors.get_for(caller, call.connector_id)
            operation = resolved.connector.kind.operation(call.entity, call.action)
            engine_call = prepare(operation, with_file(operation, call.params, file))
            describe(entry, resolved, engine_call)
            caller.require(Scope.WRITE)
            decision = await self.permission.require_call(caller, resolved.record, engine_call, call.surface)
            resolved.require_active()
            how = operation.action.upload_session
            if how is None:
                raise NotResumable(
                    f"{resolved.record.kind} takes the file of {operation} in one request only; "
                    "leave out Upload-Complete"
                )
            await self.store.require_room(caller.organization_id, call.connector_id)
            taken = await self.spending.take(caller, resolved.record, engine_call)
            async with taken.until_failed():
                with withheld(decision.redact):
                    session = await open_session(resolved.connector.session, engine_call, file)
            upload = await self.store.create(
                caller.organization_id,
                call.connector_id,
                call.entity,
                size=file.size,
                params=session.call.params,
                session_url=session.url,
                seconds=how.lifetime,
                session_id=_session_of(caller),
            )
            entry.outcome = "accepted"
        return UploadState(upload, 0, how.multiple)

    async def state(self, caller: Caller, connector_id: UUID, upload_id: UUID) -> UploadState:
        """The state of the upload, as the application reports it; raises NotFound, UploadExpired and UpstreamError."""
        resumed = await self._resume(caller, connector_id, upload_id)
        if resumed.upload.answer is not None:
            return resumed.state(await _stored_answer(resumed, resumed.upload.answer))
        with withheld(resumed.session.call.redact):
            found = await resumed.session.state()
        if isinstance(found, int):
            return resumed.state(found)
        with self.audit.record(_OPERATION, caller, connector_id=connector_id) as entry:
            return resumed.state(await self._finish(entry, resumed, partial(_same, found)))

    async def append(
        self, caller: Caller, connector_id: UUID, upload_id: UUID, offset: int, part: SourceFile, *, is_last: bool
    ) -> UploadState:
        """Send a part of the file that begins at `offset` to the application.

        Raises UploadOffsetMismatch if the upload is at another offset, MalformedRequest if the part does not fit,
        and Conflict if a later request continues the upload.
        """
        with self.audit.record(_OPERATION, caller, connector_id=connector_id) as entry:
            resumed = await self._resume(caller, connector_id, upload_id)
            entry.what = None
            if resumed.upload.answer is not None:
                return resumed.state(await _stored_answer(resumed, resumed.upload.answer))
            _ensure_fits(resumed, offset, part.size, is_last=is_last)
            send = partial(self._sent, resumed, offset, part)
            with withheld(resumed.session.call.redact):
                if offset + part.size < resumed.upload.size:
                    return resumed.state(await send())
                return resumed.state(await self._finish(entry, resumed, send))

    async def _sent(self, resumed: _Resumed, offset: int, part: SourceFile) -> int | OperationResult:
        found = await resumed.session.state()
        if isinstance(found, OperationResult):
            return found
        if found != offset:
            raise _mismatch(found, offset)
        fence = await self.store.take(resumed.upload)
        try:
            return await resumed.session.send(part, offset, partial(self.store.ensure_held, resumed.upload, fence))
        except OffsetMoved as moved:
            raise _mismatch(moved.offset, offset) from moved

    async def _finish(
        self, entry: Entry, resumed: _Resumed, send: Callable[[], Awaitable[int | OperationResult]]
    ) -> OperationResult:
        """Complete the upload: it is counted and recorded once, and its answer is stored."""
        call = resumed.session.call

        async def work() -> OperationResult:
            return completed(await send())

        entry.what, is_end = str(call.operation), True
        describe(entry, resumed.connector, call)
        with Accounted(resolved=resumed.connector, operation=call.operation) as accounted:
            try:
                answer = await self.runs.write(
                    resumed.connector,
                    call,
                    work,
                    entry,
                    call_id=resumed.upload.id,
                    is_final=lambda error: not isinstance(error, _RESUMABLE),
                )
                answer = await selected_of(call.effect, answer, FieldSelection(redact=call.redact))
                is_end = await self.store.complete(resumed.upload, bytes(answer.result))
            except _RESUMABLE:
                is_end = False
                raise
            finally:
                accounted.is_counted = is_end
                entry.what = entry.what if is_end else None
        return answer

    async def _resume(self, caller: Caller, connector_id: UUID, upload_id: UUID) -> _Resumed:
        resolved = await self.connectors.get_for(caller, connector_id)
        caller.require(Scope.WRITE)
        resolved.require_active()
        upload = await self.store.get(caller.organization_id, connector_id, upload_id, _session_of(caller))
        call = PreparedCall.of(resolved.connector.kind.operation(upload.entity, ACTION), upload.params)
        decision = await self.permission.require_call(caller, resolved.record, call, Surface.HTTP)
        call = replace(call, redact=decision.redact)
        session = SessionUpload(resolved.connector.session, call, upload.session_url, upload.size)
        return _Resumed(upload, resolved, session)


def _session_of(caller: Caller) -> UUID | None:
    return None if caller.session is None else caller.session.id


def _mismatch(stored: int, offset: int) -> UploadOffsetMismatch:
    return UploadOffsetMismatch(
        f"the upload continues at byte {stored}, not {offset}; send the rest of the file from there",
        extra={"expected_offset": stored},
    )


def _ensure_fits(resumed: _Resumed, offset: int, size: int, *, is_last: bool) -> None:
    """Raise MalformedRequest for a part that does not lie within the file, or that the application cannot take."""
    end, whole_size, multiple = offset + size, resumed.upload.size, resumed.session.how.multiple
    if end > whole_size or (is_last and end != whole_size):
        raise MalformedRequest(
            f"the part ends at byte {end} of a file of {whole_size}; send the rest of the file with Upload-Complete: ?1"
        )
    if end < whole_size and end % multiple:
        raise MalformedRequest(
            f"the part ends at byte {end}; end each part but the last at a multiple of {multiple} bytes"
        )


async def _same(answer: OperationResult) -> OperationResult:
    return answer


async def _stored_answer(resumed: _Resumed, answer: bytes) -> OperationResult:
    call = resumed.session.call
    stored = OperationResult(result=msgspec.Raw(answer))
    return await selected_of(call.effect, stored, FieldSelection(redact=call.redact))
