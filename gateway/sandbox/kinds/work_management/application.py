"""Work management: lists below parents, paging only with a limit, files at signed URLs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from gateway.kinds.catalog import Operation
from gateway.kinds.suggestions import singular
from gateway.sandbox import paging, records
from gateway.sandbox.application import Route
from gateway.sandbox.calls import Call, FileReply, Handler, Record, Refusal, Reply
from gateway.sandbox.kinds.work_management.search import matching_tasks
from gateway.sandbox.kinds.work_management.world import WorkWorld, belongs, compact
from gateway.sandbox.kinds.work_management.writes import Writes
from gateway.sandbox.oauth import TokenStyle
from gateway.sandbox.store import Row

#: entity → the table of the parent in the path, the listed table, and the listed records' member with the parent
_BELOW: Mapping[str, tuple[str, str, str]] = {
    "project_tasks": ("projects", "tasks", "projects"),
    "project_sections": ("projects", "sections", "project"),
    "tag_tasks": ("tags", "tasks", "tags"),
    "task_dependencies": ("tasks", "tasks", "dependents"),
    "task_dependents": ("tasks", "tasks", "dependencies"),
    "task_subtasks": ("tasks", "tasks", "parent"),
    "team_projects": ("teams", "projects", "team"),
    "team_users": ("teams", "users", "teams"),
    "workspace_projects": ("workspaces", "projects", "workspace"),
    "workspace_tags": ("workspaces", "tags", "workspace"),
    "workspace_teams": ("workspaces", "teams", "organization"),
    "workspace_users": ("workspaces", "users", "workspaces"),
}


class WorkManagement(WorkWorld):
    """Tasks with their projects, sections, tags and attachments."""

    tokens: ClassVar = TokenStyle(
        lifetime=3600,
        repeats_refresh=False,
        outputs=lambda call, pair: {"data": {"gid": "1", "name": "Ada Adler", "email": "ada@example.com"}},
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._writes = Writes(self)

    def shown(self, operation: Operation, row: Row, call: Call) -> Record:
        """The record, or its members in `opt_fields`; records of a list are compact without `opt_fields`."""
        asked = [name.strip() for name in call.query.get("opt_fields", "").split(",") if name.strip()]
        record = self._with_address(row, call)
        if not asked:
            return compact(row) if operation.is_list else record
        chosen: Record = {"gid": row.record["gid"]}
        for name in asked:
            top = name.partition(".")[0]
            if top in record:
                chosen[top] = record[top]
        return chosen

    def _with_address(self, row: Row, call: Call) -> Record:
        """The record; an attachment gets a signed URL, valid for two minutes."""
        if row.record["resource_type"] != "attachment" or row.record.get("host") != "asana":
            return row.record
        expires = int(call.now) + 120
        address = f"{call.origin}/-/files/{row.refs['file']}?expires={expires}&signature=sandbox"
        return {**row.record, "download_url": address, "permanent_url": f"https://app.asana.com/app/{row.id}"}

    def one(self, operation: Operation, row: Row, call: Call) -> Reply:
        return Reply({"data": self.shown(operation, row, call)})

    def listed(self, operation: Operation, rows: Sequence[Row], call: Call) -> Reply:
        """All records at once, or a page if the caller sets a limit."""
        if "limit" not in call.query:
            return Reply({"data": [self.shown(operation, row, call) for row in rows]})
        return super().listed(operation, rows, call)

    def long_outcome(self, operation: Operation, call: Call, now: float) -> Record:
        """Create the copy of a duplication, and return its compact record."""
        table = operation.entity_id
        original = self.require_row(table, next(iter(call.params.values())))
        members = {name: value for name, value in original.record.items() if name not in ("gid", "created_at")}
        copied = self.add_row(table, {**members, "name": call.body["data"]["name"]}, now)
        return {"resource_type": "job", f"new_{singular(table)}": compact(copied)}

    def body_of(self, operation: Operation, call: Call) -> Record:
        """The members in `data`, with the members that every new record has."""
        table = self.table_of(operation)
        always: Record = {"resource_type": table[:-1]}
        if operation.method == "POST" and table == "tasks":
            always |= {"resource_subtype": "default_task", "created_by": self.compact_record("users", 1)}
        return {**always, **self.resolved(call.body.get("data", {}))}

    def delete_record(self, operation: Operation, call: Call) -> Reply:
        super().delete_record(operation, call)
        return Reply({"data": {}})

    def related(self, operation: Operation, call: Call) -> Iterable[Row]:
        """The rows of a list: those of the parent that the path names, or all rows of the table."""
        below = _BELOW.get(operation.entity_id)
        if below is None:
            return self.store.table(self.table_of(operation))
        owners, table, member = below
        owner = self.require_row(owners, next(iter(call.params.values())))
        rows = [row for row in self.store.table(table) if belongs(row, member, owner.id)]
        return _completed_since(rows, call)

    def table_of(self, operation: Operation) -> str:
        below = _BELOW.get(operation.entity_id)
        return below[1] if below else operation.entity_id

    def handlers(self) -> dict[str, Handler]:
        return {
            "GET /tasks": self.tasks,
            "GET /users": self.users,
            "GET /attachments": self.attachments,
            "GET /sections/{section_gid}/tasks": self.section_tasks,
            "GET /tasks/{task_gid}/projects": self.task_projects,
            "GET /users/{user_gid}": self.user,
            "GET /users/{user_gid}/teams": self.user_teams,
            "GET /workspaces/{workspace_gid}/tasks/search": self.search,
            "POST /projects/{project_gid}/sections": self._writes.create_section,
            "POST /sections/{section_gid}/addTask": self._writes.add_to_section,
            "POST /tasks/{task_gid}/addTag": lambda call: self._writes.tag(call, is_added=True),
            "POST /tasks/{task_gid}/removeTag": lambda call: self._writes.tag(call, is_added=False),
            "POST /tasks/{task_gid}/stories": self._writes.comment,
            "POST /workspaces/{workspace_gid}/tags": self._writes.create_tag,
            "POST /workspaces/{workspace_gid}/addUser": self._writes.add_user,
        }

    def files(self) -> list[Route]:
        """The files need no credentials: their URLs are signed."""
        return [Route("GET", "/-/files/{number}", self.file, is_open=True)]

    def file(self, call: Call) -> FileReply:
        if "authorization" in call.headers:
            raise Refusal(400, message="send either the signature or an Authorization header")
        expires = call.query.get("expires", "")
        if call.query.get("signature") != "sandbox" or not expires.isdigit() or int(expires) < call.now:
            raise Refusal(403, message="the signature is invalid or has expired")
        return FileReply(int(call.params["number"]), f"file-{call.params['number']}.bin")

    def tasks(self, call: Call) -> Reply:
        """The tasks of a project, a section or a tag, or those of a person in a workspace."""
        query = call.query
        if not any(query.get(name) for name in ("project", "section", "tag")):
            if not (query.get("assignee") and query.get("workspace")):
                raise Refusal(400, message="specify one of project, section, tag, or assignee and workspace")
            if query.get("modified_since"):
                raise Refusal(400, message="modified_since: needs project or section")
        tests = (("project", "projects"), ("tag", "tags"), ("workspace", "workspace"))
        rows: list[Row] = list(self.store.table("tasks"))
        for param, member in tests:
            if gid := query.get(param):
                rows = [row for row in rows if belongs(row, member, self.require_row(f"{param}s", gid).id)]
        if gid := query.get("section"):
            rows = _in_section(rows, self.require_row("sections", gid).id)
        if gid := query.get("assignee"):
            person = self.pointed("users", gid)["gid"]
            rows = [row for row in rows if belongs(row, "assignee", person)]
        if since := query.get("modified_since"):
            rows = [row for row in rows if str(row.record["modified_at"]) >= since]
        return self.listed(self.kind.operation("tasks", "list"), _completed_since(rows, call), call)

    def users(self, call: Call) -> Reply:
        rows: Iterable[Row] = self.store.table("users")
        if gid := call.query.get("workspace"):
            rows = [row for row in rows if belongs(row, "workspaces", self.require_row("workspaces", gid).id)]
        if gid := call.query.get("team"):
            rows = [row for row in rows if belongs(row, "teams", self.require_row("teams", gid).id)]
        return self.listed(self.kind.operation("users", "list"), list(rows), call)

    def user(self, call: Call) -> Reply:
        row = self.require_row("users", call.params["user_gid"])
        return self.one(self.kind.operation("users", "get"), row, call)

    def attachments(self, call: Call) -> Reply:
        task = self.require_row("tasks", call.query.get("parent", ""))
        rows = [row for row in self.store.table("attachments") if belongs(row, "parent", task.id)]
        return self.listed(self.kind.operation("attachments", "list"), rows, call)

    def section_tasks(self, call: Call) -> Reply:
        section = self.require_row("sections", call.params["section_gid"])
        rows = _completed_since(_in_section(self.store.table("tasks"), section.id), call)
        return self.listed(self.kind.operation("section_tasks", "list"), rows, call)

    def task_projects(self, call: Call) -> Reply:
        task = self.require_row("tasks", call.params["task_gid"])
        rows = [self.require_row("projects", project["gid"]) for project in task.record["projects"] or ()]
        return self.listed(self.kind.operation("task_projects", "list"), rows, call)

    def user_teams(self, call: Call) -> Reply:
        user = self.require_row("users", call.params["user_gid"])
        rows = [self.require_row("teams", team["gid"]) for team in user.refs.get("teams", ())]
        return self.listed(self.kind.operation("user_teams", "list"), rows, call)

    def search(self, call: Call) -> Reply:
        """At most 100 matching tasks, without paging; by default the latest change comes first."""
        workspace = self.require_row("workspaces", call.params["workspace_gid"])
        rows = [row for row in self.store.table("tasks") if belongs(row, "workspace", workspace.id)]
        size = paging.size_asked(call.query, "limit", 20, 100)
        operation = self.kind.operation("workspace_task_search", "list")
        return Reply({"data": [self.shown(operation, row, call) for row in matching_tasks(rows, call.query)[:size]]})


def _in_section(rows: Iterable[Row], gid: str) -> list[Row]:
    return [row for row in rows if any(one["section"]["gid"] == gid for one in row.record.get("memberships") or ())]


def _completed_since(rows: Sequence[Row], call: Call) -> list[Row]:
    """The open tasks, and those that were completed since `completed_since`; with `now` only the open ones."""
    since = call.query.get("completed_since")
    if not since:
        return list(rows)
    bound = records.iso_time(call.now) if since == "now" else since
    return [row for row in rows if not row.record.get("completed") or str(row.record.get("completed_at")) >= bound]
