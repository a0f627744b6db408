"""A job's result: a small head in its row, the records beside it a line each, put together again as they are read."""

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway import errors
from gateway.connectors.responses import Answer
from gateway.errors import GatewayError, JobCanceled, ResultExpired
from gateway.jobs.model import Job, JobStatus, url_of

#: records in one stored part
_PART = 1000
#: where the records of a plain list stand: they are the result itself
WHOLE = "$"


def head_of(answer: Answer) -> dict[str, Any]:
    """What the row keeps of an answer; the records of a list are kept apart."""
    if answer.collected is not None:
        return {"result": answer.decoded(), "collected": answer.collected, "meta": answer.meta}
    if _is_list(answer):
        return {"result": None, "collected": WHOLE, "meta": answer.meta, **_page(answer)}
    return {"result": answer.decoded(), "collected": None, "meta": answer.meta}


def _page(answer: Answer) -> dict[str, Any]:
    return {"next": answer.next} if answer.is_page else {}


def parts_of(answer: Answer) -> Iterator[str]:
    """The records that are not stored yet, in parts of lines."""
    if answer.collected is not None or not _is_list(answer):
        return
    records = answer.records
    for start in range(0, len(records), _PART):
        yield "".join(_line(record) for record in records[start : start + _PART])


def _is_list(answer: Answer) -> bool:
    return bytes(memoryview(answer.result)[:1]) == b"["


def _line(record: msgspec.Raw) -> str:
    """The record on one line, however the application laid it out."""
    text = bytes(record)
    return (msgspec.json.format(text, indent=-1) if b"\n" in text or b"\r" in text else text).decode() + "\n"


def message(answer: Answer) -> str | None:
    """What the result says of itself, for people."""
    if answer.collected is None:
        return None
    told: str | None = answer.decoded().get("message")
    return told


def require_result(job: Job) -> dict[str, Any]:
    """The head of a succeeded job's result; raises the error that the job ended with."""
    if job.status is not JobStatus.SUCCEEDED:
        raise error_of(job)
    if job.result is None or _is_expired(job):
        raise ResultExpired("the result has expired; run the operation again")
    return job.result


def error_of(job: Job) -> GatewayError:
    """What a job ended with that did not succeed."""
    if job.error is not None:
        return errors.restored(job.error)
    return JobCanceled(job.message or "the job was canceled")


def partial_result(job: Job) -> dict[str, Any] | None:
    """The head of what was done before a job ended otherwise than it should; None where nothing is there to read."""
    is_partial = job.is_done and job.status is not JobStatus.SUCCEEDED
    return job.result if is_partial and not _is_expired(job) else None


def _is_expired(job: Job) -> bool:
    return job.expires_at is not None and job.expires_at <= datetime.now(UTC)


def completed(head: Mapping[str, Any], job: Job, base_url: str) -> Mapping[str, Any]:
    """The head with what only the job knows: the record that it ends with is the job's own."""
    if head["collected"] in (None, WHOLE):
        return head
    status = {} if job.status is JobStatus.SUCCEEDED else {"status": job.status.value}
    return {**head, "result": {"id": str(job.id), "url": url_of(job, base_url), **head["result"], **status}}


def stored_parts(job: Job) -> int:
    """How many parts a succeeded job's result has; there may be more of an attempt that did not finish."""
    head = job.result or {}
    return int(head.get("parts", job.parts))


async def document(head: Mapping[str, Any], lines: AsyncIterator[str]) -> AsyncIterator[bytes]:
    """The result as JSON, in pieces, whatever its size."""
    collected = head["collected"]
    if collected is None:
        yield msgspec.json.encode(head["result"])
        return
    before, after = b"[", b"]"
    if collected != WHOLE:
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
    """The result as NDJSON, one record a line; a result that is no list is one line."""
    if head["collected"] is None:
        yield msgspec.json.encode(head["result"]) + b"\n"
        return
    async for part in lines:
        yield part.encode()
