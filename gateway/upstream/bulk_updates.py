"""Bulk updates of tickets: batches run concurrently, as many as the application accepts, and are polled until done."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from gateway.aio.background import cancel_and_wait
from gateway.errors import (
    FieldError,
    GatewayError,
    InvalidParams,
    UpstreamInvalidResponse,
    UpstreamQueueFull,
    UpstreamRateLimited,
)
from gateway.upstream.operation_run import OperationRun
from gateway.upstream.redaction import NO_SECRETS, Secrets
from gateway.upstream.requests import UpstreamRequest, upstream_segment
from gateway.upstream.responses import OperationResult
from gateway.upstream.run_context import Effects

Params = Mapping[str, Any]

#: tickets in one bulk request; the application refuses more
BATCH = 100
#: jobs that the application takes of one account, queued or running
MAX_JOBS = 30
#: seconds that a run waits when other jobs fill the application's queue and the application names no wait
_QUEUE_FULL_WAIT = 5


@dataclass(frozen=True, slots=True)
class Tally:
    """How many tickets were updated, and how many the application refused."""

    succeeded: int = 0
    failed: int = 0

    @property
    def done(self) -> int:
        return self.succeeded + self.failed

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.succeeded + other.succeeded, self.failed + other.failed)

    @classmethod
    def of(cls, results: Sequence[Mapping[str, Any]]) -> "Tally":
        succeeded = sum(bool(result["success"]) for result in results)
        return cls(succeeded, len(results) - succeeded)

    def sentence(self, total: int) -> str:
        updated = f"{self.succeeded} of {total} tickets updated"
        return f"{updated}, {self.failed} failed" if self.failed else updated


class BulkUpdate:
    """One run. Started and finished batches are saved one by one, so that no batch is started twice."""

    def __init__(self, run: OperationRun) -> None:
        self._run = run
        self._portions = batches_of_tickets(run.call.params)
        self._total = sum(len(_ids(portion)) for portion in self._portions)
        state = run.run_context.state
        self._finished = {int(number): Tally(**tally) for number, tally in state.get("finished", {}).items()}
        self._started = {int(number): str(name) for number, name in state.get("started", {}).items()}
        #: running batch → tickets that it has updated so far
        self._under_way: dict[int, int] = {}
        self._saving = asyncio.Lock()

    @property
    def tally(self) -> Tally:
        return sum(self._finished.values(), Tally())

    async def all(self) -> OperationResult:
        """Run all batches; raises the first error after the started batches have ended."""
        await self._progress()
        error = await self._batches()
        if error is not None:
            raise error
        await self._progress()
        record = {"status": "completed", **self._record(), "results": []}
        return OperationResult(msgspec.Raw(msgspec.json.encode(record)), collected="results")

    async def _batches(self) -> GatewayError | None:
        """Run the unfinished batches, as many at a time as the application accepts."""
        pending = deque(
            number for number in range(len(self._portions)) if number not in {*self._finished, *self._started}
        )
        running = {asyncio.create_task(self._follow(number)): number for number in self._started}
        width = MAX_JOBS
        error: GatewayError | None = None
        try:
            while True:
                while pending and error is None and len(running) < width:
                    number = pending.popleft()
                    running[asyncio.create_task(self._start(number))] = number
                if not running:
                    return error
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    number, failure = running.pop(task), task.exception()
                    match failure:
                        case None:
                            width = min(width + 1, MAX_JOBS)
                        case UpstreamQueueFull():
                            pending.appendleft(number)
                            width = len(running)
                            error = error if running else _limited(failure)
                        case GatewayError():
                            error = error or failure
                        case _:
                            raise failure
        finally:
            await cancel_and_wait(*running)

    async def _start(self, number: int) -> None:
        """Send a batch; the application's job id is saved before the first poll."""
        answer = await self._run.session.call(self._run.portion(self._portions[number]), self._run.run_context)
        status = answer.decoded()
        if not isinstance(status, dict) or not status.get("id"):
            raise UpstreamInvalidResponse(
                f"{self._run.call.operation}: the application took the batch without naming it"
            )
        self._started[number] = upstream_segment(self._run.call.operation, status["id"])
        await self._save()
        await self._follow(number)

    async def _follow(self, number: int) -> None:
        """Poll a batch until it ends, and save a result for each of its tickets."""
        ids, status = _ids(self._portions[number]), {}
        polls = self._run.poll(
            f"/job_statuses/{self._started[number]}.json",
            ("job_status", "status"),
            ("queued", "working"),
            ("completed", "failed", "killed"),
        )
        async for document in polls:
            status = document["job_status"]
            self._under_way[number] = min(int(status.get("progress") or 0), len(ids))
            await self._progress()
        results = ticket_results(ids, status, await self._run.session.secrets())
        self._under_way.pop(number, None)
        self._finished[number] = Tally.of(results)
        self._started.pop(number)
        await self._save(results, number + 1)
        await self._progress()

    async def _save(self, results: Sequence[Any] = (), part: int | None = None) -> None:
        """One after the other, so that no older state overwrites a newer one."""
        async with self._saving:
            await self._run.run_context.checkpoint(self._state(), results, part)

    def _state(self) -> dict[str, Any]:
        tally = self.tally
        known = {
            "batches": len(self._portions),
            "batches_started": len(self._started),
            "batches_finished": len(self._finished),
            "items": self._total,
            "items_done": tally.done,
        }
        effects = Effects(known, bool(self._started), tally.sentence(self._total), self._record(), "results")
        return {
            "finished": {str(number): asdict(each) for number, each in self._finished.items()},
            "started": {str(number): name for number, name in self._started.items()},
            **effects.document(),
        }

    def _record(self) -> dict[str, Any]:
        """The documented job record as far as the run knows it; the job that runs it adds its id and address."""
        tally = self.tally
        return {
            "total": self._total,
            "progress": tally.done,
            "message": tally.sentence(self._total),
            **asdict(tally),
        }

    async def _progress(self) -> None:
        """Report the progress of all batches together; under a lock, so that the number never decreases."""
        async with self._saving:
            done = self.tally.done + sum(self._under_way.values())
            updated = f"{done} of {self._total} tickets updated"
            message = updated if self._under_way else self.tally.sentence(self._total)
            await self._run.run_context.progress(done, self._total, message)


