"""The notices of the kinds, in the shapes that their vendors document."""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.sandbox.kinds.team_chat.workspace import TEAM
from gateway.sandbox.records import iso_time
from gateway.sandbox.store import RecordChange, What

#: the change and its Unix time → the body, or None where the vendor has no notice of it
NoticeOf = Callable[[RecordChange, float], Any]


def _support_desk(change: RecordChange, now: float) -> Any:
    subject, types = _SUPPORT_DESK.get(change.table, ("", {}))
    what = What.DELETED if change.row.record.get("status") == "deleted" else change.what
    return what in types and {
        "account_id": 1,
        "type": f"zen:event-type:{subject}.{types[what]}",
        "subject": f"zen:{subject}:{change.row.id}",
        "time": iso_time(now),
        "zendesk_event_version": "2022-06-20",
        "detail": {"id": change.row.id},
        "event": {},
    }


def _crm_records(change: RecordChange, now: float) -> Any:
    subject = _CRM_RECORDS.get(change.table)
    verb = {What.CREATED: "creation", What.UPDATED: "propertyChange", What.DELETED: "deletion"}[change.what]
    notice = {
        "subscriptionType": f"{subject}.{verb}",
        "objectId": int(change.row.id) if change.row.id.isdecimal() else change.row.id,
        "portalId": 1,
        "subscriptionId": 1,
        "attemptNumber": 0,
        "occurredAt": round(now * 1000),
        "changeSource": "CRM_UI",
    }
    return subject and [notice]


def _team_chat(change: RecordChange, now: float) -> Any:
    record, row = change.row.record, change.row
    channel = {"id": row.id, "name": record.get("name")}
    verb = {What.CREATED: "channel_created", What.UPDATED: "channel_rename", What.DELETED: "channel_deleted"}
    events: Mapping[str, Mapping[str, Any]] = {
        "messages": {**record, "type": "message", "channel": row.refs.get("channel")},
        "channels": {"type": verb[change.what], "channel": row.id if change.what is What.DELETED else channel},
        "users": {"type": "team_join" if change.what is What.CREATED else "user_change", "user": record},
    }
    event = events.get(change.table)
    return event and {"type": "event_callback", "team_id": TEAM, "event_time": int(now), "event": event}


def _work_management(change: RecordChange, now: float) -> Any:
    action = {What.CREATED: "added", What.UPDATED: "changed", What.DELETED: "deleted"}[change.what]
    resource = {"gid": change.row.id, "resource_type": _WORK_MANAGEMENT.get(change.table)}
    event = {"action": action, "created_at": iso_time(now), "parent": None, "resource": resource}
    return change.table in _WORK_MANAGEMENT and {"events": [event]}


def _incident_management(change: RecordChange, now: float) -> Any:
    event_type = _INCIDENT_MANAGEMENT.get((change.table, change.what))
    return event_type and {"event_type": event_type, event_type: change.row.record}


def _workspace_notes(change: RecordChange, now: float) -> Any:
    subject, types = _WORKSPACE_NOTES.get(change.table, ("", {}))
    what = What.DELETED if change.row.record.get("in_trash") else change.what
    return what in types and {
        "type": f"{subject}.{types[what]}",
        "workspace_id": "sandbox",
        "attempt_number": 1,
        "authors": [],
        "entity": {"id": change.row.id, "type": subject},
        "data": {},
    }


_SUPPORT_DESK: Mapping[str, tuple[str, Mapping[What, str]]] = {
    "tickets": ("ticket", {What.CREATED: "created", What.UPDATED: "status_changed", What.DELETED: "soft_deleted"}),
    "users": ("user", {What.CREATED: "created", What.UPDATED: "details_changed", What.DELETED: "deleted"}),
    "organizations": (
        "organization",
        {What.CREATED: "created", What.UPDATED: "name_changed", What.DELETED: "deleted"},
    ),
    "articles": (
        "article",
        {What.CREATED: "published", What.UPDATED: "author_changed", What.DELETED: "unpublished"},
    ),
}
_CRM_RECORDS = {"contacts": "contact", "companies": "company", "deals": "deal", "tickets": "ticket"}
_WORK_MANAGEMENT = {
    "tasks": "task",
    "projects": "project",
    "sections": "section",
    "tags": "tag",
    "teams": "team",
    "users": "user",
}
_INCIDENT_MANAGEMENT = {
    ("incidents", What.CREATED): "public_incident.incident_created_v2",
    ("incidents", What.UPDATED): "public_incident.incident_updated_v2",
    ("alerts", What.CREATED): "public_alert.alert_created_v1",
}
_WORKSPACE_NOTES: Mapping[str, tuple[str, Mapping[What, str]]] = {
    "pages": ("page", {What.CREATED: "created", What.UPDATED: "properties_updated", What.DELETED: "deleted"}),
    "blocks": ("page", {What.CREATED: "content_updated", What.UPDATED: "content_updated"}),
    "comments": ("comment", {What.CREATED: "created", What.UPDATED: "updated", What.DELETED: "deleted"}),
    "data_sources": ("data_source", {What.UPDATED: "schema_updated"}),
}
NOTICES: Mapping[str, NoticeOf] = {
    "crm-records": _crm_records,
    "incident-management": _incident_management,
    "support-desk": _support_desk,
    "team-chat": _team_chat,
    "work-management": _work_management,
    "workspace-notes": _workspace_notes,
}
