"""Jobs in the console: list, live progress, errors, cancelling and running again."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from gateway.access.audit.log import EntryFilter
from gateway.access.identity.model import Scope, id_of
from gateway.contract.connectors import Connector
from gateway.contract.cursors import read_time_cursor
from gateway.contract.gateway_state import RequestSelection
from gateway.contract.jobs import JobStatus
from gateway.contract.policies import Surface
from gateway.errors import GatewayError, NotFound, UpstreamInvalidResponse
from gateway.foundation import payloads
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.telemetry.logs import without_secrets
from gateway.jobs import results
from gateway.jobs.access import JobResult
from gateway.jobs.model import JobFilter, JobStep, JobSummary, counted
from gateway.jobs.tasks import BATCH, has_file, is_safe_to_retry, retry_refusal
from gateway.web.api.jobs import job_view
from gateway.web.bodies import path_id, query_id
from gateway.web.console.page import SPANS, connectors_by_id, connectors_to_choose, console_page, see_other
from gateway.web.console.schema_form import table_of
from gateway.web.console.session import chosen_in, read_console_form, read_form_once
from gateway.web.keys import ACCESS, CALLER, LINK_BASE, REQUEST_ID, SERVICES

_PAGE = "/console/jobs"
#: maximum jobs of a page
_LIMIT = 25
#: maximum suggested workspaces
_WORKSPACES = 100
#: filters: members of the query
_FILTERS = ("status", "connector", "workspace", "entity", "period")
#: maximum records of a result on its page
_RECORDS = 50
#: maximum changes of state in a job's history
_STEPS = 100
#: maximum bytes of a batch's result that are searched for operations that did not succeed
_SCANNED = 32 << 20


async def list_jobs(request: web.Request) -> web.Response:
    """GET /console/jobs: the jobs that match the filters, with the number of jobs of each status."""
    services, caller = request.app[SERVICES], request[CALLER]
    chosen = {name: request.query.get(name, "").strip() for name in _FILTERS}
    job_filter = JobFilter(
        statuses=[chosen["status"]] if chosen["status"] in set(JobStatus) else None,
        connector_id=query_id(request, "connector"),
        workspace_name=chosen["workspace"] or None,
        entity=chosen["entity"] or None,
        created_after=CLOCK.now() - SPANS[chosen["period"]] if chosen["period"] in SPANS else None,
    )
    before = read_time_cursor(request.query.get("cursor"))
    found = await services.jobs.access.page(caller, job_filter, before, _LIMIT)
    cursor = found.next_cursor
    counts = await services.jobs.access.counts(caller, job_filter)
    may_write = Scope.WRITE in caller.client.scopes
    return console_page(
        request,
        "jobs.html",
        active="jobs",
        jobs=[(job_view(request, job), may_write and _may_retry(job), _took(job)) for job in found.jobs],
        names=await request.app[ACCESS].clients.names(caller, [str(job.client_id) for job in found.jobs]),
        clients={str(job.id): str(job.client_id) for job in found.jobs},
        choices=await connectors_to_choose(request, job_filter.connector_id),
        workspaces=[each.name for each in await services.connectors.access.workspaces(caller, limit=_WORKSPACES)],
        periods=list(SPANS),
        connectors=await connectors_by_id(request, (job.connector_id for job in found.jobs)),
        filters=_status_filters(chosen, counts),
        chosen=chosen,
        is_filtered=any(chosen.values()),
        older=cursor and urlencode({**{name: value for name, value in chosen.items() if value}, "cursor": cursor}),
    )


def _status_filters(chosen: Mapping[str, str], counts: Mapping[JobStatus, int]) -> list[tuple[str, str, str]]:
    """A link for each status, which keeps the other filters, and the number of its jobs."""
    others = {name: value for name, value in chosen.items() if name != "status" and value}
    return [
        ("all", f"?{urlencode(others)}", ""),
        *((each.value, f"?{urlencode({**others, 'status': each.value})}", counted(counts[each])) for each in JobStatus),
    ]


def _took(job: JobSummary) -> float | None:
    """The seconds from the first start to the end; None for a job that has not ended, or was never started."""
    return (job.finished_at - job.started_at).total_seconds() if job.finished_at and job.started_at else None


def _may_retry(job: JobSummary) -> bool:
    """Whether a job can be run again without a person's confirmation."""
    return retry_refusal(job) is None and is_safe_to_retry(job)


