"""The records of work management; each has its related records in compact form."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from gateway.sandbox import files, words
from gateway.sandbox.application import Application
from gateway.sandbox.calls import Record, Refusal
from gateway.sandbox.store import Row

#: member → the table that it refers to; writes have gids, responses have compact records
POINTERS: Mapping[str, str] = {
    "workspace": "workspaces",
    "workspaces": "workspaces",
    "team": "teams",
    "project": "projects",
    "projects": "projects",
    "parent": "tasks",
    "assignee": "users",
    "owner": "users",
    "followers": "users",
    "members": "users",
    "tags": "tags",
    "created_by": "users",
}
_LOCATED = {"workspaces": "workspace", "stories": "story"}
_SECTIONS = ("To do", "Doing", "Done")


def compact(row: Row) -> Record:
    """The compact form of a record, for lists and other records."""
    members = ("gid", "resource_type", "name", "resource_subtype")
    return {name: row.record[name] for name in members if row.record.get(name) is not None}


class WorkWorld(Application):
    """Two workspaces with teams, projects of three sections, and tasks."""

    counts: ClassVar = {
        "workspaces": 2,
        "teams": 6,
        "users": 60,
        "projects": 30,
        "sections": 30 * len(_SECTIONS),
        "tasks": 600,
        "tags": 20,
        "attachments": 200,
    }
    id_member: ClassVar = "gid"
    changed_member: ClassVar = "modified_at"

    def usual_id(self, table: str, number: int) -> str:
        return str(super().usual_id(table, number))

    def compact_record(self, table: str, number: int) -> Record:
        """The compact form of the n-th record of a table; numbers beyond the last begin again at the first."""
        place = (number - 1) % self.count_of(table) + 1
        return self.pointed(table, str(self.id_of(table, place)))

    def pointed(self, table: str, gid: str) -> Record:
        """The compact form of a record by its gid."""
        return compact(self.require_row(table, gid))

    def ready_made_row(self, table: str, number: int) -> Row:
        row = super().ready_made_row(table, number)
        record = row.record
        record["resource_type"] = _LOCATED.get(table, table[:-1])
        record["permalink_url"] = f"https://app.asana.com/0/0/{row.id}"
        fill = getattr(self, f"_fill_{table}", None)
        if fill is not None:
            fill(number, row)
        return row

    def _fill_teams(self, number: int, row: Row) -> None:
        row.record["organization"] = self.compact_record("workspaces", 1)

    def _fill_users(self, number: int, row: Row) -> None:
        row.record["workspaces"] = [self.compact_record("workspaces", place) for place in (1, 2)]
        row.refs["teams"] = [self.compact_record("teams", number)]

    def _fill_projects(self, number: int, row: Row) -> None:
        row.record |= {"workspace": self.compact_record("workspaces", 1), "team": self.compact_record("teams", number)}
        row.record |= {"owner": self.compact_record("users", number), "archived": number % 10 == 9, "public": True}

    def _fill_sections(self, number: int, row: Row) -> None:
        row.record |= {"name": _SECTIONS[number % 3], "project": self.compact_record("projects", (number - 1) // 3 + 1)}

    def _fill_tags(self, number: int, row: Row) -> None:
        row.record |= {"name": words.TAGS[number % len(words.TAGS)], "workspace": self.compact_record("workspaces", 1)}

    def _fill_tasks(self, number: int, row: Row) -> None:
        """Fill in a task: twenty for each project; every seventh is a subtask of the one before, every tenth depends on
        it."""
        project = (number - 1) // 20 + 1
        section = self.compact_record("sections", (project - 1) * 3 + number % 3 + 1)
        name = f"{words.VERBS[number % len(words.VERBS)]} {words.TOPICS[number % len(words.TOPICS)].lower()}"
        row.record |= {
            "name": name,
            "resource_subtype": "default_task",
            "workspace": self.compact_record("workspaces", 1),
            "projects": [self.compact_record("projects", project)],
            "memberships": [{"project": self.compact_record("projects", project), "section": section}],
            "assignee": self.compact_record("users", number),
            "created_by": self.compact_record("users", number + 1),
            "followers": [self.compact_record("users", number)],
            "tags": [self.compact_record("tags", number)] if number % 3 == 0 else [],
            "completed": number % 3 == 2,
            "parent": self._task(number - 1) if number % 7 == 0 else None,
            "dependencies": [self._task(number - 1)] if number % 10 == 0 else [],
            "dependents": [self._task(number + 1)] if number % 10 == 9 else [],
        }
        if row.record["completed"]:
            row.record["completed_at"] = self.time(row.changed)

    def _task(self, number: int) -> Record:
        """The compact form of a task while the table of tasks is being created; it has no name."""
        return {"gid": self.id_of("tasks", number), "resource_type": "task", "resource_subtype": "default_task"}

    def _fill_attachments(self, number: int, row: Row) -> None:
        task = self.compact_record("tasks", number)
        row.record |= {"name": f"file-{row.id}.bin", "resource_subtype": "asana", "host": "asana", "parent": task}
        row.refs["file"] = files.number_for(3000 + number)
        row.record |= {"size": files.size_of(row.refs["file"]), "download_url": None}
        if number % 50 == 49:
            row.record |= {"resource_subtype": "external", "host": "vimeo", "size": None}

    def require_row(self, table: str, row_id: object) -> Row:
        """The row with a gid; `me` is the first user; any file number finds an attachment, and determines its size."""
        text = str(self.id_of("users", 1)) if table == "users" and row_id == "me" else str(row_id)
        row = self.store.table(table).get(text)
        if row is None and table == "attachments" and files.is_number(text):
            first = next(iter(self.store.table(table)))
            members = {"gid": text, "name": f"file-{text}.bin", "size": files.size_of(int(text))}
            row = Row(text, {**first.record, **members}, {"file": int(text)})
        if row is None:
            raise Refusal(404, message=f"{table[:-1]}: Unknown object: {row_id}")
        return row

    def resolved(self, members: Mapping[str, Any]) -> Record:
        """The members of a write, with gids replaced by their records; raises Refusal for unknown gids."""
        found: Record = {}
        for name, value in members.items():
            table = POINTERS.get(name)
            if table is None or value is None:
                found[name] = value
            elif isinstance(value, list):
                found[name] = [self._named(name, table, gid) for gid in value]
            else:
                found[name] = self._named(name, table, value)
        return found

    def _named(self, name: str, table: str, gid: object) -> Record:
        try:
            return self.pointed(table, str(gid))
        except Refusal as unknown:
            raise Refusal(400, message=f"{name}: Not a recognized ID: {gid}") from unknown


def belongs(row: Row, member: str, gid: str) -> bool:
    """Whether a member of the row, an object or a list of them, has the gid."""
    value = row.value(member)
    named: Iterable[Any] = value if isinstance(value, list) else [value]
    return any(isinstance(one, Mapping) and one.get("gid") == gid for one in named)
