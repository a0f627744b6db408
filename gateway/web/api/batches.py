"""POST …/connectors/{id}/batch: many operations as one job, sent as one JSON document or one operation per line."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, ClassVar

import msgspec
from aiohttp import web
from pydantic import Field, WithJsonSchema

from gateway.contract.answers import Answer
from gateway.contract.batches import (
    CONCURRENCY,
    MAX_CONCURRENCY,
    MAX_LINES,
    MAX_OPERATIONS,
    BatchCall,
    BatchOperation,
    BatchOptions,
    ReceivedOperation,
    received_operations,
)
from gateway.contract.jobs import AcceptedJobView
from gateway.errors import BodyTooLarge, InvalidParams, MalformedRequest
from gateway.foundation import payloads
from gateway.jobs.model import JobSummary
from gateway.web.api.jobs import Text, accepted_response, chained, result_response
from gateway.web.bodies import (
    Body,
    QueryString,
    call_headers,
    hold_memory,
    path_id,
    read_body,
    read_query,
    release_memory,
    require_fast_json,
)
from gateway.web.keys import CALLER, REQUEST_ID, SERVICES
from gateway.web.route import ACCEPTED_HEADERS, CALL_ERRORS, CONNECTOR, Route
from gateway.web.server.connection_guard import extend_body_limit

#: media types of a body with one operation per line
_LINES = ("application/x-ndjson", "application/ndjson")
#: maximum bytes of a body of lines
MAX_BYTES = 64 << 20
#: maximum bytes of one line
_MAX_LINE = 1 << 20
#: bytes that a body of lines takes in memory: one line and the operations of one stored part
LINES_MEMORY = 2 << 20
#: received bytes after which the time limit of the body starts again
_RENEWS_AFTER = 1 << 20
_DECODER = msgspec.json.Decoder()
_CALLBACK = "one of the client's callback URLs, which receives the job's final event"
_OPERATION = {**msgspec.json.schema(BatchOperation)["$defs"]["BatchOperation"], "description": "one operation"}


class BatchBody(Body):
    """Operations of one connector, with optional ids."""

    EXAMPLES: ClassVar = {
        "updates": {
            "operations": [
                {"entity": "tickets", "action": "update", "params": {"ticket_id": 1, "ticket": {"status": "solved"}}},
                {"entity": "tickets", "action": "update", "params": {"ticket_id": 2, "ticket": {"status": "solved"}}},
            ],
            "concurrency": 10,
        },
        "steps": {
            "steps": True,
            "operations": [
                {"id": "a", "entity": "tickets", "action": "create", "params": {"ticket": {"subject": "Moving"}}},
                {"entity": "tickets", "action": "get", "params": {"ticket_id": {"$from": "a.id"}}},
            ],
        },
    }

    concurrency: int | None = Field(
        None, ge=1, le=MAX_CONCURRENCY, description=f"operations that run concurrently; {CONCURRENCY} by default"
    )
    stop_on_error: bool | None = Field(
        None, description="whether no operation is sent after the first one that does not succeed"
    )
    operations: list[Annotated[dict[str, Any], WithJsonSchema(_OPERATION)]] = Field(
        min_length=1, max_length=MAX_OPERATIONS, description="the operations; the result has them in this order"
    )
    steps: bool | None = Field(
        None,
        description='whether they run in order, and a param may be {"$from": "<id>.<path>"}: a value of the result of '
        "an earlier one; at most 20",
    )
    callback_url: Text | None = Field(None, description=_CALLBACK)


class BatchQuery(QueryString):
    """How a batch of lines is run."""

    concurrency: int | None = Field(
        None, ge=1, le=MAX_CONCURRENCY, description="of lines: operations that run concurrently"
    )
    stop_on_error: bool | None = Field(
        None, description="of lines: whether no operation is sent after the first one that does not succeed"
    )
    steps: bool | None = Field(
        None, description="of lines: whether they run in order and may refer to results of earlier ones; at most 20"
    )
    callback_url: Text | None = Field(None, description=f"of lines: {_CALLBACK}")


async def start_batch(request: web.Request) -> web.StreamResponse:
    """Runs up to 10,000 operations of one connector as one job, or up to 100,000 as `application/x-ndjson`, one
    operation per line (64 MiB). Every operation is checked before anything is sent; a 422 names each faulty line.

    They run concurrently, at most `concurrency` at a time and within the application's limits. The job's result is
    `{total, succeeded, failed, unknown, skipped, results: [{index, id?, status, result?, error?}]}` in the order sent;
    with `Accept: application/x-ndjson` it is one operation per line. Operations that fail do not fail the job. After a
    crash a finished operation is not sent again, a write that was in flight ends `unknown`, and the others are run.

    With `steps` up to 20 operations run in order, and a param may be `{"$from": "<id>.<path>"}`: the value at that
    path in the result of an earlier step. A step whose source did not succeed is `skipped`. Reading needs the scope
    `read`, anything else `write`.
    """
    services, caller, headers = request.app[SERVICES], request[CALLER], call_headers(request)
    connector_id = path_id(request, "connector_id")
    await services.operations.batches.require_connector(caller, connector_id)
    options, limit, received, callback_url = await _receive(request)
    callback = None if callback_url is None else await services.events.webhooks.callback(caller, callback_url)
    call = BatchCall(
        connector_id=connector_id,
        options=options,
        limit=limit,
        idempotency_key=headers.idempotency_key,
        request_id=request[REQUEST_ID],
        token_hash=headers.token_hash,
        callback=callback,
    )
    accepted = await services.operations.batches.accept(caller, call, received)
    release_memory(request)
    preferences = headers.preferences
    sent = {**preferences.applied, **({} if accepted.is_new else {"Idempotency-Replayed": "true"})}
    job: JobSummary = accepted.job
    if call.token_hash is not None:
        return chained(job, 0)
    if preferences.wait and not preferences.respond_async:
        job = await services.jobs.waiters.done(job.organization_id, job.id, preferences.wait)
    if not job.is_done:
        return accepted_response(request, job, sent)
    return await result_response(request, job, {**sent, "Location": f"/api/v1/jobs/{job.id}"})


async def _receive(request: web.Request) -> tuple[BatchOptions, int, AsyncIterator[ReceivedOperation], str | None]:
    """The options, the maximum number of operations, the operations, and the callback URL."""
    query = read_query(request, BatchQuery)
    if request.content_type in _LINES:
        hold_memory(request, MAX_BYTES, LINES_MEMORY)
        options = options_of(query.concurrency, query.stop_on_error, query.steps)
        return options, MAX_LINES, received_lines(request, request.content.iter_any()), query.callback_url
    body = await _document(request)
    options = options_of(
        body.concurrency or query.concurrency,
        body.stop_on_error or query.stop_on_error,
        body.steps or query.steps,
    )
    operations = received_operations(body.operations, "operations")
    return options, MAX_OPERATIONS, operations, body.callback_url or query.callback_url


async def _document(request: web.Request) -> BatchBody:
    try:
        return await read_body(request, BatchBody)
    except BodyTooLarge as error:
        raise BodyTooLarge(f"{error.detail}; send one operation per line, as application/x-ndjson") from error


def options_of(concurrency: int | None, stop_on_error: bool | None, steps: bool | None = None) -> BatchOptions:
    """The options of a batch, with the defaults of those that were not sent."""
    return BatchOptions(concurrency or CONCURRENCY, bool(stop_on_error), bool(steps))


async def received_lines(request: web.Request, chunks: AsyncIterator[bytes]) -> AsyncIterator[ReceivedOperation]:
    """The operations of lines, while the request's body is received; empty lines are skipped.

    Raises Unauthorized at the end if the caller's token was revoked meanwhile.
    """
    number, received, renewed = 0, 0, 0
    rest = bytearray()  # a line may arrive in a million pieces
    async for chunk in chunks:
        received += len(chunk)
        if received > MAX_BYTES:
            raise BodyTooLarge(f"the body is larger than {MAX_BYTES} bytes; split the batch")
        *lines, last = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(rest) + lines[0]
            rest = bytearray()
        rest += last
        for line in lines:
            number += 1
            if line.strip():
                yield _line(number, line)
        if len(rest) > _MAX_LINE:
            raise BodyTooLarge(f"line {number + 1} is larger than {_MAX_LINE} bytes")
        if received - renewed >= _RENEWS_AFTER:
            renewed = received
            extend_body_limit(request)
    await request.app[SERVICES].standing.require(request[CALLER].client)  # a body may take long
    if rest.strip():
        yield _line(number + 1, bytes(rest))


def _line(number: int, text: bytes) -> ReceivedOperation:
    where = f"line {number}"
    if number == 1:
        text = text.removeprefix(payloads.BYTE_ORDER_MARK)
    try:
        require_fast_json(text)
        return ReceivedOperation(where, _DECODER.decode(text))
    except MalformedRequest as error:
        return ReceivedOperation(where, InvalidParams(error.detail))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return ReceivedOperation(where, InvalidParams(f"not JSON: {error}"))
    except RecursionError:
        return ReceivedOperation(where, InvalidParams("nested too deeply"))


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        CONNECTOR + "/batch",
        start_batch,
        "Run many operations as one job",
        "Execute",
        body=BatchBody,
        line_media=("application/x-ndjson",),
        line_example='{"entity":"tickets","action":"get","params":{"ticket_id":1}}\n',
        query=BatchQuery,
        response={200: Answer, 202: AcceptedJobView},
        answers={
            200: "The result, if the caller waited for it",
            202: "The job that runs them",
            303: "Redirects to the result, for callers that send X-ADP-Agent-SDK",
        },
        media={200: ("application/x-ndjson",)},
        errors=CALL_ERRORS,
        reads=("Prefer", "Idempotency-Key", "X-ADP-Agent-SDK"),
        sends={
            200: ("Location", "Preference-Applied", "Idempotency-Replayed"),
            202: (*ACCEPTED_HEADERS, "Idempotency-Replayed"),
            303: ("Location",),
        },
        audit="batch",
        command="gateway batch close.ndjson --connector support-desk",
        python=(
            'reads = [{"entity": "tickets", "action": "get", "params": {"ticket_id": number}} for number in (1, 2)]\n'
            'job = await gateway.batch("support-desk", reads)\n'
            "async for result in job.records():\n    print(result)"
        ),
        in_session=True,
    ),
)