async def show_job(request: web.Request) -> web.Response:
    """GET /console/jobs/{job_id}: the page, or for htmx only the part that changes."""
    job = await _job(request)
    template = "job_part.html" if "HX-Request" in request.headers else "job.html"
    return console_page(request, template, active="jobs", **await _context(request, job))


async def cancel_job(request: web.Request) -> web.Response:
    """POST /console/jobs/{job_id}/cancel."""
    await read_console_form(request)
    job = await _job(request)
    await request.app[SERVICES].operations.job_control.cancel(request[CALLER], job)
    return see_other(f"{_PAGE}/{job.id}")


async def retry_job(request: web.Request) -> web.Response:
    """POST /console/jobs/{job_id}/retry: run it again as a new job; what may be done twice needs the confirmation."""
    fields, job = await read_form_once(request), await _job(request)
    is_confirmed = is_safe_to_retry(job) or fields.get("confirm") == "yes"
    again = await request.app[SERVICES].operations.job_control.retry(
        request[CALLER], job, Surface.CONSOLE, confirm=is_confirmed, request_id=request[REQUEST_ID]
    )
    return see_other(f"{_PAGE}/{again.id}")


async def retry_jobs(request: web.Request) -> web.Response:
    """POST /console/jobs/retry: run each chosen job again as a new one; an unknown one only if that does no harm."""
    fields, caller = await read_form_once(request), request[CALLER]
    services = request.app[SERVICES]
    for job_id in filter(None, map(id_of, chosen_in(fields, "job:"))):
        job = await services.jobs.access.get(caller, job_id)
        await services.operations.job_control.retry(
            caller, job, Surface.CONSOLE, confirm=is_safe_to_retry(job), request_id=request[REQUEST_ID]
        )
    return see_other(_PAGE)


async def _job(request: web.Request) -> JobSummary:
    return await request.app[SERVICES].jobs.access.get(request[CALLER], path_id(request, "job_id"))


async def _context(request: web.Request, job: JobSummary) -> dict[str, Any]:
    result = await _result(request, job)
    columns, rows, more = await _first_records(job, result)
    services, caller, organization_id = request.app[SERVICES], request[CALLER], job.organization_id
    selection = RequestSelection(job_id=job.id, person_id=caller.person_id)
    requests = await services.logs.requests.find(organization_id, selection, limit=_RECORDS)
    entries = (
        await services.logs.audit.find(
            organization_id, EntryFilter(request_id=job.request_id, workspaces=caller.client.workspaces), limit=5
        )
        if job.request_id and Scope.ADMIN in caller.client.scopes
        else []
    )
    return {
        "job": job_view(request, job),
        "is_partial": _is_partial(job, result),
        "connector": await _connector(request, job),
        "params": _shown_params(await services.jobs.access.params(job)),
        "steps": _with_deltas(job, await services.jobs.access.steps(job, _STEPS)),
        "who": (await request.app[ACCESS].clients.names(caller, [str(job.client_id)])).get(str(job.client_id)),
        "requests": requests.data,
        "entries": entries,
        "took": _took(job),
        "is_job_done": job.is_done,
        "is_cancelable": not job.is_done and not job.cancel_requested,
        "is_retryable": retry_refusal(job) is None,
        "needs_confirmation": not is_safe_to_retry(job),
        "find_by": ((job.error or {}).get("known") or {}).get("find_by"),
        "error": json.dumps(job.error, indent=2, ensure_ascii=False) if job.error else None,
        "result_title": "Operations that did not succeed" if job.task == BATCH.name else "Result",
        "columns": columns,
        "rows": rows,
        "has_more_rows": more,
    }


