"""Runs operations for agents: inline, as tasks, or as jobs whose id is in the answer."""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from msgspec.structs import replace

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.results import Result, resource_link, structured
from gateway.agents.tools import answers
from gateway.agents.tools.addresses import read_hint, resource_uri
from gateway.agents.tools.backend import AgentBatch, AgentCall, Backend, ConnectorInfo, JobsBackend
from gateway.agents.tools.descriptions import DEFAULT_BYTES, MAX_WAIT
from gateway.agents.tools.write_results import Shape, whole
from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.contract.members import moment
from gateway.errors import InvalidParams, JobNotCancelable, ResultExpired, Unavailable, UpstreamInvalidResponse
from gateway.foundation.aio.retries import retry_until_available
from gateway.foundation.aio.turns import in_thread
from gateway.foundation.large_json import LARGE
from gateway.foundation.numbered_pages import Place
from gateway.jobs.model import JobSummary
from gateway.jobs.results import error_of
from gateway.jobs.tasks import BATCH, has_file
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.find.entries import OperationEntry
from gateway.upstream.field_selection import without_result
from gateway.upstream.pagination import part
from gateway.upstream.responses import OperationResult

T = TypeVar("T")

#: maximum pages that `all_pages` reads
_MAX_PAGES = 100
#: seconds after which `all_pages` begins no further page
_PAGES_SECONDS = 40.0


