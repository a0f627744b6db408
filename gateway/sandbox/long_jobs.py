"""Long operations of an application, simulated from the spec: start, upload, close, status and results."""

import csv
import io
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import getitem
from typing import Any

from gateway.kinds.catalog import Operation
from gateway.kinds.long_running import RUN_ID, ItemResults, LongRunning, ResultRequest
from gateway.kinds.members import JsonPath
from gateway.kinds.placements import put
from gateway.sandbox.bodies import ROWS
from gateway.sandbox.calls import Call, Handler, Record, Refusal, Reply, nested
from gateway.sandbox.operations import Operations, meta_headers, wire_name
from gateway.sandbox.store import Row


@dataclass(slots=True, kw_only=True)
class LongJob:
    """One long operation that was started."""

    id: str
    operation: Operation
    call: Call
    items: Sequence[Any]
    started: float
    is_open: bool
    #: an entry for each item that was worked on
    entries: list[Record] = field(default_factory=list)
    outcome: Record | None = None

    @property
    def how(self) -> LongRunning:
        assert self.operation.action.long_running is not None
        return self.operation.action.long_running

    @property
    def is_done(self) -> bool:
        return self.outcome is not None


class LongJobs:
    """The long operations of one application; each takes `job_seconds`."""

    def __init__(self, application: Operations, job_seconds: float) -> None:
        self._application = application
        self._job_seconds = job_seconds
        self._jobs: dict[str, LongJob] = {}

    def reset(self) -> None:
        self._jobs.clear()

    def start(self, operations: Iterable[Operation], call: Call) -> Reply:
        """Start the operation of the call; raises Refusal for too many items or running operations."""
        operation = next((each for each in operations if _has_items(each, call)), None)
        if operation is None:
            raise Refusal(400, message="the request has no items for any of the operations")
        # The operation that callers name has the path of the record in its responses; its start does not.
        operation = self._application.kind.operation(operation.entity_id, operation.action_id)
        how = operation.action.long_running
        assert how is not None
        items = [] if how.upload is not None else _items(how, operation, call)
        self._admit(how, len(items))
        job = LongJob(
            id=uuid.uuid4().hex,
            operation=operation,
            call=call,
            items=items,
            started=call.now,
            is_open=how.close is not None,
        )
        if how.status is None:
            self._work_off(job, len(items), call.now)
        else:
            self._jobs[job.id] = job
        return Reply(self.document(job))

    def _admit(self, how: LongRunning, items: int) -> None:
        if how.split is not None and how.upload is None and not items:
            raise Refusal(400, message=f"{how.split.param} has no items")
        if how.split is not None and items > how.split.size:
            raise Refusal(400, message=f"too many items: {items} of at most {how.split.size}")
        running = sum(not job.is_done for job in self._jobs.values())
        full = self._application.kind.spec.failure.codes.get("upstream_queue_full")
        if full and how.split is not None and running >= how.split.concurrency:
            raise Refusal(429, full[0], f"{running} jobs are queued or running")

    def handlers(self) -> dict[str, Handler]:
        """The handlers of the requests after the start, by request line."""
        found: dict[str, Handler] = {}
        for operation in self._application.kind.operations.values():
            how = operation.action.long_running
            if how is None:
                continue
            if how.upload is not None:
                found[how.upload.request] = self._upload
            if how.close is not None:
                found[how.close.request] = self._close
            if how.status is not None:
                found[how.status.request] = self._status
            for request in how.results.requests:
                found[request.request] = partial(self._read, request)
        return found

    def find(self, run_id: str) -> LongJob | None:
        return self._jobs.get(run_id)

    def _job(self, call: Call) -> LongJob:
        job = self.find(call.params[RUN_ID])
        if job is None:
            raise Refusal(404, message=f"there is no run {call.params[RUN_ID]}")
        return job

    def _status(self, call: Call) -> Reply:
        return Reply(self.document(self._job(call)))

    def document(self, job: LongJob) -> Any:
        """The response to `status`: the state, and the results if the spec expects them there."""
        status, start, items = job.how.status, job.how.start, job.how.results.items
        document: Any = {}
        if job.outcome:
            document = nested(job.operation.action.record or (), dict(job.outcome))
        if start is not None and status is not None:
            put(document, start.id, job.id)
            put(document, status.path, _state(job))
            if status.progress is not None:
                put(document, status.progress, len(job.entries))
        if job.operation.action.records is not None and not job.how.results.requests and job.is_done:
            put(document, job.operation.action.records, self._application.long_records(job.operation, job.call))
        if items is not None and not job.how.results.requests and job.is_done:
            for path in items.path:
                put(document, path, [])
            for entry in job.entries:
                is_error = any(_has(entry, path) for path in items.error)
                reduce(getitem, items.path[-1] if is_error else items.path[0], document).append(entry)
        return document

    def _upload(self, call: Call) -> Reply:
        job = self._job(call)
        if not job.is_open or job.items:
            raise Refusal(400, message="the run has its data already")
        job.items = call.body.get(ROWS, [])
        return Reply(None, 201)

    def _close(self, call: Call) -> Reply:
        job = self._job(call)
        if not job.is_open:
            raise Refusal(400, message="the run is closed already")
        job.is_open, job.started = False, call.now
        return Reply(self.document(job))

    def _read(self, request: ResultRequest, call: Call) -> Reply:
        """A page of the results of an operation that has ended."""
        job = self._job(call)
        if not job.is_done:
            raise Refusal(400, message="the run has not ended")
        items = job.how.results.items
        records = (
            self._application.long_records(job.operation, job.call) if items is None else _entries_for(request, job)
        )
        rows = [Row(str(place), record) for place, record in enumerate(records)]
        page, meta = self._application.page_in_its_style(job.operation.follow_up(request), rows, call)
        shown, headers = [row.record for row in page.items], meta_headers(meta, call)
        if request.format == "csv":
            return Reply(_csv(shown, records), headers=headers, content_type="text/csv")
        document = nested(request.records, shown)
        for place, value in meta:
            if isinstance(document, dict) and not place[0].startswith("$"):
                put(document, place, value)
        return Reply(document, headers=headers)

    def advance(self, now: float) -> bool:
        """Process the items that are due at this time; returns whether records may have changed."""
        is_changed = False
        for job in self._jobs.values():
            if job.is_done or job.is_open:
                continue
            share = 1.0 if self._job_seconds <= 0 else min(1.0, (now - job.started) / self._job_seconds)
            is_changed = self._work_off(job, int(len(job.items) * share), now, is_over=share >= 1.0) or is_changed
        return is_changed

    def _work_off(self, job: LongJob, due: int, now: float, *, is_over: bool = True) -> bool:
        first = len(job.entries)
        for index in range(first, due):
            job.entries.append(self._entry(job, index, now))
        if is_over:
            job.outcome = {} if job.items else self._application.long_outcome(job.operation, job.call, now)
        return is_over or due > first

    def _entry(self, job: LongJob, index: int, now: float) -> Record:
        """Process one item, and return its entry in the format of the spec's `items`."""
        how, item = job.how.results.items or ItemResults(), job.items[index]
        try:
            row, error = self._application.work_on(job.operation, job.call, item, now), None
        except Refusal as refusal:
            row, error = None, refusal.message or "refused"
        entry: Record = {}
        if how.record == ():
            entry |= item if job.how.results.requests else row.record if row is not None else {}
        is_done = error is None
        if row is not None:
            put(entry, how.id[0], row.record[self._application.id_member])
        elif not isinstance(item, Mapping) or "id" in item:
            _put_at_last(entry, how.id, item["id"] if isinstance(item, Mapping) else item)
        if how.trace is not None and isinstance(item, Mapping):
            _put_at_last(entry, how.trace_path if not is_done else how.trace_path[:1], item.get(how.trace))
        if how.index is not None:
            put(entry, how.index, index)
        if how.success is not None and not job.how.results.requests:
            put(entry, how.success, is_done)
        if error is not None and how.error:
            put(entry, how.error[-1], error)
        return entry