def _with_deltas(job: JobSummary, steps: Sequence[JobStep]) -> list[tuple[JobStep, float]]:
    """Each change of the state with the seconds since the one before; the first with those since it was accepted."""
    before = [job.created_at, *(step.at for step in steps)]
    return [(step, max(0.0, (step.at - at).total_seconds())) for step, at in zip(steps, before, strict=False)]


async def _connector(request: web.Request, job: JobSummary) -> Connector | None:
    """The job's connector; None for a deleted one."""
    services = request.app[SERVICES]
    with contextlib.suppress(NotFound):
        if job.connector_id is not None:
            return await services.connectors.change.get(request[CALLER], job.connector_id)
    return None


def _shown_params(params: Mapping[str, Any]) -> str:
    """The params as JSON, with likely credentials masked."""
    return without_secrets(json.dumps(params, indent=2, ensure_ascii=False)) if params else ""


class _BatchLine(msgspec.Struct):
    """A line of a batch's result, without the record."""

    index: int
    status: str
    id: str | None = None
    error: dict[str, Any] = msgspec.field(default_factory=dict)


def _batch_line(text: bytes) -> _BatchLine:
    """The line; its record is not read."""
    members = payloads.members_of(text, _BatchLine.__struct_fields__)
    return _BatchLine(**{name: payloads.value(each) for name, each in members.items()})


async def _not_succeeded(result: JobResult) -> tuple[list[str], list[list[str]], bool]:
    """The first operations of a batch that did not succeed: columns, rows, and whether there are more."""
    found: list[_BatchLine] = []
    counts, size = result.head["result"], 0
    number = counts["total"] - counts["succeeded"]
    async for part in results.records(result.head, result.lines):
        if len(found) >= min(number, _RECORDS) or size > _SCANNED:
            break
        size += len(part)
        found += [line for line in map(_batch_line, part.splitlines()) if line.status != "succeeded"]
    columns, rows = table_of(
        [
            {"index": line.index, "id": line.id, "status": line.status, "error": line.error.get("detail")}
            for line in found[:_RECORDS]
        ]
    )
    return columns, rows, number > _RECORDS or len(found) < number


async def _result(request: web.Request, job: JobSummary) -> JobResult | None:
    """The result of a job; None without one, or if it cannot be read."""
    with contextlib.suppress(GatewayError):
        if job.has_result:
            reading = request.app[SERVICES].operations.reading
            return await reading.result(request[CALLER], job, request.app[LINK_BASE], Surface.CONSOLE)
    return None


def _is_partial(job: JobSummary, result: JobResult | None) -> bool:
    """Whether a job succeeded, but some of its items failed."""
    document = None if result is None else result.head["result"]
    return job.status is JobStatus.SUCCEEDED and isinstance(document, dict) and bool(document.get("failed"))


async def _first_records(job: JobSummary, result: JobResult | None) -> tuple[list[str], list[list[str]], bool]:
    """The first records of a result: columns, rows, and whether there are more. A stored file has no records."""
    if result is None or has_file(job):
        return [], [], False
    if job.task == BATCH.name:
        return await _not_succeeded(result)
    records: list[Any] = []
    with contextlib.suppress(UpstreamInvalidResponse):  # the page shows the job also if a record cannot be read
        async for line in results.records(result.head, result.lines):
            records += [payloads.value(each) for each in line.splitlines() if each.strip()]
            if len(records) > _RECORDS:
                break
    if len(records) == 1 and isinstance(records[0], dict) and isinstance(records[0].get("results"), list):
        records = records[0]["results"]
    columns, rows = table_of(records[:_RECORDS])
    return columns, rows, len(records) > _RECORDS
