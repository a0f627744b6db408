"""Formats answers, errors and jobs for a model. Pure."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec

from gateway.agents.mcp.results import Result, resource_link, structured
from gateway.agents.tools.addresses import read_hint, resource_uri
from gateway.contract.jobs import JobStatus
from gateway.contract.members import moment
from gateway.errors import GatewayError
from gateway.jobs.model import JobSummary, approval_url
from gateway.kinds.find.entries import OperationEntry
from gateway.kinds.find.signatures import signature_of
from gateway.upstream.responses import OperationResult

#: maximum bytes of a preview
_PREVIEW = 2000
#: number of records that a preview should have
_PREVIEW_RECORDS = 3
#: (depth, characters of a text) to which records are shortened, tried in this order
_SHORTENINGS = ((3, 200), (2, 100), (1, 40))
#: items of an array that a shortened record keeps
_ITEMS = 3
#: milliseconds after which a client may poll a task again
POLL_MS = 1000
_WORKING = frozenset({JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.WAITING})


def continuation(answer: OperationResult) -> dict[str, Any]:
    """`next`, the params of the next page, `incomplete`, the reason why records are or may be missing, `redacted`,
    the members that policies leave out, and `warning`.

    Empty on a last page that is proved to be the last, and for an operation without pages, if it has none of them.
    """
    members = {
        "next": None if answer.next is None else dict(answer.next),
        "incomplete": answer.incomplete,
        "redacted": list(answer.redacted) or None,
        "warning": answer.warning,
    }
    return {name: value for name, value in members.items() if value is not None}


def warning_of(answer: OperationResult) -> dict[str, Any]:
    """The member `warning` of a job's result; empty without one."""
    return {} if answer.warning is None else {"warning": answer.warning}


