"""Uploads of files to applications: POST …/upload/{entity} in one request, or resumable after a broken connection.

Resumable uploads follow "Resumable Uploads for HTTP", draft-ietf-httpbis-resumable-upload.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any, ClassVar

from aiohttp import HttpVersion11, web
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from gateway.access.identity.model import Scope, id_text
from gateway.contract.answers import Answer
from gateway.contract.uploads import UploadView
from gateway.errors import BodyTooLarge, MalformedRequest
from gateway.foundation.aio.clock import steady
from gateway.operations.call import OperationCall
from gateway.upstream.responses import OperationResult
from gateway.upstream.upload import ACTION, SourceFile
from gateway.web.admission.load_shedding import LIMITS
from gateway.web.bodies import answer_of, envelope, json_response, path_id, read_query, whole_number
from gateway.web.keys import CALLER, MAX_UPLOAD, REQUEST_ID, SERVICES
from gateway.web.route import CALL_ERRORS, CONNECTOR, Route
from gateway.web.server.connection_guard import end_body_limit

#: bytes for which the gateway waits for a limited time, and then for as many again
_PART = 1 << 20
#: seconds between checks whether the caller may still send
_CHECK_INTERVAL = 0.5
_UNTYPED = "application/octet-stream"
#: the media type of a request that continues an upload
PARTIAL_UPLOAD = "application/partial-upload"
#: structured booleans (RFC 9651 §3.3.6)
_BOOLEANS = {"?1": True, "?0": False}


class UploadQuery(BaseModel):
    """The other params of the entity's create action, such as `issueIdOrKey`; lists and objects are JSON."""

    model_config = ConfigDict(extra="allow", frozen=True)

    #: the example for the OpenAPI document
    EXAMPLE: ClassVar[Mapping[str, Any]] = {"issueIdOrKey": "ACME-7", "filename": "report.pdf"}

    filename: str = Field(min_length=1, max_length=255, description="name of the file")


async def upload(request: web.Request) -> web.Response:
    """Sends a file to an application, by the entity's `create` action: the body is the file, its `Content-Type` the
    type of the file, and the query has the other params. Discovery shows which actions have a param in base64, which
    the file replaces. The file is streamed, up to `GATEWAY_MAX_UPLOAD_BYTES`.

    The response is that of `execute`. If the response of the application is lost, the error says that the outcome is
    unknown. The gateway does not repeat an upload and does not support `Idempotency-Key` for it.

    With `Upload-Complete` the upload can be resumed if the application has upload sessions, such as Google Drive; for
    others the error is `not_resumable`. Send `Upload-Complete: ?0`, `Upload-Length` and no body: the response is 201
    with the `Location` to which PATCH sends the file. With `Upload-Complete: ?1` the body is the whole file, and an
    interim response (104) has the `Location` before the file is read. This is draft-ietf-httpbis-resumable-upload.
    """
    length = request.content_length
    if length is None:
        raise MalformedRequest("an upload needs the header Content-Length: send the file with its size")
    size = length if "Upload-Complete" not in request.headers else _whole_size(request, length)
    largest = request.app[MAX_UPLOAD]
    if size > largest:
        raise BodyTooLarge(f"the file is larger than {largest} bytes; GATEWAY_MAX_UPLOAD_BYTES is the limit")
    if "Idempotency-Key" in request.headers:
        raise MalformedRequest(
            "uploads do not support Idempotency-Key; before you send a file again, check whether it was stored"
        )
    params = read_query(request, UploadQuery).model_dump()
    name = params.pop("filename")
    call = OperationCall(
        connector_id=path_id(request, "connector_id"),
        entity=request.match_info["entity"],
        action=ACTION,
        params=params,
        request_id=request[REQUEST_ID],
    )
    type_ = request.content_type if "Content-Type" in request.headers else _UNTYPED
    file = _file(request, name, type_, size)
    with request.app[LIMITS].one_download(request[CALLER].organization_id):
        if "Upload-Complete" in request.headers:
            return await _begun(request, call, file, length)
        done = await request.app[SERVICES].operations.execution.upload(request[CALLER], call, file)
    return envelope(request, id_text(call.connector_id), done.answer, done.took_ms, dict(done.sunset_headers))


