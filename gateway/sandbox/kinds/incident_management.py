"""Incident management: read-only, pages that go on after the last id, errors with a type and a list."""

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from gateway.kinds.catalog import Operation
from gateway.sandbox import filters, paging
from gateway.sandbox.application import Application
from gateway.sandbox.calls import Call, Handler, Refusal, Reply
from gateway.sandbox.store import Row

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TYPES: dict[int, str] = {
    401: "authentication_error",
    402: "plan_error",
    403: "authorization_error",
    404: "not_found",
    429: "rate_limit_exceeded",
}
_STATUSES = (("Triage", "triage"), ("Investigating", "live"), ("Fixing", "live"), ("Closed", "closed"))
#: of every fifty incidents, those that are not real ones; and the modes that a list holds unasked
_MODES = {47: "retrospective", 48: "tutorial", 49: "test"}
_USUAL_MODES = ("standard", "retrospective")
#: of every twenty users one is deactivated
_INACTIVE = 19
_SEVERITIES = ("Minor", "Major", "Critical")


class IncidentManagement(Application):
    """Incidents, alerts, escalations and how the account is set up."""

    counts: ClassVar = {
        "incidents": 260,
        "alerts": 120,
        "escalations": 80,
        "incident_updates": 520,
        "users": 60,
        "severities": len(_SEVERITIES),
        "incident_statuses": len(_STATUSES),
        "incident_roles": 4,
        "incident_timestamps": 6,
        "custom_fields": 8,
        "catalog_types": 10,
        "schedules": 12,
        "teams": 9,
    }
    references: ClassVar = {"incident_id": "incidents"}
    # The limit is a list in the real application too.
    standing_headers: ClassVar = {
        "X-RateLimit-Limit": "60000, 60000;window=60",
        "X-RateLimit-Remaining": "59999",
    }

    def usual_id(self, table: str, number: int) -> str:
        """A ULID that sorts by number."""
        value, text = number, ""
        for _ in range(10):
            value, digit = divmod(value, 32)
            text = _CROCKFORD[digit] + text
        salt = zlib.crc32(table.encode())
        return f"01J{text}" + "".join(_CROCKFORD[salt >> shift & 31] for shift in range(0, 26, 2))

    def rows_of(self, table: str) -> Iterable[Row]:
        rows = list(super().rows_of(table))
        for number, row in enumerate(rows):
            self._fill(table, number, row.record)
            if table == "users" and number % 20 == _INACTIVE:
                row.refs["is_inactive"] = True
        return rows

    def _fill(self, table: str, number: int, record: dict[str, Any]) -> None:
        """Objects within records that name other records."""
        match table:
            case "incidents":
                record["reference"] = f"INC-{number + 1}"
                record["mode"], record["visibility"] = _MODES.get(number % 50, "standard"), "public"
                record["incident_status"] = self._status(number)
                record["severity"] = self._severity(number)
                record["incident_type"] = {"id": self.id_of("incident_types", 1), "name": "Default"}
                record["creator"] = {"user": self._user(number)}
            case "incident_updates":
                record["new_incident_status"], record["new_severity"] = self._status(number), self._severity(number)
                record["updater"] = {"user": self._user(number)}
            case "incident_statuses":
                record.update(self._status(number))
            case "severities":
                record.update(self._severity(number))
            case "alerts":
                record["status"] = "resolved" if number % 3 else "firing"
            case "escalations":
                record["status"] = "acked" if number % 2 else "triggered"
                record["priority"] = {"name": "Urgent"}
            case "users":
                record["role"] = "responder"
                record["base_role"] = {"id": self.id_of("roles", 1), "name": "Responder", "slug": "responder"}

    def _status(self, number: int) -> dict[str, Any]:
        name, category = _STATUSES[number % len(_STATUSES)]
        place = number % len(_STATUSES) + 1
        return {"id": self.id_of("incident_statuses", place), "name": name, "category": category, "rank": place}

    def _severity(self, number: int) -> dict[str, Any]:
        place = number % len(_SEVERITIES)
        return {"id": self.id_of("severities", place + 1), "name": _SEVERITIES[place], "rank": place + 1}

    def _user(self, number: int) -> dict[str, Any]:
        row = self.store.table("users").get(self.id_of("users", number % self.count_of("users") + 1))
        known = row.record if row else {}
        return {name: known.get(name) for name in ("id", "name", "email")}

    def refused(self, refusal: Refusal) -> Reply:
        kind = _TYPES.get(refusal.status, "internal_error" if refusal.status >= 500 else "validation_error")
        message = refusal.message or kind.replace("_", " ")
        document: dict[str, Any] = {
            "type": kind,
            "status": refusal.status,
            "request_id": "sandbox-request",
            "errors": [{"code": refusal.code or kind, "message": message, "source": {"field": refusal.field}}],
        }
        headers = dict(refusal.headers)
        if refusal.status == 429:
            wait = headers.setdefault("Retry-After", "1")
            document["rate_limit"] = {"name": "api", "limit": 1200, "remaining": 0, "retry_after": wait}
        return Reply(document, refusal.status, headers)

    def listed(self, operation: Operation, rows: Sequence[Row], call: Call) -> Reply:
        name = (operation.action.records or ("records",))[0]
        if operation.paging is None:
            return Reply({name: [row.record for row in rows]})
        start = self._start(rows, call.query.get("after"))
        page = paging.portion(rows, start, self.size_of(operation, call.query, 25))
        meta: dict[str, Any] = {"page_size": len(page.items), "total_record_count": len(rows)}
        if page.has_more:
            meta["after"] = page.items[-1].id
        return Reply({name: [row.record for row in page.items], "pagination_meta": meta})

    def _start(self, rows: Sequence[Row], after: str | None) -> int:
        if not after:
            return 0
        place = next((index for index, row in enumerate(rows) if row.id == after), None)
        if place is None:
            raise Refusal(422, "invalid_value", "after names no record of this list", field="after")
        return place + 1

    def handlers(self) -> dict[str, Handler]:
        return {
            "GET /v2/incidents": self.incidents,
            "GET /v2/incident_updates": self.updates,
            "GET /v2/users": self.users,
        }

    def incidents(self, call: Call) -> Reply:
        """Incidents by `status[one_of]`, `status_category[one_of]`, `mode[one_of]`, `updated_at[gte]` and the like."""
        asked = {name.replace("status[", "incident_status["): value for name, value in call.query.items()}
        modes = call.query_list("mode[one_of]") or _USUAL_MODES
        asked.pop("mode[one_of]", None)
        rows: Iterable[Row] = [row for row in self.store.table("incidents") if row.record["mode"] in modes]
        category = asked.pop("status_category[one_of]", None)
        if category:
            rows = [row for row in rows if row.record["incident_status"]["category"] == category]
        return self._paged("incidents", rows, asked, call)

    def updates(self, call: Call) -> Reply:
        return self._paged("incident_updates", self.store.table("incident_updates"), dict(call.query), call)

    def users(self, call: Call) -> Reply:
        """The people who are active, all of them where `include_inactive` asks for that."""
        rows = list(self.store.table("users"))
        if call.query.get("include_inactive") != "true":
            rows = [row for row in rows if not row.refs.get("is_inactive")]
        asked = {name: value for name, value in call.query.items() if name != "include_inactive"}
        return self._paged("users", rows, asked, call)

    def _paged(self, entity: str, rows: Iterable[Row], asked: dict[str, str], call: Call) -> Reply:
        kept = filters.matching(rows, asked, {"after", "page_size"})
        return self.listed(self.kind.operation(entity, "list"), kept, call)
