"""The notices of the kinds, in the formats that their vendors document."""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.sandbox.kinds.team_chat.workspace import TEAM
from gateway.sandbox.records import iso_time
from gateway.sandbox.store import ChangeType, RecordChange

#: the change and its Unix time → the body, or a false value if the vendor sends no notice of it
NoticeOf = Callable[[RecordChange, float], Any]


def _support_desk(change: RecordChange, now: float) -> Any:
    subject, types = _SUPPORT_DESK.get(change.table, ("", {}))
    type_ = ChangeType.DELETED if change.row.record.get("status") == "deleted" else change.type
    return type_ in types and {
        "account_id": 1,
        "type": f"zen:event-type:{subject}.{types[type_]}",
        "subject": f"zen:{subject}:{change.row.id}",
        "time": iso_time(now),
        "zendesk_event_version": "2022-06-20",
        "detail": {"id": change.row.id},
        "event": {},
    }


def _crm_records(change: RecordChange, now: float) -> Any:
    subject = _CRM_RECORDS.get(change.table)
    verb = {ChangeType.CREATED: "creation", ChangeType.UPDATED: "propertyChange", ChangeType.DELETED: "deletion"}[
        change.type
    ]
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
    verb = {
        ChangeType.CREATED: "channel_created",
        ChangeType.UPDATED: "channel_rename",
        ChangeType.DELETED: "channel_deleted",
    }
    events: Mapping[str, Mapping[str, Any]] = {
        "messages": {**record, "type": "message", "channel": row.refs.get("channel")},
        "channels": {"type": verb[change.type], "channel": row.id if change.type is ChangeType.DELETED else channel},
        "users": {"type": "team_join" if change.type is ChangeType.CREATED else "user_change", "user": record},
    }
    event = events.get(change.table)
    return event and {"type": "event_callback", "team_id": TEAM, "event_time": int(now), "event": event}


def _work_management(change: RecordChange, now: float) -> Any:
    action = {ChangeType.CREATED: "added", ChangeType.UPDATED: "changed", ChangeType.DELETED: "deleted"}[change.type]
    resource = {"gid": change.row.id, "resource_type": _WORK_MANAGEMENT.get(change.table)}
    event = {"action": action, "created_at": iso_time(now), "parent": None, "resource": resource}
    return change.table in _WORK_MANAGEMENT and {"events": [event]}


def _incident_management(change: RecordChange, now: float) -> Any:
    event_type = _INCIDENT_MANAGEMENT.get((change.table, change.type))
    return event_type and {"event_type": event_type, event_type: change.row.record}


def _workspace_notes(change: RecordChange, now: float) -> Any:
    subject, types = _WORKSPACE_NOTES.get(change.table, ("", {}))
    type_ = ChangeType.DELETED if change.row.record.get("in_trash") else change.type
    return type_ in types and {
        "type": f"{subject}.{types[type_]}",
        "workspace_id": "sandbox",
        "attempt_number": 1,
        "authors": [],
        "entity": {"id": change.row.id, "type": subject},
        "data": {},
    }


_SUPPORT_DESK: Mapping[str, tuple[str, Mapping[ChangeType, str]]] = {
    "tickets": (
        "ticket",
        {ChangeType.CREATED: "created", ChangeType.UPDATED: "status_changed", ChangeType.DELETED: "soft_deleted"},
    ),
    "users": (
        "user",
        {ChangeType.CREATED: "created", ChangeType.UPDATED: "details_changed", ChangeType.DELETED: "deleted"},
    ),
    "organizations": (
        "organization",
        {ChangeType.CREATED: "created", ChangeType.UPDATED: "name_changed", ChangeType.DELETED: "deleted"},
    ),
    "articles": (
        "article",
        {ChangeType.CREATED: "published", ChangeType.UPDATED: "author_changed", ChangeType.DELETED: "unpublished"},
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
    ("incidents", ChangeType.CREATED): "public_incident.incident_created_v2",
    ("incidents", ChangeType.UPDATED): "public_incident.incident_updated_v2",
    ("alerts", ChangeType.CREATED): "public_alert.alert_created_v1",
}
_WORKSPACE_NOTES: Mapping[str, tuple[str, Mapping[ChangeType, str]]] = {
    "pages": (
        "page",
        {ChangeType.CREATED: "created", ChangeType.UPDATED: "properties_updated", ChangeType.DELETED: "deleted"},
    ),
    "blocks": ("page", {ChangeType.CREATED: "content_updated", ChangeType.UPDATED: "content_updated"}),
    "comments": (
        "comment",
        {ChangeType.CREATED: "created", ChangeType.UPDATED: "updated", ChangeType.DELETED: "deleted"},
    ),
    "data_sources": ("data_source", {ChangeType.UPDATED: "schema_updated"}),
}
NOTICES: Mapping[str, NoticeOf] = {
    "crm-records": _crm_records,
    "incident-management": _incident_management,
    "support-desk": _support_desk,
    "team-chat": _team_chat,
    "work-management": _work_management,
    "workspace-notes": _workspace_notes,
}
