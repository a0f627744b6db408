"""The task search of work management: filters and order."""

from collections.abc import Iterable, Mapping

from gateway.sandbox import filters
from gateway.sandbox.kinds.work_management.world import belongs
from gateway.sandbox.store import Row

#: param with comma-separated gids → the member that must have one of them
_ANY: Mapping[str, str] = {
    "assignee.any": "assignee",
    "projects.any": "projects",
    "followers.any": "followers",
    "tags.any": "tags",
}


def matching_tasks(rows: Iterable[Row], query: Mapping[str, str]) -> list[Row]:
    """The tasks that match every param; by default the latest change comes first."""
    kept = [row for row in rows if _agrees(row, query)]
    sort = query.get("sort_by") or "modified_at"
    return filters.ordered(kept, sort, descending=query.get("sort_ascending") != "true")


def _agrees(row: Row, query: Mapping[str, str]) -> bool:
    text = query.get("text", "").lower()
    if text and text not in f"{row.record['name']} {row.record.get('notes') or ''}".lower():
        return False
    if "completed" in query and filters.as_text(row.record.get("completed")) != query["completed"]:
        return False
    if query.get("resource_subtype", row.record["resource_subtype"]) != row.record["resource_subtype"]:
        return False
    for param, member in _ANY.items():
        if param in query and not any(belongs(row, member, gid.strip()) for gid in query[param].split(",")):
            return False
    return all(_is_within(row, member, query) for member in ("created_at", "modified_at", "due_on"))


def _is_within(row: Row, member: str, query: Mapping[str, str]) -> bool:
    after, before = query.get(f"{member}.after"), query.get(f"{member}.before")
    if after is None and before is None:
        return True
    value = row.record.get(member)
    return value is not None and (after is None or value > after) and (before is None or value < before)
