"""Jobs: list, read, wait, cancel, retry, and read the result."""

from collections.abc import AsyncIterator, Mapping
from itertools import islice
from typing import Annotated, Any, ClassVar
from uuid import UUID

import msgspec
from aiohttp import web
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from gateway.access.identity.model import Caller, Scope
from gateway.access.identity.tokens import hashed
from gateway.contract.answers import Answer
from gateway.contract.approvals import JobApprovalView
from gateway.contract.cursors import read_time_cursor
from gateway.contract.jobs import AcceptedJobView, JobPage, JobStatus, JobView
from gateway.contract.members import as_of_member
from gateway.contract.policies import Surface
from gateway.contract.problems import JobErrorView
from gateway.errors import Unauthorized
from gateway.foundation.aio.turns import mapped
from gateway.jobs import results
from gateway.jobs.access import JobResult
from gateway.jobs.model import JobFilter, JobSummary, approval_url, url_of
from gateway.jobs.tasks import has_file
from gateway.upstream.http_ranges.headers import is_not_modified
from gateway.upstream.responses import NULL
from gateway.upstream.withheld import without_text
from gateway.web.api.downloads import stored_file
from gateway.web.bodies import (
    MAX_WAIT,
    NDJSON,
    Body,
    Moment,
    QueryString,
    accepts_lines,
    answer_of,
    is_sdk,
    json_response,
    path_id,
    preferences_of,
    read_body,
    read_query,
    split_at_commas,
    whole_number,
)
from gateway.web.errors import PROBLEM, problem, status_of
from gateway.web.keys import CALLER, LINK_BASE, REQUEST_ID, SERVICES
from gateway.web.route import ACCEPTED_HEADERS, CALL_ERRORS, FILE_HEADERS, FILE_MEDIA, FILE_SENDS, RANGE_HEADERS, Route
from gateway.web.server.authentication import by_token, token_of
from gateway.web.streaming import stream

#: seconds after which a caller should ask again
_RETRY_AFTER = 1
#: maximum redirects for the public SDK, which cannot follow a job
_HOPS = 20
#: seconds that the gateway waits before each redirect
_HOP_WAIT = 240
#: maximum seconds of all redirects, with the time between them
CHAIN_SECONDS = _HOPS * (_HOP_WAIT + 15)
_NO_HEADERS: Mapping[str, str] = {}
#: the beginning of an encoded answer without its result
_NULL_RESULT = b'{"status":"success","result":null'


Text = Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00]*$")]
#: maximum labels of a job, and maximum characters of them all with their names
_MAX_LABELS, _LABELS_LENGTH = 50, 4000


def _first_labels(labels: Any) -> Any:
    """One label more than are allowed: the validation of thousands would list a fault for each."""
    return dict(islice(labels.items(), _MAX_LABELS + 1)) if isinstance(labels, dict) else labels


def _short_labels(labels: dict[str, str]) -> dict[str, str]:
    """Refuse long labels, because every page of jobs and every event of a job's end has them."""
    if sum(len(name) + len(text) for name, text in labels.items()) > _LABELS_LENGTH:
        raise ValueError(f"the labels have more than {_LABELS_LENGTH} characters together")
    return labels


Labels = Annotated[
    dict[Text, Text], Field(max_length=_MAX_LABELS), BeforeValidator(_first_labels), AfterValidator(_short_labels)
]


class JobQuery(QueryString):
    """The filter and page of jobs."""

    EXAMPLE: ClassVar = {"limit": 20}

    status: Annotated[list[JobStatus] | None, BeforeValidator(split_at_commas)] = Field(
        None, max_length=50, description="only those with one of these statuses, separated by commas"
    )
    connector_id: UUID | None = Field(None, description="only those of this connector")
    workspace_name: Text | None = Field(None, description="only those of this workspace's connectors")
    entity: Text | None = Field(None, description="only those of this entity")
    created_after: Moment | None = Field(None, description="only those accepted after this time")
    created_before: Moment | None = Field(None, description="only those accepted before this time")
    limit: int = Field(100, ge=1, le=1000, description="maximum jobs of a page")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


class WaitQuery(QueryString):
    """The time to wait, and the number of redirects so far."""

    EXAMPLE: ClassVar = {"wait": 30}

    wait: int | None = Field(None, ge=0, le=MAX_WAIT, description="maximum seconds to wait")
    hop: int = Field(
        0, ge=0, le=_HOPS, description="for callers that only follow redirects: the number of redirects so far"
    )


