"""Start a batch in the console, from a file or from typed lines; its job's page follows and cancels it."""

from collections.abc import AsyncIterator, Mapping
from uuid import UUID

import msgspec
from aiohttp import web

from gateway.access.identity.model import id_of
from gateway.contract.batches import CONCURRENCY, MAX_CONCURRENCY, MAX_LINES, MAX_STEPS, BatchCall, ReceivedOperation
from gateway.errors import Conflict, GatewayError, IdempotencyMismatch, InvalidParams
from gateway.kinds.find.entries import OperationEntry
from gateway.web.api.batches import LINES_MEMORY, MAX_BYTES, BatchQuery, options_of, received_lines
from gateway.web.bodies import hold_memory, validated
from gateway.web.console.operation_choice import Choice, choice_of
from gateway.web.console.page import console_page, see_other
from gateway.web.console.schedule_form import REFUSED
from gateway.web.console.upload_form import UploadForm, read_upload_form
from gateway.web.keys import CALLER, REQUEST_ID, SERVICES


async def show_form(request: web.Request) -> web.Response:
    """GET /console/batches: the choice of a connector, and the form for its batch."""
    return _shown(request, await choice_of(request, request.query), request.query)


async def start_batch(request: web.Request) -> web.Response:
    """POST /console/batches: check and store every operation, and redirect to the job that runs them."""
    hold_memory(request, MAX_BYTES, LINES_MEMORY)
    form = await read_upload_form(request)
    choice = await choice_of(request, form.fields)
    try:
        job_id = await _started(request, form, choice)
    except IdempotencyMismatch:
        used = Conflict(
            "this form has already started another batch, see Jobs; press Start again to start this one too"
        )
        return _shown(request, choice, form.fields, problem=used)
    except REFUSED as error:
        return _shown(request, choice, form.fields, problem=error)
    return see_other(f"/console/jobs/{job_id}")


async def _started(request: web.Request, form: UploadForm, choice: Choice) -> UUID:
    """The job of the batch; raises the errors of a batch by the API."""
    if choice.connector is None:
        raise InvalidParams("choose a connector")
    query = validated(
        BatchQuery,
        {
            "concurrency": form.fields.get("concurrency", "").strip() or None,
            "stop_on_error": "stop_on_error" in form.fields,
            "steps": "steps" in form.fields,
        },
    )
    typed, batches = form.fields.get("lines", ""), request.app[SERVICES].operations.batches
    if typed.strip() or form.file is None:
        lines = received_lines(request, _once(typed.encode()))
    else:
        lines = received_lines(request, form.file)
    key = id_of(form.fields.get("key"))
    call = BatchCall(
        connector_id=UUID(choice.connector.id),
        options=options_of(query.concurrency, query.stop_on_error, query.steps),
        limit=MAX_LINES,
        request_id=request[REQUEST_ID],
        idempotency_key=None if key is None else str(key),
    )
    accepted = await batches.accept(request[CALLER], call, _operations(lines, choice.entry))
    return accepted.job.id


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _operations(
    lines: AsyncIterator[ReceivedOperation], entry: OperationEntry | None
) -> AsyncIterator[ReceivedOperation]:
    """The operations of the lines; with a chosen operation each line has its params."""
    async for line in lines:
        if entry is None or isinstance(line.value, InvalidParams):
            yield line
        else:
            operation = {"entity": entry.entity_id, "action": entry.action_id, "params": line.value}
            yield ReceivedOperation(line.where, operation)


def _shown(
    request: web.Request, choice: Choice, fields: Mapping[str, str], *, problem: GatewayError | None = None
) -> web.Response:
    entry = choice.entry
    return console_page(
        request,
        "batches.html",
        active="jobs",
        status=422 if problem else 200,
        choice=choice,
        example="" if entry is None else msgspec.json.encode(entry.example).decode(),
        fields=fields,
        usual=CONCURRENCY,
        most=MAX_CONCURRENCY,
        most_steps=MAX_STEPS,
        most_lines=f"{MAX_LINES:,}",
        problem=problem,
    )
