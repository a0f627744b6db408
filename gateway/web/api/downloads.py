"""Files over HTTP: streamed from the application, whole or in ranges; as JSON chunks; or from storage."""

import time
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
from aiohttp import web
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from gateway.access.identity.model import Scope, id_text
from gateway.contract.policies import Surface
from gateway.errors import RangeNotSatisfiable
from gateway.jobs.file_links import PATH as FILE_PATH
from gateway.jobs.model import JobSummary
from gateway.jobs.stored_files.blobs import read_all
from gateway.jobs.stored_files.model import StoredFile
from gateway.operations.call import OperationCall
from gateway.upstream.download import ACTION
from gateway.upstream.http_ranges.json_chunks import ChunkRequest, chunk, empty_chunk, file_params, wants_chunk
from gateway.upstream.http_ranges.ranges import RangeRequest
from gateway.upstream.http_ranges.responses import stored_reply
from gateway.upstream.responses import OperationResult
from gateway.web.admission.load_shedding import LIMITS
from gateway.web.bodies import QueryString, envelope, path_id, read_query
from gateway.web.keys import CALLER, SERVICES
from gateway.web.route import CALL_ERRORS, CONNECTOR, FILE_MEDIA, FILE_SENDS, RANGE_HEADERS, Route
from gateway.web.streaming import caller_present, send


class FileQuery(BaseModel):
    """The params of the entity's download action, such as `attachment_id`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    #: the example for the OpenAPI document
    EXAMPLE: ClassVar[Mapping[str, Any]] = {"attachment_id": 2}

    range_header: str | None = Field(None, description="the Range header, for callers that cannot set it")


class LinkQuery(QueryString):
    """The query of a link to a stored file."""

    EXAMPLE: ClassVar = {"signature": "AAAB.bGluaw"}

    signature: str = Field(description="the signature of the file, the link's client and its expiry")


async def download(request: web.Request, call: OperationCall) -> web.StreamResponse:
    """The file of a download action. The application's status is checked before the first byte is sent, so that the
    response can still be an error.
    """
    if call.token_hash is not None or wants_chunk(call.params):
        return await _chunk(request, call)
    return await _stream(request, replace(call, params=file_params(call.params)))


async def get_file(request: web.Request) -> web.StreamResponse:
    """The file of the entity's download action; the query holds the action's params. `Range`, `If-Range` and
    `If-None-Match` follow RFC 9110, so that `curl -C -`, `wget -c` and `aria2c -x4` can resume and split the
    download. If the application's response ends early, the gateway closes the connection.
    """
    params = read_query(request, FileQuery).model_dump(exclude_none=True)
    call = OperationCall(
        connector_id=path_id(request, "connector_id"), entity=request.match_info["entity"], action=ACTION, params=params
    )
    return await _stream(request, call)


async def head_file(request: web.Request) -> web.StreamResponse:
    """The headers of GET for the whole file. The gateway does not read the file."""
    return await get_file(request)


async def linked_file(request: web.Request) -> web.StreamResponse:
    """The stored file of a signed link, with ranges. Agents get such links from tools; a link needs no token and
    expires after an hour, or earlier with the job's result, or with the session or grant in which it was made.
    """
    job_id, query = path_id(request, "job_id"), read_query(request, LinkQuery)
    async with request.app[SERVICES].jobs.file_links.open(job_id, query.signature) as file:
        request[CALLER] = file.caller
        await request.app[SERVICES].operations.reading.require(file.caller, file.job, Surface.HTTP)
        return await stored_file(request, file.job, file.document)


async def head_linked_file(request: web.Request) -> web.StreamResponse:
    """The headers of GET for the whole file."""
    return await linked_file(request)


async def stored_file(request: web.Request, job: JobSummary, document: Mapping[str, Any]) -> web.StreamResponse:
    """The file that a job stored, with ranges; without a Range header the range in the job's params."""
    file = StoredFile(**document)
    range_header = None if "Range" in request.headers else await _range_of(request, job)
    range_request = RangeRequest.of(request.headers, method=request.method, range_header=range_header)
    reply = stored_reply(range_request, file.size, file.headers)
    with request.app[LIMITS].one_download(request[CALLER].organization_id):
        async with (
            caller_present(request) as flow,
            request.app[SERVICES].jobs.files.open(job.organization_id, job.id, file) as blob,
        ):
            return await send(request, reply.status, reply.headers, read_all(blob, reply.body), flow)


