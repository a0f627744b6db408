"""Writes of work management that change more than one record."""

from gateway.sandbox.calls import Call, Refusal, Reply
from gateway.sandbox.kinds.work_management.world import WorkWorld, compact


class Writes:
    """Moves and tags tasks, adds sections, comments and users."""

    def __init__(self, work: WorkWorld) -> None:
        self._work = work

    def create_section(self, call: Call) -> Reply:
        project = self._work.require_row("projects", call.params["project_gid"])
        data = {"name": call.body["data"]["name"], "resource_type": "section", "project": compact(project)}
        return Reply({"data": self._work.add_row("sections", data, call.now).record}, 201)

    def create_tag(self, call: Call) -> Reply:
        workspace = self._work.require_row("workspaces", call.params["workspace_gid"])
        data = {**self._work.resolved(call.body["data"]), "resource_type": "tag", "workspace": compact(workspace)}
        return Reply({"data": self._work.add_row("tags", data, call.now).record}, 201)

    def add_to_section(self, call: Call) -> Reply:
        """Move a task to a section, and into the section's project."""
        section = self._work.require_row("sections", call.params["section_gid"])
        task = self._work.require_row("tasks", call.body["data"]["task"])
        project = section.record["project"]
        others = [one for one in task.record["memberships"] or () if one["project"]["gid"] != project["gid"]]
        projects = [one for one in task.record["projects"] or () if one["gid"] != project["gid"]]
        memberships = [*others, {"project": project, "section": compact(section)}]
        self._work.change(task, {"memberships": memberships, "projects": [*projects, project]}, call.now)
        return Reply({"data": {}})

    def tag(self, call: Call, *, is_added: bool) -> Reply:
        task = self._work.require_row("tasks", call.params["task_gid"])
        tag = self._work.require_row("tags", call.body["data"]["tag"])
        others = [one for one in task.record["tags"] or () if one["gid"] != tag.id]
        self._work.change(task, {"tags": [*others, compact(tag)] if is_added else others}, call.now)
        return Reply({"data": {}})

    def comment(self, call: Call) -> Reply:
        task, data = self._work.require_row("tasks", call.params["task_gid"]), call.body["data"]
        fixed = {"resource_type": "story", "type": "comment", "resource_subtype": "comment_added"}
        who = {
            "created_by": self._work.compact_record("users", 1),
            "target": compact(task),
            "created_at": self._work.time(call.now),
        }
        return Reply({"data": self._work.add_row("task_stories", {**data, **fixed, **who}, call.now).record}, 201)

    def add_user(self, call: Call) -> Reply:
        workspace = self._work.require_row("workspaces", call.params["workspace_gid"])
        wanted = str(call.body["data"]["user"])
        known = [row for row in self._work.store.table("users") if wanted in (row.id, row.record["email"])]
        if not known and "@" not in wanted:
            raise Refusal(400, message=f"user: Not a recognized ID: {wanted}")
        fresh = {"name": wanted, "email": wanted, "resource_type": "user", "workspaces": []}
        row = known[0] if known else self._work.add_row("users", fresh, call.now)
        others = [one for one in row.record["workspaces"] if one["gid"] != workspace.id]
        self._work.change(row, {"workspaces": [*others, compact(workspace)]}, call.now)
        return Reply({"data": row.record})