class RetryBody(Body):
    """The confirmation that a write which may have happened is sent again."""

    EXAMPLES: ClassVar = {"unknown": {"confirm": True}}

    confirm: bool = Field(False, description="of an `unknown` job: send the write again though it may have happened")


#: members with the same name and value in a job and in its view
_SAME = tuple(name for name in JobView.__struct_fields__ if name in JobSummary.__struct_fields__)


def job_view(request: web.Request, job: JobSummary) -> JobView:
    """The job for the response."""
    url, error = url_of(job, request.app[LINK_BASE]), job.error or {}
    members = {name: getattr(job, name) for name in _SAME} | {
        "id": str(job.id),
        "url": url,
        "done": job.is_done,
        "connector_id": None if job.connector_id is None else str(job.connector_id),
        "action": job.action or job.task,
        "result_url": f"{url}/result" if job.has_result else None,
        "error": job.error and msgspec.convert(job.error, JobErrorView),
        "known": error.get("known"),
        "safe_to_retry": error.get("safe_to_retry"),
        "session_id": None if job.session is None else str(job.session.id),
        "approval": approval_view(job, request.app[LINK_BASE]),
    }
    return JobView(**members)


def approval_view(job: JobSummary, base_url: str) -> JobApprovalView | None:
    """The approval for which the job waits or waited."""
    if job.approval is None:
        return None
    url = approval_url(base_url, job.approval["id"])
    return msgspec.convert({**job.approval, "url": url}, JobApprovalView)


def accepted_response(request: web.Request, job: JobSummary, headers: Mapping[str, str] | None = None) -> web.Response:
    """The 202 for a job that has not ended, with its `Location`."""
    document = job_view(request, job)
    return json_response(
        AcceptedJobView("accepted", document, document),
        202,
        {"Location": f"/api/v1/jobs/{job.id}", "Retry-After": str(_RETRY_AFTER), **(headers or {})},
    )


def chained(job: JobSummary, hop: int) -> web.Response:
    """The next redirect to the job's result; its URL is relative, so that clients send their token with it."""
    return web.Response(
        status=303, headers={"Location": f"/api/v1/jobs/{job.id}/result?wait={_HOP_WAIT}&hop={hop + 1}"}
    )


async def by_token_or_chain(request: web.Request) -> Caller:
    """The caller, whose token may have expired while it followed redirects to a job's result.

    Such callers cannot get a new token between redirects. The expired one opens this result only, for at most
    CHAIN_SECONDS.
    """
    try:
        return await by_token(request)
    except Unauthorized:
        if not is_sdk(request) or request.method != "GET":
            raise
        services, token = request.app[SERVICES], token_of(request)
        found = await services.jobs.access.follower(path_id(request, "job_id"), token, CHAIN_SECONDS)
        # With no more rights than the token had, and none if its session may no longer act.
        client = None if found is None else await services.identity.lasting(hashed(token))
        if found is None or client is None:
            raise
    return client.caller(request.headers.get("X-Organization-Id") or str(found[1]))


def _wait_of(request: web.Request, query: WaitQuery) -> tuple[int, Mapping[str, str]]:
    """The seconds to wait, and the header that says so if `Prefer: wait` decides them; raises MalformedRequest."""
    preferred = preferences_of(request).wait
    if query.wait is not None or preferred is None:
        return query.wait or 0, _NO_HEADERS
    return preferred, {"Preference-Applied": f"wait={preferred}"}


def _known_version(if_none_match: str | None) -> int | None:
    """The newest version among the tags of `If-None-Match`, 0 if none is a version; None if every version is known."""
    if if_none_match is None or if_none_match.strip() == "*":
        return None
    versions = (whole_number(tag.strip().removeprefix("W/").strip('"')) for tag in if_none_match.split(","))
    return max((version for version in versions if version is not None), default=0)


async def list_jobs(request: web.Request) -> JobPage:
    """The organization's jobs, the newest first. `status` takes several values, separated by commas."""
    query, caller = read_query(request, JobQuery), request[CALLER]
    job_filter = JobFilter(
        statuses=query.status,
        connector_id=query.connector_id,
        workspace_name=query.workspace_name,
        entity=query.entity,
        created_after=query.created_after,
        created_before=query.created_before,
    )
    before = read_time_cursor(query.cursor)
    found = await request.app[SERVICES].jobs.access.page(caller, job_filter, before, query.limit)
    views = await mapped(lambda job: job_view(request, job), found.jobs)
    return JobPage(views, found.next_cursor, as_of_member(found.as_of))


