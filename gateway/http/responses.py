"""JSON answers and envelopes of calls, which several handlers share."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from gateway.contract.answers import Answer, ExecutionView, PageAnswer
from gateway.http.keys import REQUEST_ID
from gateway.http.pages.static_files import StaticFile
from gateway.upstream.http_ranges.headers import is_not_modified
from gateway.upstream.responses import OperationResult

#: bytes of a file from which on it is sent compressed
_LARGE = 100_000


def json_response(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(document), status=status, content_type="application/json", headers=headers
    )


def html_response(html: str, headers: Mapping[str, str], status: int = 200) -> web.Response:
    return web.Response(text=html, status=status, content_type="text/html", charset="utf-8", headers=headers)


async def file_response(request: web.Request, file: StaticFile, headers: Mapping[str, str]) -> web.Response:
    """A static file, compressed if the client accepts gzip; each coding has its own entity tag (RFC 9110 §8.8.3)."""
    is_compressed = len(file.content) > _LARGE and _takes_gzip(request.headers.get("Accept-Encoding", ""))
    tag = f'"{file.digest}{"-gzip" if is_compressed else ""}"'
    headers = {**headers, "ETag": tag, "Vary": "Accept-Encoding"}
    if is_not_modified(request.headers.get("If-None-Match"), tag):
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = file.content_type
    if is_compressed:
        compressed = await asyncio.to_thread(lambda: file.compressed)
        return web.Response(body=compressed, headers={**headers, "Content-Encoding": "gzip"})
    return web.Response(body=file.content, headers=headers)


def _takes_gzip(accepted: str) -> bool:
    """Whether gzip is among the codings of `Accept-Encoding` (RFC 9110 §12.5.3), and not refused by `q=0`."""
    codings = {coding.strip().lower(): weight.replace(" ", "") for coding, _, weight in _weighted(accepted)}
    return "gzip" in codings and codings["gzip"] not in ("q=0", "q=0.0", "q=0.00", "q=0.000")


def _weighted(accepted: str) -> list[tuple[str, str, str]]:
    return [part.partition(";") for part in accepted.split(",")]


def envelope(
    request: web.Request,
    connector_id: str,
    answer: OperationResult,
    took_ms: int,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """The answer of an inline call; the records' bytes are spliced in as the application sent them."""
    return json_response(answer_of(request, connector_id, answer, took_ms), headers=headers)


def answer_of(request: web.Request, connector_id: str | None, answer: OperationResult, took_ms: int) -> Answer:
    """The answer of an inline call; `next` is written, even as null, for lists and searches alone."""
    execution = ExecutionView(connector_id, took_ms, request[REQUEST_ID])
    if answer.is_page:
        return PageAnswer(
            result=answer.result,
            next=answer.next,
            incomplete=answer.incomplete,
            meta=answer.meta,
            execution=execution,
        )
    return Answer(result=answer.result, meta=answer.meta, execution=execution)