class Calls:
    """Runs operations and follows their jobs."""

    def __init__(self, backend: Backend, jobs: JobsBackend | None) -> None:
        self._backend = backend
        self._jobs = jobs

    async def run(
        self, context: Context, call: AgentCall, *, max_bytes: int = DEFAULT_BYTES, shape: Shape = whole
    ) -> Result:
        """The answer; of a job, a task if the client has tasks, else `described` after at most 50 seconds."""
        outcome = await self._start(context, call)
        if isinstance(outcome, OperationResult):
            try:
                answer = await _made(shape, outcome)
                return await self._fitted(context, call, answer, answers.continuation(answer), max_bytes)
            except UpstreamInvalidResponse as error:
                answer = without_result(call.entry.effect, outcome, error)
                return answers.inline(answer, answers.continuation(answer))
        return await self._followed(context, outcome, max_bytes, shape)

    async def batch(self, context: Context, batch: AgentBatch, shape: Shape) -> Result:
        """Run many operations as one job: a task if the client has tasks, else `described` after at most 50 seconds."""
        accepting = asyncio.ensure_future(self._hosted().batch(context.caller, batch))
        return await self._followed(context, await asyncio.shield(accepting), DEFAULT_BYTES, shape)

    async def _followed(self, context: Context, outcome: JobSummary, max_bytes: int, shape: Shape) -> Result:
        if context.message.has_tasks:
            return {"resultType": "task", **answers.task_document(outcome)}
        try:
            return await self.described(context, await self.follow(context, outcome, MAX_WAIT), max_bytes, shape)
        except asyncio.CancelledError:
            # The client does not know the job's id yet, so that only this call can cancel it.
            await self._cancel_quietly(context, outcome)
            raise

    async def _start(self, context: Context, call: AgentCall) -> OperationResult | JobSummary:
        """Start the operation. A write continues if its caller disconnects, because its request may have been sent."""
        running = asyncio.ensure_future(self._backend.execute(context.caller, call))
        if call.entry.effect is Effect.READ:
            return await running
        return await asyncio.shield(running)

    async def _fitted(
        self, context: Context, call: AgentCall, answer: OperationResult, continued: Mapping[str, Any], max_bytes: int
    ) -> Result:
        if len(memoryview(answer.result)) <= max_bytes:
            return answers.inline(answer, continued)
        if call.entry.action_id == SEARCH_ACTION:
            answer, continued = _records_of_search(answer)
        try:
            result_id = await self._backend.save(context.caller, call, answer)
        except Unavailable:
            if call.entry.effect is Effect.READ:
                raise
            return answers.inline(answer, continued)  # an error would mean that the write did not happen
        is_selected = bool(call.fields)
        return await _made(
            lambda long: answers.linked(result_id, call.entry.name, long, continued, selected=is_selected), answer
        )

    async def all_pages(self, context: Context, call: AgentCall, max_bytes: int) -> Result:
        """The records of all pages as one answer; if pages remain, `next` has the params of the next page.

        `incomplete` is the first reason why records are or may be missing.
        """
        records: list[msgspec.Raw] = []
        incomplete: dict[str, Any] = {}
        continued: dict[str, Any] = {"next": answers.largest_pages(call.entry, call.params)}
        place: Place | None = None
        began, pages = time.monotonic(), 0
        while "next" in continued:
            is_at_front = place is not None and place.phase == "front"
            if not is_at_front and (pages >= _MAX_PAGES or time.monotonic() - began >= _PAGES_SECONDS):
                break
            page_call = AgentCall(
                entry=call.entry, connector=call.connector, params=continued["next"], fields=call.fields
            )
            page = await self._backend.execute(context.caller, page_call)
            if isinstance(page, JobSummary):
                raise InvalidParams(f"reading a page takes long and continues as job {page.id}; read page by page")
            if call.entry.action is not None:
                operation = call.entry.kind.operation(call.entry.entity_id, call.entry.action_id)
                params, is_whole = continued["next"], not call.fields
                page, following, place = part(operation, params, page, place, is_whole=is_whole)
                page = replace(page, next=following)
            records += _records(page)
            continued, pages = answers.continuation(page), pages + 1
            incomplete = incomplete or {name: each for name, each in continued.items() if name == "incomplete"}
            await context.progress(pages, text=f"{len(records)} records read")
        all_records = OperationResult(result=msgspec.Raw(msgspec.json.encode(records)))
        return await self._fitted(context, call, all_records, {**continued, **incomplete}, max_bytes)

    # --- jobs ---

    async def follow(self, context: Context, job: JobSummary, seconds: float) -> JobSummary:
        """Report the job's progress until it has ended or asks a person, `seconds` have passed or the process stops."""
        deadline, reported = time.monotonic() + seconds, -1
        while not (job.is_done or job.asks or self.is_stopping) and (remaining := deadline - time.monotonic()) > 0:
            if job.progress > reported:
                await context.progress(job.progress, job.total, job.message)
                reported = job.progress
            job = await self.changed(context, job, remaining)
        return job

    async def changed(self, context: Context, job: JobSummary, seconds: float) -> JobSummary:
        """The job as soon as it has changed or ended, or its last known state after `seconds`.

        Raises no error while PostgreSQL is unavailable: an agent that does not get the job's id starts the work again.
        """
        changed = partial(self._hosted().changed, context.caller, job, seconds)
        try:
            return await retry_until_available(changed, timeout=seconds)
        except Unavailable:
            return job

    @property
    def is_stopping(self) -> bool:
        """Whether the process is stopping; calls then stop waiting for their jobs."""
        return self._hosted().is_stopping

    async def described(
        self, context: Context, job: JobSummary, max_bytes: int = DEFAULT_BYTES, shape: Shape = whole
    ) -> Result:
        """`outcome`; while PostgreSQL is unavailable, an error with the job's id and last known status."""
        try:
            return await self.outcome(context, job, max_bytes, shape)
        except Unavailable as error:
            return answers.refused(error, **answers.job_document(job))

    async def outcome(
        self, context: Context, job: JobSummary, max_bytes: int = DEFAULT_BYTES, shape: Shape = whole
    ) -> Result:
        """The result or the error of a job that has ended, else its status; raises Unavailable."""
        if job.status is JobStatus.UNKNOWN:
            return answers.unknown_outcome(job)
        if not job.is_done or job.status is JobStatus.CANCELED:
            return structured({**answers.job_document(job), **answers.approval_of(job, context.caller.base_url)})
        if job.status is JobStatus.FAILED:
            return answers.refused(error_of(job), **answers.job_document(job))
        try:
            if has_file(job):
                return await self._file(context, job)
            stored = await self._hosted().answer(context.caller, job)
        except ResultExpired as error:
            return answers.refused(error, **answers.job_document(job))
        try:
            return await _made(lambda answer: _of_job(job, shape(answer), max_bytes), stored)
        except UpstreamInvalidResponse as error:
            return _of_job(job, without_result(job.effect, stored, error), max_bytes)

    async def _file(self, context: Context, job: JobSummary) -> Result:
        part = await self._backend.part(context.caller, str(job.id), 0, 0)
        uri = resource_uri(str(job.id))
        about = "read it in ranges: ?offset=&limit= in bytes"
        link = resource_link(uri, f"file of {job.entity}", about, part.media_type, part.total)
        document = {"resource": uri, "bytes": part.total, "hint": read_hint("content", str(job.id), offset=0)}
        for_person = self._hosted().file_link(context.caller, job)
        if for_person is not None:
            document |= {"link_for_person": for_person.url, "link_expires_at": moment(for_person.expires_at)}
        return structured({**answers.job_document(job), **document}, link)

    async def cancel(self, context: Context, job: JobSummary) -> JobSummary:
        return await self._hosted().cancel(context.caller, job)

    async def retry(self, context: Context, job: JobSummary, *, confirm: bool) -> JobSummary:
        return await self._hosted().retry(context.caller, job, confirm=confirm)

    async def job(self, context: Context, job_id: str) -> JobSummary:
        """The job with that id; raises NotFound and InvalidParams."""
        try:
            return await self._hosted().get(context.caller, UUID(job_id))
        except ValueError as error:
            raise InvalidParams(f"{job_id!r} is not a job id; job ids are UUIDs") from error

    async def _cancel_quietly(self, context: Context, job: JobSummary) -> None:
        try:
            await self._hosted().cancel(context.caller, job)
        except JobNotCancelable:
            return

    def _hosted(self) -> JobsBackend:
        assert self._jobs is not None
        return self._jobs