async def get_job(request: web.Request) -> web.Response:
    """One job. With `Prefer: wait=N` or `?wait=N` the gateway answers as soon as the job changes, at the latest after N
    seconds; with `If-None-Match` as soon as its ETag differs.
    """
    query, caller, services = read_query(request, WaitQuery), request[CALLER], request.app[SERVICES]
    known, job_id = request.headers.get("If-None-Match"), path_id(request, "job_id")
    wait, applied = _wait_of(request, query)
    job = await services.jobs.access.changed(caller, job_id, _known_version(known), wait)
    view, etag = job_view(request, job), f'"{job.version}"'
    headers = {"ETag": etag, **applied}
    if not view.done:
        headers["Retry-After"] = str(_RETRY_AFTER)
    if known and is_not_modified(known, etag):
        return web.Response(status=304, headers=headers)
    return json_response(view, headers=headers)


async def cancel_job(request: web.Request) -> web.Response:
    """A queued job ends as `canceled`, a read is stopped, and a write that was sent is allowed to finish. 409
    `job_not_cancelable` if the job has ended, and for a deletion.
    """
    caller, services = request[CALLER], request.app[SERVICES]
    job = await services.jobs.access.get(caller, path_id(request, "job_id"))
    return json_response(job_view(request, await services.operations.job_control.cancel(caller, job)), 202)


async def retry_job(request: web.Request) -> web.Response:
    """Runs a failed or canceled job again, as a new job. An `unknown` job, whose write may have happened, needs
    `confirm: true`.
    """
    caller, services = request[CALLER], request.app[SERVICES]
    confirm = (await read_body(request, RetryBody)).confirm if request.can_read_body else False
    job = await services.jobs.access.get(caller, path_id(request, "job_id"))
    again = await services.operations.job_control.retry(
        caller, job, Surface.HTTP, confirm=confirm, request_id=request[REQUEST_ID]
    )
    return accepted_response(request, again)


async def job_result(request: web.Request) -> web.StreamResponse:
    """The answer or the error of the inline call; 202 with the job while it has not ended, 410 after the result has
    expired. `Accept: application/x-ndjson` gives one record per line. The result of a download is the file, with
    ranges. If the job ended early, the error's `result` has what was done before.
    """
    query, caller, services = read_query(request, WaitQuery), request[CALLER], request.app[SERVICES]
    wait, applied = _wait_of(request, query)
    job = await services.jobs.access.done(caller, path_id(request, "job_id"), wait)
    if not job.is_done:
        if is_sdk(request) and query.hop < _HOPS:
            return chained(job, query.hop)
        return accepted_response(request, job, applied)
    return await result_response(request, job, applied)


async def result_response(
    request: web.Request, job: JobSummary, headers: Mapping[str, str] = _NO_HEADERS
) -> web.StreamResponse:
    """The result of a job that has ended, as a stream; raises the error that it ended with, and DeniedByPolicy."""
    reading = request.app[SERVICES].operations.reading
    result = await reading.result(request[CALLER], job, request.app[LINK_BASE], Surface.HTTP)
    if result.is_partial:
        return await _partial(request, job, result)
    if has_file(job):
        return await stored_file(request, job, result.head["result"])
    as_lines = accepts_lines(request)
    chunks = results.records(result.head, result.lines) if as_lines else _document(request, job, result)
    content_type = NDJSON if as_lines else "application/json"
    return await stream(request, chunks, content_type, headers=headers)


async def head_job_result(request: web.Request) -> web.StreamResponse:
    """The headers of the result; for a stored file its size and ETag."""
    return await job_result(request)


async def _document(request: web.Request, job: JobSummary, result: JobResult) -> AsyncIterator[bytes]:
    """The envelope of an inline answer around the stored result."""
    yield _NULL_RESULT.removesuffix(b"null")
    async for chunk in results.document(result.head, result.lines):
        yield chunk
    took = (job.finished_at - job.started_at).total_seconds() if job.finished_at and job.started_at else 0.0
    answer = results.answer_of(result.head, NULL)
    connector_id = None if job.connector_id is None else str(job.connector_id)
    document = msgspec.json.encode(answer_of(request, connector_id, answer, round(took * 1000)))
    yield document.removeprefix(_NULL_RESULT)