async def get_upload(request: web.Request) -> web.Response:
    """The state of an upload, as the application reports it: `offset` (and `Upload-Offset`) is the number of bytes that
    it has stored. Once it is `complete`, `answer` is the response of `execute`, even if the response to the last
    request was lost.
    """
    state = await request.app[SERVICES].operations.uploads.state(request[CALLER], *_ids(request))
    headers = _headers(state.view, state.multiple, request.app[MAX_UPLOAD])
    return json_response(_answered(request, state.view, state.answer, 0), headers=headers)


async def head_upload(request: web.Request) -> web.Response:
    """The headers of GET: `Upload-Offset`, `Upload-Complete` and `Upload-Length`."""
    return await get_upload(request)


async def append(request: web.Request) -> web.Response:
    """Continues an upload: the body is the rest of the file from `Upload-Offset`, with `Upload-Complete: ?1`. The
    response is that of `execute`. A part of the rest, with `Upload-Complete: ?0`, must end at a multiple of
    `min-append-size` of `Upload-Limit`; the response is 204.

    If the connection breaks, get the upload and continue at its `Upload-Offset`. Of two concurrent requests the later
    one continues. For any other offset the error is `upload_offset_mismatch`.
    """
    length = request.content_length
    if length is None or request.content_type != PARTIAL_UPLOAD:
        raise MalformedRequest(f"a part of an upload needs Content-Length and Content-Type: {PARTIAL_UPLOAD}")
    offset, is_last = _number(request, "Upload-Offset"), _is_complete(request)
    part = _file(request, "", PARTIAL_UPLOAD, length)
    with request.app[LIMITS].one_download(request[CALLER].organization_id):
        return await _append(request, _ids(request), offset, part, is_last=is_last)


async def _begun(request: web.Request, call: OperationCall, file: SourceFile, length: int) -> web.Response:
    """Create an upload, and append the body of the same request."""
    state = await request.app[SERVICES].operations.uploads.create(request[CALLER], call, file)
    headers = {**_headers(state.view, state.multiple, request.app[MAX_UPLOAD]), "Location": _path(state.view)}
    is_last = _is_complete(request)
    if length == 0 and not is_last:
        return json_response(state.view, 201, headers)
    _send_interim(request, headers)
    part = _file(request, file.name, file.content_type, length)
    ids = call.connector_id, state.upload.id
    return await _append(request, ids, 0, part, is_last=is_last, status=201)


async def _append(
    request: web.Request, ids: tuple[Any, Any], offset: int, part: SourceFile, *, is_last: bool, status: int = 204
) -> web.Response:
    started = time.monotonic()
    state = await request.app[SERVICES].operations.uploads.append(request[CALLER], *ids, offset, part, is_last=is_last)
    headers = {**_headers(state.view, state.multiple, request.app[MAX_UPLOAD]), "Location": _path(state.view)}
    took_ms = round((time.monotonic() - started) * 1000)
    if state.answer is not None:
        return envelope(request, state.view.connector_id, state.answer, took_ms, headers)
    if status == 204:
        return web.Response(status=status, headers=headers)
    return json_response(state.view, status, headers)


def _answered(request: web.Request, view: UploadView, answer: OperationResult | None, took_ms: int) -> UploadView:
    """The upload with the answer of the operation, once it is complete."""
    if answer is None:
        return view
    return replace(view, answer=answer_of(request, view.connector_id, answer, took_ms))


def _headers(view: UploadView, multiple: int, largest: int) -> dict[str, str]:
    return {
        "Upload-Complete": "?1" if view.complete else "?0",
        "Upload-Offset": str(view.offset),
        "Upload-Length": str(view.size),
        "Upload-Limit": f"max-size={largest}, min-append-size={multiple}",
        "Cache-Control": "no-store",
    }


def _path(view: UploadView) -> str:
    return f"/api/v1/integrations/connectors/{view.connector_id}/uploads/{view.id}"


def _send_interim(request: web.Request, headers: Mapping[str, str]) -> None:
    """Send 104 (Upload Resumption Supported), so that the caller has the upload's URL before the file is read."""
    if request.transport is not None and request.version >= HttpVersion11:
        lines = "".join(f"{name}: {headers[name]}\r\n" for name in ("Location", "Upload-Limit"))
        request.transport.write(f"HTTP/1.1 104 Upload Resumption Supported\r\n{lines}\r\n".encode())