async def update_tickets(run: OperationRun) -> OperationResult:
    """Update any number of tickets and report each of them.

    The result is `{status, total, progress, message, succeeded, failed, results: [{id, success, error?}]}`, in the
    order asked for; a ticket that the application refuses does not fail the run.
    """
    return await BulkUpdate(run).all()


def preview_tickets(run: OperationRun) -> list[UpstreamRequest]:
    return [run.session.request(run.portion(portion)) for portion in batches_of_tickets(run.call.params)]


def batches_of_tickets(params: Params) -> list[Params]:
    """The params once for each portion of ids that the application accepts."""
    ids = ticket_ids(params["ids"])
    return [{**params, "ids": ",".join(ids[start : start + BATCH])} for start in range(0, len(ids), BATCH)]


def _ids(portion: Params) -> list[str]:
    return str(portion["ids"]).split(",")


def _limited(full: UpstreamQueueFull) -> UpstreamRateLimited:
    """The error while other jobs fill the queue: the run releases its worker until there may be room."""
    return UpstreamRateLimited(full.detail, upstream=full.upstream, retry_after=full.retry_after or _QUEUE_FULL_WAIT)


def ticket_ids(text: str) -> list[str]:
    """The comma-separated ids, blanks and repetitions removed; raises InvalidParams for what is no id."""
    ids = list(dict.fromkeys(each for each in (part.strip() for part in text.split(",")) if each))
    wrong = next((part for part in ids if not (part.isascii() and part.isdigit())), None)
    if wrong is not None or not ids:
        reason = "ids names no ticket" if wrong is None else f"{wrong!r} is not a ticket id"
        message = f"ticket_bulk_updates.create: {reason}; send ids as digits separated by commas"
        raise InvalidParams(faults=[FieldError("/params/ids", "ids", "pattern", message)])
    return ids


def ticket_results(
    ids: Sequence[str], status: Mapping[str, Any], secrets: Secrets = NO_SECRETS
) -> list[dict[str, Any]]:
    """One result for each ticket of a batch that has ended, in the order asked for."""
    reported = {_ticket_of(entry, ids): entry for entry in status.get("results") or () if isinstance(entry, dict)}
    return [_ticket_result(ticket_id, reported.get(ticket_id), status, secrets) for ticket_id in ids]


def _ticket_of(entry: Mapping[str, Any], ids: Sequence[str]) -> str | None:
    """The ticket that a line of a batch's results is about: by its id, or by its place in the batch."""
    if entry.get("id") is not None:
        return str(entry["id"])
    index = entry.get("index")
    return ids[index] if isinstance(index, int) and 0 <= index < len(ids) else None


def _ticket_result(
    ticket_id: str, entry: Mapping[str, Any] | None, status: Mapping[str, Any], secrets: Secrets
) -> dict[str, Any]:
    """A completed batch can hold failures; in a failed one only a ticket reported as updated was updated."""
    is_updated = entry.get("success", "error" not in entry) if entry else status["status"] == "completed"
    if is_updated:
        return {"id": int(ticket_id), "success": True}
    reason = (entry or {}).get("details") or (entry or {}).get("error") or status.get("message") or status["status"]
    return {"id": int(ticket_id), "success": False, "error": secrets.masked(str(reason))}