def largest_pages(entry: OperationEntry, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The params with the application's maximum page size; unchanged if they have a page size."""
    if entry.action is None:
        return params
    paging = entry.kind.operation(entry.entity_id, entry.action_id).paging
    size = paging.size if paging else None
    if size is None or size in params or "limit" in params or "maximum" not in entry.action.params.get(size, {}):
        return params
    return {**params, size: entry.action.params[size]["maximum"]}


def inline(answer: OperationResult, continued: Mapping[str, Any]) -> Result:
    """The result for an answer that is short enough for a conversation."""
    return structured({"result": answer.result, **continued})


def linked(
    result_id: str, name: str, answer: OperationResult, continued: Mapping[str, Any], *, selected: bool = False
) -> Result:
    """The result for a long answer: its first records, a link to all of it, and the call of `read` for the rest.

    With `selected`, the caller has chosen the members, and none is shortened.
    """
    decoded, size = answer.decoded(), len(memoryview(answer.result))
    is_list, uri = isinstance(decoded, list), resource_uri(result_id)
    shown = beginning(decoded) if selected else preview(decoded)
    about = "read it in parts: ?offset=&limit=" + (f" of its {len(decoded)} records" if is_list else " in bytes")
    document = {
        "preview": shown,
        **({"records": len(decoded)} if is_list else {}),
        "bytes": size,
        "resource": uri,
        "hint": _rest(result_id, decoded, shown),
        **continued,
    }
    return structured(document, resource_link(uri, name, about, "application/json", size))


def long_batch(job: JobSummary, answer: OperationResult) -> Result:
    """The outcome of a long batch: the counts, the operations that did not succeed, and a link to all results."""
    counts: dict[str, Any] = answer.decoded()
    results = counts.pop("results")
    others = [each for each in results if each["status"] != "succeeded"]
    uri, size = resource_uri(str(job.id)), len(memoryview(answer.result))
    document = {**job_document(job), "result": {**counts, "not_succeeded": preview(others)}, "resource": uri}
    link = resource_link(uri, "results", "the result of each operation", "application/json", size)
    return structured(document, link)


def _rest(result_id: str, document: Any, shown: Any) -> str:
    """The hint how to read the rest; after a preview with shortened members, how to read everything."""
    if isinstance(document, list) and shown == document[: len(shown)]:
        return read_hint("rest", result_id, offset=len(shown))
    return read_hint("whole", result_id, offset=0) + ", with fields for less"


def beginning(document: Any) -> Any:
    """The first records that fit into a preview, not shortened; None for a document that is not a list."""
    return _fitting(document) if isinstance(document, list) else None


def preview(document: Any) -> Any:
    """The beginning of a document, at most 2,000 bytes but at least one record, with long members shortened.

    Records are shortened only as much as is needed for a few of them to fit.
    """
    for depth, characters in _SHORTENINGS:
        if isinstance(document, list):
            shown: Any = _fitting([shortened(record, depth, characters) for record in document[:_PREVIEW]])
            is_enough = bool(shown) and len(shown) >= min(_PREVIEW_RECORDS, len(document))
            shown = shown or [shortened(record, depth, characters) for record in document[:1]]
        else:
            shown = shortened(document, depth, characters)
            is_enough = len(msgspec.json.encode(shown)) <= _PREVIEW
        if is_enough:
            break
    return shown


def _fitting(records: Sequence[Any]) -> list[Any]:
    """The first records whose total size is at most that of a preview."""
    sizes = accumulate(len(msgspec.json.encode(record)) for record in records)
    return [record for record, size in zip(records, sizes, strict=True) if size <= _PREVIEW]


def shortened(value: Any, depth: int, characters: int) -> Any:
    """The value with texts cut to `characters`, arrays to three items, and containers below `depth` replaced by …."""
    if isinstance(value, str):
        return value if len(value) <= characters else value[:characters] + "…"
    if isinstance(value, list):
        return [shortened(item, depth - 1, characters) for item in value[:_ITEMS]] if depth else "…"
    if isinstance(value, dict):
        members = value.items()
        return {name: shortened(member, depth - 1, characters) for name, member in members} if depth else "…"
    return value


def refused(error: GatewayError, entry: OperationEntry | None = None, **more: Any) -> Result:
    """The result for an error: all faults, and for an operation its signature and an example of a valid call."""
    document: dict[str, Any] = {
        "error": error.code,
        "message": error.detail,
        "retryable": error.retryable,
        **({"retry_after": error.retry_after} if error.retry_after is not None else {}),
        **({"faults": [fault.message for fault in error.faults]} if error.faults else {}),
        **({"upstream": _upstream(error)} if error.upstream else {}),
        **{name: value for name, value in error.extra.items() if name in ("outcome", "known", "connector_status")},
        **more,
    }
    if entry is not None:
        document["signature"] = signature_of(entry)
        document["example"] = {"operation": entry.name, "params": entry.example}
    return structured(document, is_error=True)


def _upstream(error: GatewayError) -> dict[str, Any]:
    assert error.upstream
    members = {"status": error.upstream.status, "code": error.upstream.code, "message": error.upstream.message}
    return {name: value for name, value in members.items() if value is not None}


def job_document(job: JobSummary) -> dict[str, Any]:
    """The members of a job that an agent needs."""
    members = {
        "job_id": str(job.id),
        "status": job.status.value,
        "done": job.is_done,
        "progress": job.progress,
        "total": job.total,
        "message": job.message,
        "operation": f"{job.kind}.{job.entity}.{job.action}" if job.entity else job.task,
    }
    return {name: value for name, value in members.items() if value is not None}


def approval_of(job: JobSummary, base_url: str) -> dict[str, Any]:
    """The approval for which a job waits or waited, with the page for a person; empty without one."""
    if job.approval is None:
        return {}
    approval = {**job.approval, "url": approval_url(base_url, job.approval["id"])}
    if not job.asks:
        return {"approval": approval}
    advice = "Give the link to a person who may approve; the job goes on by itself afterwards."
    return {"approval": approval, "advice": advice}


def unknown_outcome(job: JobSummary) -> Result:
    """The result for a write whose response was lost."""
    error = job.error or {}
    return structured(
        {
            **job_document(job),
            "known": error.get("known", {}),
            "safe_to_retry": bool(error.get("safe_to_retry", False)),
            "advice": "The write may have happened: its response was lost. Look the record up before you retry it.",
        }
    )


def task_document(job: JobSummary) -> dict[str, Any]:
    """A job as an MCP task, without the result."""
    status = "working" if job.status in _WORKING else "cancelled" if job.status is JobStatus.CANCELED else "completed"
    message = job.message or (f"{job.progress} of {job.total}" if job.total is not None else job.status.value)
    lifetime = None if job.expires_at is None else round((job.expires_at - job.created_at).total_seconds() * 1000)
    return {
        "taskId": str(job.id),
        "status": status,
        "statusMessage": message,
        "createdAt": moment(job.created_at),
        "lastUpdatedAt": moment(job.finished_at or job.started_at or job.created_at),
        "ttlMs": lifetime,
        "pollIntervalMs": POLL_MS,
    }
