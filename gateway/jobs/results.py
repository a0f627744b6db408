"""A job's result: a small head in its row, the records beside it a line each, put together again as they are read."""

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway import errors
from gateway.connectors.responses import Answer
from gateway.errors import InternalError, JobCanceled, ResultExpired
from gateway.jobs.model import Job, JobStatus

#: records in one stored part
_PART = 1000
#: where the records of a plain list stand: they are the result itself
WHOLE = "$"


def head_of(answer: Answer) -> dict[str, Any]:
    """What the row keeps of an answer; the records of a list are kept apart."""
    if answer.collected is not None:
        return {"result": answer.decoded(), "collected": answer.collected, "meta": answer.meta}
    if _is_list(answer):
        return {"result": None, "collected": WHOLE, "meta": answer.meta}
    return {"result": answer.decoded(), "collected": None, "meta": answer.meta}


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
    head = answer.decoded()
    failed = f", {head['failed']} failed" if head["failed"] else ""
    return f"{head['succeeded']} of {head['total']} tickets updated{failed}"


def require_result(job: Job) -> dict[str, Any]:
    """The head of a succeeded job's result; raises the error that the job ended with."""
    match job.status:
        case JobStatus.SUCCEEDED:
            if job.result is None or (job.expires_at is not None and job.expires_at <= datetime.now(UTC)):
                raise ResultExpired("the result has expired; run the operation again")
            return job.result
        case JobStatus.CANCELED:
            raise JobCanceled(job.message or "the job was canceled")
        case JobStatus.FAILED | JobStatus.UNKNOWN if job.error is not None:
            raise errors.restored(job.error)
        case _:
            raise InternalError


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