def _whole_size(request: web.Request, length: int) -> int:
    """The bytes of the whole file, from the headers of a request that creates an upload."""
    if not _is_complete(request):
        return _number(request, "Upload-Length")
    if "Upload-Length" in request.headers and _number(request, "Upload-Length") != length:
        raise MalformedRequest(
            "Upload-Length differs from Content-Length; with Upload-Complete: ?1 send the whole file"
        )
    return length


def _is_complete(request: web.Request) -> bool:
    text = request.headers.get("Upload-Complete", "").strip()
    if text not in _BOOLEANS:
        raise MalformedRequest("Upload-Complete must be ?1 if the body ends the file, else ?0")
    return _BOOLEANS[text]


def _number(request: web.Request, name: str) -> int:
    number = whole_number(request.headers.get(name, "").strip())
    if number is None:
        raise MalformedRequest(f"the request needs the header {name}: a number of bytes")
    return number


def _ids(request: web.Request) -> tuple[Any, Any]:
    return path_id(request, "connector_id"), path_id(request, "upload_id")


def _file(request: web.Request, name: str, content_type: str, size: int) -> SourceFile:
    """The file in the body, whose pieces are in the memory of the caller's organization."""
    memory = partial(request.app[LIMITS].one_piece, request[CALLER].organization_id)
    return SourceFile(name, content_type, size, _chunks(request), memory)


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    """The chunks of the body.

    Raises MalformedRequest if the caller sends too slowly, and Unauthorized when it may do less than when the upload
    began. The time that the application takes for what has arrived does not count.
    """
    most, clock = end_body_limit(request), asyncio.get_running_loop().time
    left, received, checked_at = most, 0, steady()
    while True:
        begun = clock()
        try:
            async with asyncio.timeout(left):
                chunk = await request.content.readany()
        except (TimeoutError, OSError, web.HTTPException) as error:
            raise MalformedRequest("the file was not received completely; send it again") from error
        if not chunk:
            return
        left, received = left - (clock() - begun), received + len(chunk)
        if received >= _PART:
            left, received = most, 0
        if steady() - checked_at > _CHECK_INTERVAL:
            checked_at = steady()
            await request.app[SERVICES].standing.require(request[CALLER].client)
        yield chunk


_UPLOAD = ("Upload-Complete", "Upload-Offset", "Upload-Length", "Upload-Limit", "Cache-Control")
_SUNSET = ("Deprecation", "Sunset", "Link")

#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        CONNECTOR + "/upload/{entity}",
        upload,
        "Upload a file to an application",
        "Execute",
        file_media="application/octet-stream",
        query=UploadQuery,
        response={200: Answer, 201: UploadView},
        answers={200: "The answer", 201: "The upload, to which PATCH sends the file"},
        errors=CALL_ERRORS,
        reads=("Upload-Complete", "Upload-Length"),
        sends={200: (*_SUNSET, "Location", *_UPLOAD), 201: ("Location", *_UPLOAD)},
        scope=Scope.WRITE,
        audit="upload",
        command="gateway upload jira issue_attachments report.pdf issueIdOrKey=ACME-7",
        python=(
            'answer = await gateway.upload("jira", "issue_attachments", "report.pdf", {"issueIdOrKey": "ACME-7"})\n'
            "print(answer.result)"
        ),
        in_session=True,
    ),
    Route(
        "GET",
        CONNECTOR + "/uploads/{upload_id}",
        get_upload,
        "Get the state of an upload",
        "Execute",
        response=UploadView,
        answers={200: "The upload"},
        errors=CALL_ERRORS,
        sends={200: _UPLOAD},
        scope=Scope.WRITE,
        in_session=True,
    ),
    Route(
        "HEAD",
        CONNECTOR + "/uploads/{upload_id}",
        head_upload,
        "Get the headers of the state of an upload",
        "Execute",
        answers={200: "The headers of the upload"},
        errors=CALL_ERRORS,
        sends={200: _UPLOAD},
        scope=Scope.WRITE,
        in_session=True,
    ),
    Route(
        "PATCH",
        CONNECTOR + "/uploads/{upload_id}",
        append,
        "Continue an upload",
        "Execute",
        file_media=PARTIAL_UPLOAD,
        response={200: Answer},
        answers={200: "The answer", 204: "The part is stored"},
        errors=CALL_ERRORS,
        reads=("Upload-Offset", "Upload-Complete"),
        sends={200: ("Location", *_UPLOAD), 204: ("Location", *_UPLOAD)},
        scope=Scope.WRITE,
        audit="upload",
        in_session=True,
    ),
)
