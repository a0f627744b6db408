"""POST …/connectors/{id}/execute: one operation, answered inline or as a job."""

import time
from typing import Any, ClassVar
from uuid import UUID

from aiohttp import web
from aiohttp.hdrs import CACHE_CONTROL
from msgspec.structs import replace
from pydantic import Field

from gateway.access.identity.model import id_text
from gateway.contract.answers import Answer, ExecutionView
from gateway.contract.exports import FileFormat
from gateway.contract.jobs import AcceptedJobView
from gateway.errors import NotCached
from gateway.kinds.actions import SEARCH_ACTION
from gateway.operations.call import Accepted, Done, OperationCall
from gateway.operations.response_cache import Freshness
from gateway.upstream.download import ACTION as DOWNLOAD
from gateway.upstream.field_selection import FieldSelection
from gateway.web.api.downloads import download
from gateway.web.api.jobs import Labels, Text, accepted_response, chained
from gateway.web.bodies import Body, CallHeaders, call_headers, envelope, path_id, read_body
from gateway.web.keys import AUDIT, CALLER, ENDS_WITH_CALLER, IS_REPEATABLE, LINK_BASE, REQUEST_ID, SERVICES
from gateway.web.route import (
    ACCEPTED_HEADERS,
    CALL_ERRORS,
    CONNECTOR,
    FILE_HEADERS,
    FILE_MEDIA,
    FILE_SENDS,
    RANGE_HEADERS,
    Route,
)

#: maximum paths in `select_fields` and in `exclude_fields`
MAX_FIELDS = 500


class OutputBody(Body):
    """A file of all records of a list or search."""

    file: FileFormat = Field(
        description="ndjson, or csv with `select_fields` as its columns; csv-bom for Excel", strict=False
    )


class ExecuteBody(Body):
    """One operation: entity, action and params."""

    EXAMPLES: ClassVar = {
        "list": {
            "entity": "tickets",
            "action": "list",
            "params": {"per_page": 2},
            "select_fields": ["id", "subject"],
        },
        "create": {
            "entity": "tickets",
            "action": "create",
            "params": {"ticket": {"subject": "The printer is on fire"}},
        },
        "search": {
            "entity": "tickets",
            "action": SEARCH_ACTION,
            "params": {"query": {"filter": {"eq": {"status": "open"}}, "sort": [{"updated_at": "desc"}]}, "limit": 10},
        },
        "export": {
            "entity": "tickets",
            "action": "list",
            "params": {"per_page": 100},
            "select_fields": ["id", "subject", "status"],
            "output": {"file": "csv"},
        },
        "download": {"entity": "attachments", "action": "download", "params": {"attachment_id": 2}},
    }

    entity: str = Field(max_length=100, description="the entity, such as tickets")
    action: str = Field(max_length=100, description="the action, such as list; `search` is short for api_search")
    params: dict[str, Any] | None = Field(None, description="the operation's params; discovery has their schema")
    select_fields: list[Text] | None = Field(None, max_length=MAX_FIELDS, description="dotted paths to keep")
    exclude_fields: list[Text] | None = Field(None, max_length=MAX_FIELDS, description="dotted paths to leave out")
    skip_truncation: bool | None = Field(None, description="false shortens long texts; by default they are complete")
    intent: Text | None = Field(None, description="the caller's reason, for the audit log")
    labels: Labels | None = Field(
        None, description="labels of the job, if the call becomes one: at most 50, of 4000 characters together"
    )
    output: OutputBody | None = Field(
        None, description="of a list or search: a job collects all pages into a file, which is its result"
    )
    callback_url: Text | None = Field(
        None,
        description="of a call that becomes a job: the client's callback URL that receives the job's final event",
    )
    dry_run: bool | None = Field(None, description="return the requests to the application without sending them")


