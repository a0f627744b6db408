"""A file of the disk to an application: resumed after a broken connection where the application allows it."""

import asyncio
from dataclasses import replace
from pathlib import Path

from gateway.client.session import ApiRequest, Session
from gateway.contract.answers import Answer
from gateway.contract.uploads import UploadView
from gateway.errors import GatewayError, NotResumable, Unavailable, UploadOffsetMismatch, UpstreamError

#: bytes up to which a file is sent in one request: to send it again costs no more than to resume it
_SMALL = 1 << 20
#: errors that leave the upload where it was
_INTERRUPTIONS = (Unavailable, UpstreamError, UploadOffsetMismatch)


async def send_file(session: Session, call: ApiRequest, file: Path) -> Answer:
    """The answer to an upload in one request, or in as many as it takes; raises GatewayError."""
    size = _size_of(file)
    if size > _SMALL:
        try:
            return await _resumed(session, call, file, size)
        except NotResumable:
            pass  # the application takes the file in one request
    return (await session.fetch(call)).into(Answer)


async def _resumed(session: Session, call: ApiRequest, file: Path, size: int) -> Answer:
    """Begin the upload without a byte, then send the file from the offset that the gateway answers."""
    headers = {**call.headers, "Upload-Complete": "?0", "Upload-Length": str(size)}
    begun = await session.fetch(replace(call, headers=headers, file=None))
    path, offset, breaks = begun.headers["Location"], 0, 0
    while True:
        rest = {"Content-Type": "application/partial-upload", "Upload-Offset": str(offset), "Upload-Complete": "?1"}
        try:
            return (await session.fetch(ApiRequest("PATCH", path, headers=rest, file=file, offset=offset))).into(Answer)
        except _INTERRUPTIONS as error:
            breaks += 1
            await _pause(session, error, breaks)
        stands = (await session.fetch(ApiRequest("GET", path))).into(UploadView)
        if stands.answer is not None:
            return stands.answer
        if stands.offset > offset:
            breaks = 0
        offset = stands.offset


def _size_of(file: Path) -> int:
    return file.stat().st_size


async def _pause(session: Session, error: GatewayError, breaks: int) -> None:
    """Wait before the upload is continued; raises the error after too many breaks without any progress."""
    policy = session.policy
    if breaks > policy.retries or not (error.retryable or isinstance(error, UploadOffsetMismatch)):
        raise error
    await asyncio.sleep(min(error.retry_after or policy.growing_pause(breaks), policy.longest_pause))
