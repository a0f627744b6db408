"""A job's result: a small head in the job's row, and the records in parts of JSON lines. Reading puts them together."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from gateway import errors
from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.errors import GatewayError, JobCanceled, ResultExpired, UpstreamInvalidResponse
from gateway.foundation import payloads
from gateway.foundation.aio.clock import CLOCK
from gateway.jobs.model import OPERATION_TASK, JobSummary, url_of
from gateway.upstream.field_selection import FieldSelection, selected_records, selector, withheld_words
from gateway.upstream.long_running.item_results import redacted_lines
from gateway.upstream.long_running.portions import ITEMS as RUN_ITEMS
from gateway.upstream.responses import NULL, ROOT, OperationResult
from gateway.upstream.withheld import without_text

#: maximum records of one stored part
_PART = 1000
#: maximum bytes of one stored part; a single larger record is one part
_PART_BYTES = 1 << 20
#: maximum bytes of a document in the head, and objects and arrays, so that it is not nested too deeply to be decoded
_MAX_IN_HEAD, _MAX_CONTAINERS = 64 << 10, 500
#: the value of `collected` for a document that is stored as a part
DOCUMENT = "."
_NO_PATHS: Mapping[int, Sequence[str]] = MappingProxyType({})


def head_of(answer: OperationResult) -> dict[str, Any]:
    """The members of an answer that the job's row stores; the records of a list are stored in another table."""
    redacted = {"redacted": [*answer.redacted]} if answer.redacted else {}
    return {**_head_of(answer), **redacted, **({} if answer.warning is None else {"warning": answer.warning})}


def _head_of(answer: OperationResult) -> dict[str, Any]:
    if answer.collected is not None:
        return {"result": answer.decoded(), "collected": answer.collected, "meta": answer.meta}
    if _is_list(answer):
        return {"result": None, "collected": ROOT, "meta": answer.meta, **_page(answer)}
    if _is_part(answer):
        return {"result": None, "collected": DOCUMENT, "meta": answer.meta}
    return {"result": answer.decoded(), "collected": None, "meta": answer.meta}


def _page(answer: OperationResult) -> dict[str, Any]:
    return {"next": answer.next, "incomplete": answer.incomplete} if answer.is_page else {}


def answer_of(head: Mapping[str, Any], result: msgspec.Raw) -> OperationResult:
    """The answer of a stored head and its result."""
    return OperationResult(
        result=result,
        meta=head["meta"],
        is_page="next" in head,
        next=head.get("next"),
        incomplete=head.get("incomplete"),
        redacted=head.get("redacted", ()),
        warning=head.get("warning"),
    )


def parts_of(answer: OperationResult) -> Iterator[str]:
    """The records that are not stored yet, in parts of JSON lines; a large document is one part."""
    if answer.collected is not None:
        return
    if not _is_list(answer):
        if _is_part(answer):
            yield line_of(answer.result)
        return
    lines, size = [], 0
    for record in answer.records:
        lines.append(line_of(record))
        size += len(lines[-1])
        if len(lines) == _PART or size >= _PART_BYTES:
            yield "".join(lines)
            lines, size = [], 0
    if lines:
        yield "".join(lines)


def _is_part(answer: OperationResult) -> bool:
    """Whether a document is too large for the head, or would change or could not be decoded there."""
    if len(memoryview(answer.result)) > _MAX_IN_HEAD:
        return True
    text = bytes(answer.result)
    return (
        text.count(b"[") + text.count(b"{") > _MAX_CONTAINERS
        or payloads.has_many_extreme_numbers(text)
        or not payloads.is_plain(text)
    )


def _is_list(answer: OperationResult) -> bool:
    return bytes(memoryview(answer.result)[:1]) == b"["


def line_of(record: msgspec.Raw) -> str:
    """The record on one line."""
    return payloads.on_one_line(record).decode() + "\n"


def message_of(head: Mapping[str, Any]) -> str | None:
    """The result's own message, for people."""
    if head["collected"] in (None, ROOT, DOCUMENT):
        return None
    text: str | None = head["result"].get("message")
    return text


def require_result(job: JobSummary, head: dict[str, Any] | None) -> dict[str, Any]:
    """The head of a succeeded job's result; raises the error that the job ended with."""
    if job.status is not JobStatus.SUCCEEDED:
        raise error_of(job)
    if head is None or _is_expired(job):
        raise ResultExpired("the result has expired; run the operation again")
    return head


def error_of(job: JobSummary) -> GatewayError:
    """The error of a job that did not succeed."""
    if job.error is not None:
        return errors.restored(job.error)
    return JobCanceled(job.message or "the job was canceled")


def partial_result(job: JobSummary, head: dict[str, Any] | None) -> dict[str, Any] | None:
    """The head of the partial result of a job that did not succeed; None if there is none or it has expired."""
    is_partial = job.is_done and job.status is not JobStatus.SUCCEEDED
    return head if is_partial and not _is_expired(job) else None


def _is_expired(job: JobSummary) -> bool:
    return job.expires_at is not None and job.expires_at <= CLOCK.now()


def completed(head: Mapping[str, Any], job: JobSummary, base_url: str) -> Mapping[str, Any]:
    """The head with the job's members, for a bulk update, whose result is the record of its job."""
    if head["collected"] in (None, ROOT, DOCUMENT) or job.task != OPERATION_TASK:
        return head
    status = {} if job.status is JobStatus.SUCCEEDED else {"status": job.status.value}
    return {**head, "result": {"id": str(job.id), "url": url_of(job, base_url), **head["result"], **status}}


