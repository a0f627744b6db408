"""Jobs in the console: followed live, understood when they failed, canceled and run again."""

import json
from typing import Any

import msgspec
from aiohttp import web

from gateway.contract.jobs import JobStatus
from gateway.errors import GatewayError
from gateway.http.api.jobs import job_view
from gateway.http.bodies import path_id
from gateway.http.console.page import console_page, see_other
from gateway.http.console.schema_form import table_of
from gateway.http.console.session import read_console_form
from gateway.http.keys import CALLER, LINK_BASE, REQUEST_ID, SERVICES
from gateway.http.responses import cursor_of, read_time_cursor
from gateway.jobs import results
from gateway.jobs.model import JobFilter, JobSummary
from gateway.jobs.tasks import is_retryable

_PAGE = "/console/jobs"
#: jobs on a page, and records of a result that are shown
_LIMIT, _RECORDS = 50, 50


async def list_jobs(request: web.Request) -> web.Response:
    """GET /console/jobs."""
    status = request.query.get("status", "")
    job_filter = JobFilter([status] if status in set(JobStatus) else None)
    before = read_time_cursor(request.query.get("cursor"))
    jobs = await request.app[SERVICES].jobs.find(request[CALLER], job_filter, before, _LIMIT + 1)
    page = jobs[:_LIMIT]
    return console_page(
        request,
        "jobs.html",
        active="jobs",
        jobs=[job_view(request, job) for job in page],
        statuses=[each.value for each in JobStatus],
        status_filter=status,
        cursor=cursor_of((page[-1].created_at, page[-1].id)) if len(jobs) > len(page) else None,
    )


async def show_job(request: web.Request) -> web.Response:
    """GET /console/jobs/{job_id}: the whole page, or its changing part for a page that follows."""
    job = await _job(request)
    template = "job_part.html" if "HX-Request" in request.headers else "job.html"
    return console_page(request, template, active="jobs", **await _context(request, job))


async def cancel_job(request: web.Request) -> web.Response:
    """POST /console/jobs/{job_id}/cancel."""
    await read_console_form(request)
    job = await _job(request)
    await request.app[SERVICES].execution.cancel(request[CALLER], job)
    return see_other(f"{_PAGE}/{job.id}")


async def retry_job(request: web.Request) -> web.Response:
    """POST /console/jobs/{job_id}/retry: as a new job; what may have been done only when that is confirmed."""
    fields, job = await read_console_form(request), await _job(request)
    again = await request.app[SERVICES].execution.retry(
        request[CALLER], job, confirm=fields.get("confirm") == "yes", request_id=request[REQUEST_ID]
    )
    return see_other(f"{_PAGE}/{again.id}")


async def _job(request: web.Request) -> JobSummary:
    return await request.app[SERVICES].jobs.get(request[CALLER], path_id(request, "job_id"))


async def _context(request: web.Request, job: JobSummary) -> dict[str, Any]:
    columns, rows, more = await _result(request, job) if job.has_result else ([], [], False)
    return {
        "job": job_view(request, job),
        "is_job_done": job.is_done,
        "is_cancelable": not job.is_done and not job.cancel_requested,
        "is_retryable": is_retryable(job),
        "needs_confirmation": job.status is JobStatus.UNKNOWN,
        "error": json.dumps(job.error, indent=2, ensure_ascii=False) if job.error else None,
        "columns": columns,
        "rows": rows,
        "has_more_rows": more,
    }


async def _result(request: web.Request, job: JobSummary) -> tuple[list[str], list[list[str]], bool]:
    """The first records of a result as a table; a file has none."""
    try:
        result = await request.app[SERVICES].jobs.result(job, request.app[LINK_BASE])
    except GatewayError:
        return [], [], False
    records: list[Any] = []
    async for line in results.records(result.head, result.lines):
        records += [msgspec.json.decode(each) for each in line.splitlines() if each.strip()]
        if len(records) > _RECORDS:
            break
    if len(records) == 1 and isinstance(records[0], dict) and isinstance(records[0].get("results"), list):
        records = records[0]["results"]
    columns, rows = table_of(records[:_RECORDS])
    return columns, rows, len(records) > _RECORDS