async def execute(request: web.Request) -> web.StreamResponse | Answer:
    """Runs one operation of a connector: an `entity`, an `action` and its `params`. All params are checked before a
    request is sent; a 422 names every fault and has a valid call as `example`.

    `result` is the records of a list or search, or the record of a get, create or update. `next` is the params of
    the call for the next page, null on the last page; `incomplete` says why records are missing or may be missing
    and what to do, and null is then not the end. With `dry_run` nothing is sent, and `result` is the requests.

    With `Prefer: respond-async` the call becomes a job at once, with `Prefer: wait=N` after N seconds; bulk updates
    are always jobs. With `output` a job collects all pages of a list or search into a file, which is its result.
    `Idempotency-Key` makes a write safe to send again. `action: download` streams the file; `action:
    context_store_search` searches the synchronized copy (`SearchParams`). Reading needs the scope `read`, other
    operations `write`.
    """
    body, app = await read_body(request, ExecuteBody), request.app
    services = app[SERVICES]
    connector_id, headers = path_id(request, "connector_id"), call_headers(request)
    call = _call(request, connector_id, body, headers, app[LINK_BASE])
    if body.callback_url is not None:
        call = replace(call, callback=await services.events.webhooks.callback(request[CALLER], body.callback_url))
    if body.dry_run:
        request[AUDIT].what = None
        use_case = services.operations.copy_search if body.action == SEARCH_ACTION else services.operations.execution
        started = time.monotonic()
        requests = await use_case.dry_run(request[CALLER], call)
        took_ms = round((time.monotonic() - started) * 1000)
        execution = ExecutionView(id_text(connector_id), took_ms, request[REQUEST_ID])
        return Answer(result=requests, meta=None, execution=execution, dry_run=True)
    if body.output is not None:
        if call.freshness is not None and call.freshness.only_if_cached:
            raise NotCached("a file of all records is never cached; leave out only-if-cached to ask the application")
        exported = await services.operations.exports.start(request[CALLER], call)
        return _answered(request, call, exported, {**headers.preferences.applied})
    if body.action == SEARCH_ACTION:
        request[ENDS_WITH_CALLER] = True
        done = await services.operations.copy_search.search(request[CALLER], call)
        return envelope(request, id_text(call.connector_id), done.answer, done.took_ms)
    if body.action == DOWNLOAD and (call.token_hash is not None or not call.respond_async):
        return await download(request, call)
    outcome = await services.operations.execution.execute(request[CALLER], call)
    return _answered(request, call, outcome, {**headers.preferences.applied, **outcome.sunset_headers})


def _call(
    request: web.Request, connector_id: UUID, body: ExecuteBody, headers: CallHeaders, base_url: str
) -> OperationCall:
    cache_control = request.headers.getall(CACHE_CONTROL, ())
    return OperationCall(
        connector_id=connector_id,
        entity=body.entity,
        action=body.action,
        params=body.params or {},
        selection=FieldSelection(
            body.select_fields or None, body.exclude_fields or None, body.skip_truncation is not False
        ),
        intent=body.intent,
        labels=body.labels or {},
        file=None if body.output is None else body.output.file,
        idempotency_key=headers.idempotency_key,
        respond_async=headers.preferences.respond_async,
        wait=headers.preferences.wait,
        request_id=request[REQUEST_ID],
        base_url=base_url,
        freshness=Freshness.of(cache_control) if cache_control else None,
        token_hash=headers.token_hash,
    )


def _answered(
    request: web.Request, call: OperationCall, outcome: Done | Accepted, headers: dict[str, str]
) -> web.Response:
    if outcome.is_replayed:
        headers["Idempotency-Replayed"] = "true"
    if isinstance(outcome, Accepted):
        if call.token_hash is not None:
            return chained(outcome.job, 0)
        return accepted_response(request, outcome.job, headers)
    request[IS_REPEATABLE] = request[AUDIT].entry_kind == "event"
    if outcome.cache is not None:
        headers |= {"Age": str(int(outcome.age)), "Cache-Status": f"gateway; {outcome.cache}"}
    return envelope(request, id_text(call.connector_id), outcome.answer, outcome.took_ms, headers)


_SUNSET = ("Deprecation", "Sunset", "Link")

#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        CONNECTOR + "/execute",
        execute,
        "Run one operation",
        "Execute",
        body=ExecuteBody,
        response={200: Answer, 202: AcceptedJobView},
        answers={
            200: "The answer",
            202: "The job",
            206: "A range of a file",
            303: "Redirects to the result, for callers that send X-ADP-Agent-SDK",
            304: "The file has not changed",
        },
        media={200: FILE_MEDIA, 206: FILE_MEDIA},
        errors=CALL_ERRORS,
        reads=("Prefer", "Idempotency-Key", "Cache-Control", *RANGE_HEADERS, "X-ADP-Agent-SDK"),
        sends={
            200: ("Preference-Applied", "Idempotency-Replayed", "Age", "Cache-Status", *_SUNSET, *FILE_HEADERS),
            202: (*ACCEPTED_HEADERS, "Idempotency-Replayed", *_SUNSET),
            206: FILE_SENDS[206],
            303: ("Location",),
            304: FILE_HEADERS,
        },
        audit="execute",
        command="gateway call support-desk tickets list per_page=2 --select id,subject",
        python=(
            'answer = await gateway.execute("support-desk", "tickets", "list", {"per_page": 2})\n'
            "print(answer.result, answer.meta)"
        ),
        in_session=True,
    ),
)
