"""POST …/upload/{entity}: a file of the caller, streamed to the application."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from gateway.errors import BodyTooLarge, MalformedRequest
from gateway.http.bodies import path_id, read_query
from gateway.http.keys import CALLER, LIMITS, MAX_UPLOAD, REQUEST_ID, SERVICES
from gateway.http.responses import envelope
from gateway.operations.call import OperationCall
from gateway.upstream.upload import ACTION, SourceFile

#: seconds that a caller may send nothing
_IDLE = 60.0
_UNTYPED = "application/octet-stream"


class UploadQuery(BaseModel):
    """The other params of the entity's create action, such as `issueIdOrKey`; lists and objects are JSON."""

    model_config = ConfigDict(extra="allow", frozen=True)

    #: the query string that the OpenAPI document shows
    EXAMPLE: ClassVar[Mapping[str, Any]] = {"issueIdOrKey": "ACME-7", "filename": "report.pdf"}

    filename: str = Field(min_length=1, max_length=255, description="name of the file")


async def upload(request: web.Request) -> web.Response:
    """Sends a file to an application, by the entity's `create` action: the body is the file, its `Content-Type` the
    type of the file, and the query has the other params. Discovery shows which actions have a param in base64; the
    file takes its place. It is streamed and never in memory as a whole, up to `GATEWAY_MAX_UPLOAD_BYTES`.

    The answer is that of `execute`. If the response of the application is lost, the error says that the outcome is
    unknown. An upload is not repeated by the gateway and takes no `Idempotency-Key`.
    """
    size = request.content_length
    if size is None:
        raise MalformedRequest("an upload needs the header Content-Length: send the file with its size")
    largest = request.app[MAX_UPLOAD]
    if size > largest:
        raise BodyTooLarge(f"the file is larger than {largest} bytes; GATEWAY_MAX_UPLOAD_BYTES is the limit")
    if "Idempotency-Key" in request.headers:
        raise MalformedRequest(
            "an upload takes no Idempotency-Key; look up whether the file is there and send it again"
        )
    params = read_query(request, UploadQuery).model_dump()
    name = params.pop("filename")
    type_ = request.content_type if "Content-Type" in request.headers else _UNTYPED
    call = OperationCall(
        path_id(request, "connector_id"),
        request.match_info["entity"],
        ACTION,
        params,
        request_id=request[REQUEST_ID],
    )
    file = SourceFile(name, type_, size, _chunks(request))
    with request.app[LIMITS].one_download(request[CALLER].organization_id):
        done = await request.app[SERVICES].execution.upload(request[CALLER], call, file)
    return envelope(request, str(call.connector_id), done.answer, done.took_ms, dict(done.sunset_headers))


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    """The body as it comes; raises MalformedRequest where the caller stops sending."""
    while True:
        try:
            async with asyncio.timeout(_IDLE):
                chunk = await request.content.readany()
        except (TimeoutError, OSError, web.HTTPException) as error:
            raise MalformedRequest("the file did not come to its end; send it again") from error
        if not chunk:
            return
        yield chunk
