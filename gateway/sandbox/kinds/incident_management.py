"""Incident management: read-only, paging by the last id, errors with a type and a list."""

import zlib
from collections.abc import Iterable
from typing import Any, ClassVar

from gateway.kinds.catalog import Operation
from gateway.sandbox.calls import Call
from gateway.sandbox.spec_application import SpecApplication
from gateway.sandbox.store import Row

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_STATUSES = (("Triage", "triage"), ("Investigating", "live"), ("Fixing", "live"), ("Closed", "closed"))
#: modes of incidents by their number modulo 50; the others have `standard`
_MODES = {47: "retrospective", 48: "tutorial", 49: "test"}
#: the modes that a list has without a filter
_USUAL_MODES = ("standard", "retrospective")
#: the number modulo 20 of deactivated users
_INACTIVE = 19
_SEVERITIES = ("Minor", "Major", "Critical")


class IncidentManagement(SpecApplication):
    """Incidents, alerts, escalations and the configuration of the account."""

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
    codes: ClassVar = {
        400: "validation_error",
        401: "authentication_error",
        402: "plan_error",
        403: "authorization_error",
        404: "not_found",
        422: "validation_error",
        429: "rate_limit_exceeded",
        500: "internal_error",
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
        """Fill in the objects that refer to other records."""
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

    def related(self, operation: Operation, call: Call) -> Iterable[Row]:
        """The rows of a list; test and tutorial incidents and inactive users only on request."""
        rows = super().related(operation, call)
        if operation.entity_id == "incidents" and "mode[one_of]" not in call.query:
            return [row for row in rows if row.record["mode"] in _USUAL_MODES]
        if operation.entity_id == "users" and call.query.get("include_inactive") != "true":
            return [row for row in rows if not row.refs.get("is_inactive")]
        return rows

    def admit(self, call: Call) -> None:
        """The account of the sandbox has no limit, so that synchronizations can be measured."""
