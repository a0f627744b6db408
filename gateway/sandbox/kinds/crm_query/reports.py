"""Reports of the CRM by query: run at once, or asynchronously as an instance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.sandbox import words
from gateway.sandbox.calls import Call, Handler, Record, Refusal, Reply
from gateway.sandbox.records import iso_time

_PATH = "/services/data/v59.0/analytics/reports"


@dataclass(frozen=True, slots=True)
class _Instance:
    id: str
    report_id: str
    started: float
    has_details: bool


class Reports:
    """The saved reports and their instances."""

    def __init__(self, ids: Sequence[str], run_seconds: float) -> None:
        self._ids = ids
        self._run_seconds = run_seconds
        self._instances: dict[str, _Instance] = {}

    def reset(self) -> None:
        self._instances.clear()

    def handlers(self) -> dict[str, Handler]:
        return {
            "GET /analytics/reports": self.list,
            "GET /analytics/reports/{id}": self.run,
            "POST /analytics/reports/{id}/instances": self.start,
            "GET /analytics/reports/{id}/instances/{run_id}": self.instance,
        }

    def list(self, call: Call) -> Reply:
        return Reply([_described(report_id, number) for number, report_id in enumerate(self._ids)])

    def run(self, call: Call) -> Reply:
        return Reply(self._outcome(self._known(call), call.query.get("includeDetails", "true") != "false"))

    def start(self, call: Call) -> Reply:
        """Start a run of the report; its first state is `New`."""
        report_id = self._known(call)
        has_details = call.query.get("includeDetails", "true") != "false"
        made = _Instance(f"0LG{len(self._instances) + 1:012d}AAA", report_id, call.now, has_details)
        self._instances[made.id] = made
        return Reply({**self._state(made, call.now), "id": made.id})

    def instance(self, call: Call) -> Reply:
        """The state of a run, and its result when it has ended."""
        made = self._instances.get(call.params["run_id"])
        if made is None or made.report_id != self._known(call):
            raise Refusal(404, message="there is no such run of this report")
        state = self._state(made, call.now)
        if state["status"] != "Success":
            return Reply({"attributes": {**state, "type": "Report"}})
        outcome = self._outcome(made.report_id, made.has_details)
        return Reply({**outcome, "attributes": {**outcome["attributes"], **state}})

    def _outcome(self, report_id: str, has_details: bool) -> dict[str, Any]:
        return _outcome(report_id, self._ids.index(report_id), has_details)

    def _known(self, call: Call) -> str:
        wanted = call.params["id"]
        found = next((known for known in self._ids if wanted in (known, known[:15])), None)
        if found is None:
            raise Refusal(404, message="The report does not exist")
        return found

    def _state(self, made: _Instance, now: float) -> Record:
        passed = now - made.started
        is_done = passed >= self._run_seconds
        status = "Success" if is_done else "Running" if passed > self._run_seconds / 4 else "New"
        return {
            "id": made.id,
            "status": status,
            "url": f"{_PATH}/{made.report_id}/instances/{made.id}",
            "ownerId": "005000000000001AAA",
            "requestDate": iso_time(made.started),
            "completionDate": iso_time(made.started + self._run_seconds) if is_done else None,
            "hasDetailRows": made.has_details,
            "queryable": False,
        }


def _described(report_id: str, number: int) -> Record:
    address = f"{_PATH}/{report_id}"
    name = f"Pipeline of {words.INDUSTRIES[number]}"
    return {
        "id": report_id,
        "name": name,
        "url": address,
        "describeUrl": f"{address}/describe",
        "instancesUrl": f"{address}/instances",
    }


def _outcome(report_id: str, number: int, has_details: bool) -> dict[str, Any]:
    rows = [
        {"dataCells": [{"label": company, "value": company}, {"label": str(100 * place), "value": 100 * place}]}
        for place, company in enumerate(words.COMPANIES[: 5 + number], 1)
    ]
    total = sum(100 * place for place in range(1, len(rows) + 1))
    facts: Record = {"aggregates": [{"label": str(total), "value": total}]}
    return {
        "attributes": {**_described(report_id, number), "reportId": report_id, "type": "Report"},
        "reportMetadata": {
            "id": report_id,
            "name": f"Pipeline of {words.INDUSTRIES[number]}",
            "reportFormat": "TABULAR",
        },
        "reportExtendedMetadata": {"detailColumnInfo": {}},
        "factMap": {"T!T": {**facts, **({"rows": rows} if has_details else {})}},
        "groupingsDown": {"groupings": []},
        "groupingsAcross": {"groupings": []},
        "hasDetailRows": has_details,
        "allData": True,
    }