async def _partial(request: web.Request, job: JobSummary, result: JobResult) -> web.StreamResponse:
    """The problem document of a job that ended early, with the stored part of the result as `result`."""
    error = results.error_of(job)
    error = without_text(error) if result.head.get("redacted") else error
    members = msgspec.json.encode(problem(error, request[REQUEST_ID]))[:-1]

    async def chunks() -> AsyncIterator[bytes]:
        yield members + b',"result":'
        async for chunk in results.document(result.head, result.lines):
            yield chunk
        yield b"}"

    return await stream(request, chunks(), PROBLEM, status_of(error))


#: headers of a result, which may be a file
_RESULT_HEADERS = ("Preference-Applied", *FILE_HEADERS)

#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/jobs",
        list_jobs,
        "List jobs, the newest first",
        "Jobs",
        query=JobQuery,
        response=JobPage,
        scope=Scope.READ,
        command="gateway jobs list",
        python='print(await gateway.jobs.list(status="running"))',
        in_session=True,
    ),
    Route(
        "GET",
        "/api/v1/jobs/{job_id}",
        get_job,
        "Get a job, or wait for it to change",
        "Jobs",
        query=WaitQuery,
        response=JobView,
        answers={200: "The job", 304: "It has not changed"},
        reads=("Prefer", "If-None-Match"),
        sends={200: ("ETag", "Retry-After", "Preference-Applied"), 304: ("ETag", "Retry-After", "Preference-Applied")},
        scope=Scope.READ,
        command="gateway jobs show $JOB",
        python="job = await gateway.jobs.get(job_id)\nprint(job.status)",
        in_session=True,
    ),
    Route(
        "GET",
        "/api/v1/jobs/{job_id}/result",
        job_result,
        "Get a job's result",
        "Jobs",
        authenticate=by_token_or_chain,
        query=WaitQuery,
        response={200: Answer, 202: AcceptedJobView},
        answers={
            200: "The answer of the inline call",
            202: "The job, which has not ended",
            206: "A range of the file that a download stored",
            303: "Redirects to the result, for callers that send X-ADP-Agent-SDK",
            304: "The stored file has not changed",
            416: "The stored file has no such range",
        },
        errors=CALL_ERRORS,
        media={200: ("application/x-ndjson", *FILE_MEDIA), 206: FILE_MEDIA},
        reads=("Prefer", *RANGE_HEADERS, "X-ADP-Agent-SDK"),
        sends={**FILE_SENDS, 200: _RESULT_HEADERS, 202: ACCEPTED_HEADERS, 303: ("Location",)},
        scope=Scope.READ,
        command="gateway jobs result $JOB",
        python="job = await gateway.jobs.get(job_id)\nprint((await job.result()).result)",
        in_session=True,
    ),
    Route(
        "HEAD",
        "/api/v1/jobs/{job_id}/result",
        head_job_result,
        "Get the headers of a job's result",
        "Jobs",
        query=WaitQuery,
        answers={
            200: "The result exists",
            202: "The job has not ended",
            206: "A range of the file",
            304: "It has not changed",
        },
        errors=CALL_ERRORS,
        media={200: FILE_MEDIA, 202: FILE_MEDIA, 206: FILE_MEDIA},
        reads=("Prefer", *RANGE_HEADERS),
        sends={**FILE_SENDS, 200: _RESULT_HEADERS, 202: ACCEPTED_HEADERS},
        scope=Scope.READ,
        in_session=True,
    ),
    Route(
        "POST",
        "/api/v1/jobs/{job_id}/cancel",
        cancel_job,
        "Cancel a job",
        "Jobs",
        response=JobView,
        answers={202: "The job"},
        scope=Scope.WRITE,
        audit="job.cancel",
        command="gateway jobs cancel $JOB",
        python="job = await gateway.jobs.get(job_id)\nawait job.cancel()",
        in_session=True,
    ),
    Route(
        "POST",
        "/api/v1/jobs/{job_id}/retry",
        retry_job,
        "Run a job again, as a new job",
        "Jobs",
        body=RetryBody,
        has_optional_body=True,
        response=AcceptedJobView,
        answers={202: "The new job"},
        sends={202: ACCEPTED_HEADERS},
        scope=Scope.WRITE,
        audit="job.retry",
        command="gateway jobs retry $JOB",
        python="job = await gateway.jobs.get(job_id)\nprint(await job.retry(confirm=True))",
        in_session=True,
    ),
)
