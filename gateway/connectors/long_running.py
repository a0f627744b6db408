"""Operations that the application works off itself: started, followed to their end, and resumable in between.

Named by `rule` in a spec, like the pure rules. What was started stands in the journal, so that whoever goes on after
a crash follows it instead of starting it again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
from yarl import URL

from gateway.connectors import responses
from gateway.connectors.bodies import encoded
from gateway.connectors.prepared import PreparedCall
from gateway.connectors.requests import UpstreamRequest, base_address
from gateway.connectors.responses import Answer, value_at
from gateway.connectors.run_context import Journal
from gateway.connectors.session import Session
from gateway.errors import (
    FieldError,
    InvalidParams,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamRejected,
)
from gateway.kinds.catalog import Operation
from gateway.kinds.spec import Effect, JsonPath

Params = Mapping[str, Any]

#: tickets in one bulk request; the application refuses more
BATCH = 100
#: seconds between looks at a run: soon at first, then rarer
_FIRST_LOOK, _LOOK_FACTOR, _RAREST_LOOK = 0.2, 1.5, 5.0
#: looks in a row that may fail, about a minute of them: what was started goes on without us
_MISSED_LOOKS = 20


@dataclass(frozen=True, slots=True)
class OperationRun:
    """One long operation under way: who calls, what was asked and where its progress is kept."""

    session: Session
    call: PreparedCall
    journal: Journal

    @property
    def operation(self) -> Operation:
        return self.call.operation

    @property
    def params(self) -> Params:
        return self.call.params

    def portion(self, params: Params) -> PreparedCall:
        """The same call for a part of what was asked."""
        return PreparedCall.of(self.operation, params)

    def request(self, method: str, path: str) -> UpstreamRequest:
        """A request beside the operation's own, such as a look at what it started."""
        session = self.session
        base = base_address(session.spec, session.environment, session.override)
        headers = {"Accept": "application/json", **session.spec.headers}
        body = None
        if method != "GET":
            body = encoded(session.spec.content_type, {})
            headers["Content-Type"] = session.spec.content_type
        return UpstreamRequest(method, URL(base + path, encoded=True), headers, body, Effect.READ)

    async def ask(self, method: str, path: str) -> Answer:
        """The whole answer to such a request."""
        complete = self.operation.changed(record=(), records=None, paging=None)
        timeout = self.operation.action.timeout
        exchange = await self.session.exchange(self.request(method, path), timeout=timeout)
        return responses.read(complete, exchange.succeeded())

    async def followed(
        self, path: str, state: JsonPath, going: Collection[str], ended: Collection[str]
    ) -> AsyncIterator[Any]:
        """What the application says of a run, again and again, the last time when it has ended."""
        wait, missed = _FIRST_LOOK, 0
        while True:
            try:
                document = (await self.ask("GET", path)).decoded()
            except UpstreamError as error:
                missed += 1
                if not error.retryable or missed > _MISSED_LOOKS:
                    raise
            else:
                missed = 0
                status = value_at(document, state)
                if status not in going and status not in ended:
                    raise UpstreamInvalidResponse(f"{self.operation}: the run has the unknown status {status!r}")
                yield document
                if status in ended:
                    return
            await asyncio.sleep(wait)
            wait = min(wait * _LOOK_FACTOR, _RAREST_LOOK)


@dataclass(frozen=True, slots=True)
class Tally:
    """How many tickets were updated, and how many the application refused."""

    succeeded: int = 0
    failed: int = 0

    @property
    def done(self) -> int:
        return self.succeeded + self.failed

    def plus(self, results: Sequence[Mapping[str, Any]]) -> "Tally":
        succeeded = sum(bool(result["success"]) for result in results)
        return Tally(self.succeeded + succeeded, self.failed + len(results) - succeeded)

    def sentence(self, total: int) -> str:
        updated = f"{self.succeeded} of {total} tickets updated"
        return f"{updated}, {self.failed} failed" if self.failed else updated


async def update_tickets(run: OperationRun) -> Answer:
    """Update any number of tickets, a batch at a time, and report each of them.

    The result is `{total, succeeded, failed, results: [{id, success, error?}]}`; a ticket that the application
    refuses does not fail the run.
    """
    portions = batches_of_tickets(run.params)
    total = sum(len(portion["ids"].split(",")) for portion in portions)
    tally = Tally(**run.journal.state.get("tally", {}))
    started = run.journal.state.get("started")
    await run.journal.progress(tally.done, total, tally.sentence(total))
    for number in range(int(run.journal.state.get("finished", 0)), len(portions)):
        if started is None:
            started = await _start_batch(run, portions[number])
            await run.journal.save({"finished": number, "tally": asdict(tally), "started": started})
        results = await _finish_batch(run, portions[number]["ids"].split(","), started, tally.done, total)
        tally, started = tally.plus(results), None
        await run.journal.save({"finished": number + 1, "tally": asdict(tally)}, results)
        await run.journal.progress(tally.done, total, tally.sentence(total))
    summary = {"total": total, **asdict(tally), "results": []}
    return Answer(msgspec.Raw(msgspec.json.encode(summary)), collected="results")