def stored_parts(job: JobSummary, head: Mapping[str, Any]) -> int:
    """The number of parts of a succeeded job's result; an earlier attempt may have stored more."""
    return int(head.get("parts", job.parts))


def redacted(
    effect: Effect,
    head: Mapping[str, Any],
    lines: AsyncIterator[str],
    paths: Sequence[str],
    by_index: Mapping[int, Sequence[str]] = _NO_PATHS,
) -> tuple[Mapping[str, Any], AsyncIterator[str]]:
    """The result without the members at these paths, or at those of each operation of a batch by its index.

    A record of a write that cannot be read is withheld: null, with a `warning` in the head once the lines are read.
    Reading the lines raises UpstreamInvalidResponse for that of a read.
    """
    if by_index:
        return head, _redacted_items(lines, by_index)
    if not paths:
        return head, lines
    selection = FieldSelection(redact=paths)
    changed: dict[str, Any] = {**head, "redacted": sorted({*head.get("redacted", ()), *paths})}
    if head["collected"] is None:
        try:
            changed["result"] = selector(selection)(head["result"])
        except RecursionError:
            error = UpstreamInvalidResponse("the application's answer is nested too deeply")
            changed["result"] = _withheld(effect, error, changed)
    if head["collected"] == RUN_ITEMS:
        return changed, _redacted_run_items(lines, paths)
    return changed, _redacted_lines(effect, changed, lines, selection)


async def _redacted_lines(
    effect: Effect, head: dict[str, Any], lines: AsyncIterator[str], selection: FieldSelection
) -> AsyncIterator[str]:
    async for part in lines:
        stored = [msgspec.Raw(line.encode()) for line in part.rstrip("\n").split("\n")]
        try:
            records = await selected_records(stored, selection)
        except UpstreamInvalidResponse as error:
            records = [_withheld(effect, error, head)] * len(stored)
        yield "".join([line_of(record) for record in records])


def _withheld(effect: Effect, error: UpstreamInvalidResponse, head: dict[str, Any]) -> msgspec.Raw:
    """What stands in place of a record that cannot be read, whose warning is put in the head; raises it for a read."""
    if effect is Effect.READ:
        raise error
    words = withheld_words(error)
    if words not in (head.get("warning") or ""):
        head["warning"] = withheld_words(error, head.get("warning"))
    return NULL


async def _redacted_run_items(lines: AsyncIterator[str], paths: Sequence[str]) -> AsyncIterator[str]:
    """The lines of a bulk update, each with an item's record or error."""
    async for part in lines:
        items = [payloads.record(line.encode()) for line in part.rstrip("\n").split("\n")]
        for item in redacted_lines(items, paths):
            yield line_of(msgspec.Raw(msgspec.json.encode(item)))


async def _redacted_items(lines: AsyncIterator[str], by_index: Mapping[int, Sequence[str]]) -> AsyncIterator[str]:
    async for part in lines:
        items = []
        for line in part.rstrip("\n").split("\n"):
            item = payloads.members(line.encode())
            paths = by_index.get(int(bytes(item["index"])), ())
            if paths and "error" in item:
                failure = errors.restored(payloads.value(item["error"]))
                item["error"] = msgspec.Raw(msgspec.json.encode(errors.document(without_text(failure))))
            if paths and "result" in item:
                try:
                    [item["result"]] = await selected_records([item["result"]], FieldSelection(redact=paths))
                except UpstreamInvalidResponse as error:
                    earlier = payloads.value(item["warning"]) if "warning" in item else None
                    words = withheld_words(error, earlier)
                    item |= {"result": NULL, "warning": msgspec.Raw(msgspec.json.encode(words))}
                before = payloads.value(item["redacted"]) if "redacted" in item else []
                item["redacted"] = msgspec.Raw(msgspec.json.encode(sorted({*before, *paths})))
            items.append(line_of(msgspec.Raw(msgspec.json.encode(item))))
        yield "".join(items)


async def answer(head: Mapping[str, Any], lines: AsyncIterator[str]) -> OperationResult:
    """The answer that was stored as the result of a job."""
    chunks = [chunk async for chunk in document(head, lines)]
    return answer_of(head, msgspec.Raw(b"".join(chunks)))


async def document(head: Mapping[str, Any], lines: AsyncIterator[str]) -> AsyncIterator[bytes]:
    """The result as JSON, in chunks."""
    collected = head["collected"]
    if collected is None:
        yield msgspec.json.encode(head["result"])
        return
    if collected == DOCUMENT:
        async for part in lines:
            yield part.rstrip("\n").encode()
        return
    before, after = b"[", b"]"
    if collected != ROOT:
        others = {name: value for name, value in head["result"].items() if name != collected}
        before = msgspec.json.encode(others)[:-1] + b"," + msgspec.json.encode(collected) + b":["
        after = b"]}"
    yield before
    separator = b""
    async for part in lines:
        yield separator + part.rstrip("\n").replace("\n", ",").encode()
        separator = b","
    yield after


async def records(head: Mapping[str, Any], lines: AsyncIterator[str]) -> AsyncIterator[bytes]:
    """The result as NDJSON, one record a line; any other result is one line."""
    if head["collected"] is None:
        yield msgspec.json.encode(head["result"]) + b"\n"
        return
    async for part in lines:
        yield part.encode()
