"""Bulk updates of the support desk: taken at once, worked off ticket by ticket, told in `job_statuses`."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.sandbox.application import Application
from gateway.sandbox.calls import Call, Refusal, Reply
from gateway.sandbox.kinds.support_desk.tickets import Tickets

_MAX_IDS, _MAX_JOBS = 100, 30


@dataclass(slots=True)
class _Job:
    id: str
    ids: list[str]
    changes: Mapping[str, Any]
    started: float
    duration: float
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return len(self.results) == len(self.ids)

    def due(self, now: float) -> int:
        """How many tickets should be done by now."""
        share = 1.0 if self.duration <= 0 else min(1.0, (now - self.started) / self.duration)
        return int(len(self.ids) * share)

    def document(self, origin: str) -> dict[str, Any]:
        failed = sum(not result["success"] for result in self.results)
        status = "completed" if self.is_done else "working" if self.results else "queued"
        return {
            "id": self.id,
            "job_type": "Bulk Update Ticket",
            "url": f"{origin}/api/v2/job_statuses/{self.id}.json",
            "total": len(self.ids),
            "progress": len(self.results),
            "status": status,
            "message": f"{failed} of {len(self.ids)} tickets failed" if self.is_done and failed else None,
            "results": self.results if self.is_done else None,
        }


class BulkUpdates:
    """The jobs of one support desk, at most thirty at a time; a batch takes a while and may fail ticket by ticket."""

    def __init__(self, desk: Application, tickets: Tickets) -> None:
        self._desk, self._tickets = desk, tickets
        self._jobs: dict[str, _Job] = {}
        self._running: list[_Job] = []

    def reset(self) -> None:
        self._jobs.clear()
        self._running.clear()

    def start(self, call: Call) -> Reply:
        """Take up to 100 ids; the answer names the job."""
        ids = [part for part in (piece.strip() for piece in call.query.get("ids", "").split(",")) if part]
        if not ids:
            raise Refusal(400, "ParameterMissing", "ids names no ticket")
        if len(ids) > _MAX_IDS:
            raise Refusal(400, "TooManyValues", f"Too many ids: {len(ids)} of at most {_MAX_IDS}")
        if not all(part.isdigit() for part in ids):
            raise Refusal(400, "InvalidValue", "ids must be numbers separated by commas")
        if len(self._running) >= _MAX_JOBS:
            raise Refusal(429, "TooManyJobs", f"{_MAX_JOBS} jobs are queued or running")
        job = _Job(uuid.uuid4().hex, ids, dict(call.body["ticket"]), call.now, self._desk.job_seconds)
        self._jobs[job.id] = job
        self._running.append(job)
        return Reply({"job_status": job.document(call.origin)})

    def status(self, call: Call) -> Reply:
        job = self._jobs.get(call.params["job_id"])
        if job is None:
            raise Refusal(404)
        return Reply({"job_status": job.document(call.origin)})

    def advance(self, now: float) -> bool:
        """Work off what is due by now; whether any ticket may have changed."""
        worked = False
        for job in list(self._running):
            for index in range(len(job.results), job.due(now)):
                job.results.append(self._updated(job, index, now))
                worked = True
            if job.is_done:
                self._running.remove(job)
        return worked

    def _updated(self, job: _Job, index: int, now: float) -> dict[str, Any]:
        ticket_id = job.ids[index]
        result: dict[str, Any] = {"index": index, "id": int(ticket_id), "action": "update"}
        row = self._desk.store.table("tickets").get(ticket_id)
        if row is None:
            return {**result, "success": False, "error": "TicketNotFound", "details": f"Ticket {ticket_id} not found"}
        try:
            self._tickets.apply(row, job.changes, now)
        except Refusal as refusal:
            return {**result, "success": False, "error": "TicketUpdateFailed", "details": refusal.message}
        return {**result, "success": True, "status": "Updated"}