def _put_at_last(entry: Record, paths: Sequence[JsonPath], value: Any) -> None:
    """Set a value at the last path. If there are several, the last is that of errors, which list several items."""
    put(entry, paths[-1], [value] if len(paths) > 1 else value)


def _has_items(operation: Operation, call: Call) -> bool:
    """Whether a call has the items of an operation; true for operations whose start has no items."""
    how = operation.action.long_running
    if how is None or how.split is None or how.upload is not None:
        return True
    wire = wire_name(operation, how.split.param)
    return wire in call.query or wire in call.body


def _items(how: LongRunning, operation: Operation, call: Call) -> list[Any]:
    if how.split is None:
        return []
    wire = wire_name(operation, how.split.param)
    value = call.body.get(wire, call.query.get(wire, ""))
    return list(value) if isinstance(value, list) else [part.strip() for part in value.split(",") if part.strip()]


def _state(job: LongJob) -> str | bool:
    status = job.how.status
    assert status is not None
    if job.is_open:
        return status.open[0]
    if job.is_done:
        return status.succeeded[0]
    return status.running[-1] if job.entries else status.running[0]


def _has(entry: Any, path: JsonPath) -> bool:
    for member in path:
        entry = entry.get(member) if isinstance(entry, Mapping) else None
    return bool(entry)


def _entries_for(request: ResultRequest, job: LongJob) -> list[Record]:
    """The entries that a request reads: the successful, the failed or all; none if an earlier request reads them."""
    items = job.how.results.items
    assert items is not None
    if items.success is None:
        return job.entries
    wanted = request.add_fields.get(items.success[-1], True)
    first = next(each for each in job.how.results.requests if each.add_fields.get(items.success[-1], True) == wanted)
    if request is not first:
        return []
    return [entry for entry in job.entries if any(_has(entry, path) for path in items.error) is not wanted]


def _csv(records: Sequence[Mapping[str, Any]], all_records: Sequence[Mapping[str, Any]]) -> str:
    """A page of records as CSV, with the columns of all records."""
    names = list(dict.fromkeys(name for record in all_records for name in record))
    written = io.StringIO(newline="")
    writer = csv.DictWriter(written, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return written.getvalue()