async def _made(make: Callable[[OperationResult], T], answer: OperationResult) -> T:
    """What is made of an answer; that of a large one is made in a thread."""
    return await in_thread(make, answer) if len(memoryview(answer.result)) > LARGE else make(answer)


def _of_job(job: JobSummary, answer: OperationResult, max_bytes: int) -> Result:
    """The result of a job that has succeeded; raises UpstreamInvalidResponse for a long one that cannot be read."""
    if len(memoryview(answer.result)) <= max_bytes:
        return structured({**answers.job_document(job), "result": answer.result, **answers.warning_of(answer)})
    if job.task == BATCH.name:
        return answers.long_batch(job, answer)
    name = f"result of {job.entity}.{job.action}"
    return answers.linked(str(job.id), name, answer, answers.warning_of(answer))


def _records(answer: OperationResult) -> list[msgspec.Raw]:
    """The records of a page of a list or search."""
    if bytes(answer.result)[:1] == b"[":
        return answer.records
    return list(msgspec.json.decode(answer.result, type=_SearchPage).data)


class _SearchPage(msgspec.Struct):
    data: list[msgspec.Raw]
    meta: dict[str, Any]


def _records_of_search(answer: OperationResult) -> tuple[OperationResult, dict[str, Any]]:
    """The records of a search as a list, so that they are stored and read as records; its `meta`, and `redacted`."""
    page = msgspec.json.decode(answer.result, type=_SearchPage)
    records = OperationResult(result=msgspec.Raw(msgspec.json.encode(page.data)), redacted=answer.redacted)
    return records, {"meta": page.meta, **answers.continuation(records)}


def call_of(entry: OperationEntry, connector: ConnectorInfo, arguments: Mapping[str, Any]) -> AgentCall:
    """The call for the arguments of a tool."""
    return AgentCall(
        entry=entry,
        connector=connector,
        params=arguments.get("params") or {},
        fields=arguments.get("fields"),
        idempotency_key=arguments.get("idempotency_key"),
    )


def many_calls(arguments: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The operations in `each` or `steps`: their names and their other members; raises InvalidParams."""
    each, steps = arguments.get("each"), arguments.get("steps")
    if (each is None) == (steps is None) or "params" in arguments:
        raise InvalidParams("send one of params, each and steps")
    if steps is not None:
        if "operation" in arguments:
            raise InvalidParams("with steps, operation is a member of each step")
        if not all(isinstance(step, Mapping) and isinstance(step.get("operation"), str) for step in steps):
            raise InvalidParams("each of steps is {id, operation, params}")
        named = [dict(step) for step in steps]
        calls = [(str(step.pop("operation")), step) for step in named]
    else:
        if "operation" not in arguments:
            raise InvalidParams("operation is missing; with each, all calls run this operation")
        calls = [(arguments["operation"], {"params": params}) for params in each or ()]
    if not calls:
        raise InvalidParams(f"{'each' if steps is None else 'steps'} is empty; send at least one")
    return calls