def batches_of_tickets(params: Params) -> list[Params]:
    """The params once for each portion of ids that the application accepts."""
    ids = ticket_ids(params["ids"])
    return [{**params, "ids": ",".join(ids[start : start + BATCH])} for start in range(0, len(ids), BATCH)]


def ticket_ids(text: str) -> list[str]:
    """The comma-separated ids, blanks and repetitions removed; raises InvalidParams for what is no id."""
    ids = list(dict.fromkeys(part for part in (piece.strip() for piece in text.split(",")) if part))
    wrong = next((part for part in ids if not (part.isascii() and part.isdigit())), None)
    if wrong is not None or not ids:
        said = "ids names no ticket" if wrong is None else f"{wrong!r} is not a ticket id"
        message = f"ticket_bulk_updates.create: {said}; send ids as digits separated by commas"
        raise InvalidParams(faults=[FieldError("/params/ids", "ids", "pattern", message)])
    return ids


async def _start_batch(run: OperationRun, portion: Params) -> str:
    status = (await run.session.call(run.portion(portion), run.journal)).decoded()
    if not isinstance(status, dict) or not status.get("id"):
        raise UpstreamInvalidResponse(f"{run.operation}: the application took the batch without naming its job")
    return str(status["id"])


async def _finish_batch(run: OperationRun, ids: list[str], started: str, done: int, total: int) -> list[dict[str, Any]]:
    """Follow a batch to its end: one result for each of its tickets, in the order asked for."""
    status: Mapping[str, Any] = {}
    looks = run.followed(
        f"/job_statuses/{started}.json",
        ("job_status", "status"),
        ("queued", "working"),
        ("completed", "failed", "killed"),
    )
    async for document in looks:
        status = document["job_status"]
        now = done + min(int(status.get("progress") or 0), len(ids))
        await run.journal.progress(now, total, f"{now} of {total} tickets updated")
    reported = {_ticket_of(entry, ids): entry for entry in status.get("results") or () if isinstance(entry, dict)}
    return [_ticket_result(ticket_id, reported.get(ticket_id), status) for ticket_id in ids]


def _ticket_of(entry: Mapping[str, Any], ids: Sequence[str]) -> str | None:
    """The ticket that a line of a batch's results is about: by its id, or by its place in the batch."""
    if entry.get("id") is not None:
        return str(entry["id"])
    index = entry.get("index")
    return ids[index] if isinstance(index, int) and 0 <= index < len(ids) else None


def _ticket_result(ticket_id: str, entry: Mapping[str, Any] | None, status: Mapping[str, Any]) -> dict[str, Any]:
    """A completed batch can hold failures; in a failed one only a ticket reported as updated was updated."""
    is_updated = entry.get("success", "error" not in entry) if entry else status["status"] == "completed"
    if is_updated:
        return {"id": int(ticket_id), "success": True}
    said = (entry or {}).get("details") or (entry or {}).get("error") or status.get("message") or status["status"]
    return {"id": int(ticket_id), "success": False, "error": str(said)}


async def run_report(run: OperationRun) -> Answer:
    """Run a report as an instance of the application's own and follow it; where it has none, synchronously."""
    instance = run.journal.state.get("instance")
    if instance is None:
        try:
            instance = (await run.ask("POST", _instances(run.params))).decoded().get("id")
        except (UpstreamRejected, UpstreamNotFound):
            return await run.session.call(run.call, run.journal)
        if not instance:
            raise UpstreamInvalidResponse(f"{run.operation}: the application started the report without naming its run")
        await run.journal.save({"instance": instance})
    report: dict[str, Any] = {}
    path = _instances({"id": run.params["id"]}, f"/{instance}")
    async for report in run.followed(path, ("attributes", "status"), ("New", "Running"), ("Success", "Error")):
        await run.journal.progress(0, None, f"report run: {report['attributes']['status']}")
    if report["attributes"]["status"] == "Error":
        raise UpstreamError(f"{run.operation}: the application could not run the report")
    return Answer(msgspec.Raw(msgspec.json.encode(report)))


def _instances(params: Params, below: str = "") -> str:
    details = "" if below else f"?includeDetails={'true' if params.get('includeDetails', True) else 'false'}"
    return f"/analytics/reports/{params['id']}/instances{below}{details}"


def preview_tickets(run: OperationRun) -> list[UpstreamRequest]:
    return [run.session.request(run.portion(portion)) for portion in batches_of_tickets(run.params)]


def preview_report(run: OperationRun) -> list[UpstreamRequest]:
    return [run.request("POST", _instances(run.params))]


@dataclass(frozen=True, slots=True)
class LongRule:
    """How a long operation is run, and the requests that it begins with."""

    run: Callable[[OperationRun], Awaitable[Answer]]
    preview: Callable[[OperationRun], list[UpstreamRequest]]


#: every long operation by the name that specs use
LONG_RULES: Mapping[str, LongRule] = {
    "update_tickets": LongRule(update_tickets, preview_tickets),
    "run_report": LongRule(run_report, preview_report),
}
