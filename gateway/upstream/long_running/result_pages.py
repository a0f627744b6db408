"""Reading the results of a long operation that has ended, page by page."""

import csv
import io
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from gateway.errors import UpstreamInvalidResponse, UpstreamRejected, UpstreamTooLarge
from gateway.foundation import payloads
from gateway.foundation.aio.turns import in_thread
from gateway.kinds.catalog import Operation
from gateway.kinds.long_running import ResultRequest
from gateway.upstream import pagination
from gateway.upstream.long_running.operation_run import OperationRun
from gateway.upstream.long_running.portions import Params, ResultPosition
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.responses import OperationResult, raw_at
from gateway.upstream.transport import ANSWER_CAP

#: characters of a field of a CSV response
_MAX_FIELD = 16 << 20
#: maximum commas of a line of CSV
_MAX_COMMAS = 100_000
#: bytes of JSON that is made of a CSV response
_MAX_JSON = 2 * ANSWER_CAP


#: the records of a page, unparsed or with added members, and the position of the next page; None after the last
Page: TypeAlias = tuple[Sequence[Any], ResultPosition | None]


async def result_pages(
    run: OperationRun, requests: Sequence[ResultRequest], params: Params, position: ResultPosition
) -> AsyncIterator[Page]:
    """The pages from a position on; raises UpstreamRejected if the application does not return the whole result."""
    while True:
        asked = {**params, **position.following}
        records, following = await _page(run, requests[position.request], asked)
        if following is not None:
            # What a page says of the next one counts more than what the caller said of the first.
            added = {name: each for name, each in following.items() if name not in params or params[name] != each}
            position = ResultPosition(position.page + 1, request=position.request, following=added)
        elif position.request + 1 < len(requests):
            position = ResultPosition(position.page + 1, request=position.request + 1)
        else:
            yield records, None
            return
        yield records, position


async def listed(operation: Operation, answer: OperationResult) -> AsyncIterator[Page]:
    """The records of a response that holds the whole result, as one page."""
    records = raw_at(answer.result, operation.action.records or ())
    try:
        yield payloads.items(records or b""), None
    except UpstreamInvalidResponse as error:
        raise UpstreamInvalidResponse(f"{operation}: the application's answer has no list of records") from error


async def _page(run: OperationRun, request: ResultRequest, params: Params) -> tuple[Sequence[Any], Params | None]:
    operation = run.call.operation.follow_up(request)
    call = PreparedCall.of(operation, params)
    answer = await (_csv_answer(run, call) if request.format == "csv" else run.session.call(call))
    if answer.incomplete is not None:
        raise UpstreamRejected(answer.incomplete)
    following = pagination.next_params(operation, params, answer)
    if not request.add_fields:
        return answer.records, following
    return [{**payloads.record(record), **request.add_fields} for record in answer.records], following


async def _csv_answer(run: OperationRun, call: PreparedCall) -> OperationResult:
    """A response of CSV (RFC 4180), read as the list of its rows."""
    timeout = run.call.operation.action.timeout
    exchange = await run.session.exchange(run.session.request(call), timeout=timeout)
    response = exchange.succeeded()
    try:
        body = await in_thread(json_of_csv, response.body)
    except (UnicodeDecodeError, csv.Error) as error:
        words = "the application's answer is not the CSV it promises"
        raise UpstreamInvalidResponse(f"{call.operation}: {words}") from error
    return call.answer(msgspec.structs.replace(response, body=body, _members=None))


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, one by one, because the reader holds Python's lock while it reads one."""
    for line in io.StringIO(text, newline=""):
        if line.count(",") > _MAX_COMMAS:
            raise UpstreamTooLarge(f"a line of the application's CSV has more than {_MAX_COMMAS:,} commas")
        yield line


def json_of_csv(content: bytes) -> bytes:
    """JSON of the rows of a CSV text in UTF-8, by the names in its first line; raises UpstreamTooLarge."""
    csv.field_size_limit(_MAX_FIELD)
    reader = csv.reader(_lines(content.decode("utf-8-sig")), strict=True)
    names, rows = next(reader, []), bytearray()
    for row in filter(None, reader):
        rows += b"," if rows else b""
        rows += msgspec.json.encode(dict(zip(names, row, strict=False)))
        if len(rows) > _MAX_JSON:
            # Each row repeats the names, which an application chooses.
            raise UpstreamTooLarge(
                f"the application's rows are larger than {_MAX_JSON >> 20} MiB as JSON; ask for less"
            )
    return b"[%b]" % bytes(rows)