async def _range_of(request: web.Request, job: JobSummary) -> str | None:
    return (await request.app[SERVICES].jobs.access.params(job)).get("range_header")


async def _stream(request: web.Request, call: OperationCall) -> web.StreamResponse:
    range_header = call.params.get("range_header")
    range_request = RangeRequest.of(
        request.headers, method=request.method, range_header=range_header if isinstance(range_header, str) else None
    )
    execution = request.app[SERVICES].operations.execution
    with request.app[LIMITS].one_download(request[CALLER].organization_id):
        async with caller_present(request) as flow, execution.download(request[CALLER], call, range_request) as file:
            return await send(request, file.status, file.headers, file, flow)


async def _chunk(request: web.Request, call: OperationCall) -> web.Response:
    """One chunk of the file, as JSON in the envelope of every operation; `Range` is the same as `range_header`."""
    started, stated = time.monotonic(), call.params.get("range_header")
    RangeRequest.of(request.headers, range_header=stated if isinstance(stated, str) else None)  # they must not differ
    given = {"range_header": request.headers["Range"]} if "Range" in request.headers else {}
    chunk_request = ChunkRequest.of({**call.params, **given})
    file_call = replace(call, params={**file_params(call.params), "range_header": chunk_request.range_header})
    range_request = RangeRequest.of({}, range_header=chunk_request.range_header)
    try:
        async with request.app[SERVICES].operations.execution.download(
            request[CALLER], file_call, range_request
        ) as file:
            document = await chunk(file, chunk_request)
    except RangeNotSatisfiable as error:
        if chunk_request.start or error.extra.get("size") != 0:
            raise
        document = empty_chunk(chunk_request)
    answer = OperationResult(result=msgspec.Raw(msgspec.json.encode(document)))
    took_ms = round((time.monotonic() - started) * 1000)
    return envelope(request, id_text(call.connector_id), answer, took_ms)


_FILE = {
    200: "The file",
    206: "The requested range",
    304: "The file has not changed",
    416: "The file has no such range",
}

#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        CONNECTOR + "/download/{entity}",
        get_file,
        "Get a file, or ranges of it",
        "Downloads",
        query=FileQuery,
        answers=_FILE,
        media={200: FILE_MEDIA, 206: FILE_MEDIA},
        errors=CALL_ERRORS,
        reads=RANGE_HEADERS,
        sends=FILE_SENDS,
        scope=Scope.READ,
        audit="download",
        command="gateway download support-desk attachments attachment_id=2",
        python=(
            'params = {"attachment_id": 2}\n'
            'file = await gateway.download("support-desk", "attachments", params, to="attachment.bin")\n'
            "print(file.size, file.sha256)"
        ),
        in_session=True,
    ),
    Route(
        "HEAD",
        CONNECTOR + "/download/{entity}",
        head_file,
        "Get the headers of a file",
        "Downloads",
        query=FileQuery,
        answers=_FILE,
        media={200: FILE_MEDIA, 206: FILE_MEDIA},
        errors=CALL_ERRORS,
        reads=RANGE_HEADERS,
        sends=FILE_SENDS,
        scope=Scope.READ,
        audit="download",
        in_session=True,
    ),
    Route(
        "GET",
        FILE_PATH,
        linked_file,
        "Get a stored file by its signed link",
        "Downloads",
        query=LinkQuery,
        answers=_FILE,
        media={200: FILE_MEDIA, 206: FILE_MEDIA},
        errors=(403, 404, 410),
        reads=RANGE_HEADERS,
        sends=FILE_SENDS,
        is_open=True,
        is_link=True,
    ),
    Route(
        "HEAD",
        FILE_PATH,
        head_linked_file,
        "Get the headers of a stored file by its signed link",
        "Downloads",
        query=LinkQuery,
        answers=_FILE,
        media={200: FILE_MEDIA, 206: FILE_MEDIA},
        errors=(403, 404, 410),
        reads=RANGE_HEADERS,
        sends=FILE_SENDS,
        is_open=True,
        is_link=True,
    ),
)
