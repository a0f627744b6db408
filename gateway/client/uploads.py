"""Sends a file from the disk to an application; resumes after a broken connection if the application allows it."""

import asyncio
from dataclasses import replace
from pathlib import Path

from gateway.client.session import ApiRequest, Session
from gateway.contract.answers import Answer
from gateway.contract.uploads import UploadView
from gateway.errors import GatewayError, NotResumable, Unavailable, UploadOffsetMismatch, UpstreamError

#: files of at most this many bytes are sent in one request: sending them again costs no more than resuming
_SMALL = 1 << 20
#: errors after which the upload can continue
_INTERRUPTIONS = (Unavailable, UpstreamError, UploadOffsetMismatch)


async def send_file(session: Session, call: ApiRequest, file: Path) -> Answer:
    """Send a file in one request, or as a resumable upload; raises GatewayError."""
    size = _size_of(file)
    if size > _SMALL:
        try:
            return await _resume(session, call, file, size)
        except NotResumable:
            pass  # the application accepts a file only in one request
    return (await session.fetch(call)).into(Answer)


async def _resume(session: Session, call: ApiRequest, file: Path, size: int) -> Answer:
    """Begin the upload without content, then send the file; after a break, from the offset that the gateway has."""
    headers = {**call.headers, "Upload-Complete": "?0", "Upload-Length": str(size)}
    begun = await session.fetch(replace(call, headers=headers, file=None))
    path, offset, breaks = begun.headers["Location"], 0, 0
    while True:
        rest = {"Content-Type": "application/partial-upload", "Upload-Offset": str(offset), "Upload-Complete": "?1"}
        try:
            return (
                await session.fetch(ApiRequest(method="PATCH", path=path, headers=rest, file=file, offset=offset))
            ).into(Answer)
        except _INTERRUPTIONS as error:
            breaks += 1
            await _pause(session, error, breaks)
        state = (await session.fetch(ApiRequest(method="GET", path=path))).into(UploadView)
        if state.answer is not None:
            return state.answer
        if state.offset > offset:
            breaks = 0
        offset = state.offset


def _size_of(file: Path) -> int:
    return file.stat().st_size


async def _pause(session: Session, error: GatewayError, breaks: int) -> None:
    """Wait before the upload continues; raises the error after too many breaks without progress, or if it is final."""
    policy = session.policy
    if breaks > policy.retries or not (error.retryable or isinstance(error, UploadOffsetMismatch)):
        raise error
    await asyncio.sleep(min(error.retry_after or policy.growing_pause(breaks), policy.longest_pause))
