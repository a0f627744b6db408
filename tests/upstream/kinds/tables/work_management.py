"""The cases of work management."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

GID = "1203998745612345"
SINCE = "2026-01-31T08:00:00Z"
FIRST_PAGE = {"limit": "20"}
NEXT_PAGE = {"limit": 100, "offset": "eyJ0", "opt_fields": "name,assignee.name"}
NEXT_PAGE_QUERY = {"limit": "100", "offset": "eyJ0", "opt_fields": "name,assignee.name"}

#: reads: action, params, path, query
READS: list[tuple[str, dict[str, Any], str, dict[str, str]]] = [
    ("tasks.list", {"project": GID}, "tasks", {"project": GID, **FIRST_PAGE}),
    (
        "tasks.list",
        {"section": GID, "modified_since": SINCE, "completed_since": SINCE, **NEXT_PAGE},
        "tasks",
        {"section": GID, "modified_since": SINCE, "completed_since": SINCE, **NEXT_PAGE_QUERY},
    ),
    (
        "tasks.list",
        {"assignee": "me", "workspace": GID},
        "tasks",
        {"assignee": "me", "workspace": GID, **FIRST_PAGE},
    ),
    ("tasks.get", {"task_gid": GID}, f"tasks/{GID}", {}),
    ("tasks.get", {"task_gid": GID, "opt_fields": "notes"}, f"tasks/{GID}", {"opt_fields": "notes"}),
    (
        "project_tasks.list",
        {"project_gid": GID, "completed_since": SINCE},
        f"projects/{GID}/tasks",
        {"completed_since": SINCE, **FIRST_PAGE},
    ),
    (
        "workspace_task_search.list",
        {
            "workspace_gid": GID,
            "text": "release notes",
            "completed": False,
            "assignee.any": "1,2",
            "projects.any": "3",
            "sections.any": "4",
            "teams.any": "5",
            "followers.any": "6",
            "created_at.after": SINCE,
            "created_at.before": SINCE,
            "modified_at.after": SINCE,
            "modified_at.before": SINCE,
            "due_on.after": "2026-01-31",
            "due_on.before": "2026-02-28",
            "resource_subtype": "milestone",
            "sort_by": "created_at",
            "sort_ascending": True,
            "limit": 100,
        },
        f"workspaces/{GID}/tasks/search",
        {
            "text": "release notes",
            "completed": "false",
            "assignee.any": "1,2",
            "projects.any": "3",
            "sections.any": "4",
            "teams.any": "5",
            "followers.any": "6",
            "created_at.after": SINCE,
            "created_at.before": SINCE,
            "modified_at.after": SINCE,
            "modified_at.before": SINCE,
            "due_on.after": "2026-01-31",
            "due_on.before": "2026-02-28",
            "resource_subtype": "milestone",
            "sort_by": "created_at",
            "sort_ascending": "true",
            "limit": "100",
        },
    ),
    (
        "projects.list",
        {"workspace": GID, "team": "7", "archived": False, **NEXT_PAGE},
        "projects",
        {"workspace": GID, "team": "7", "archived": "false", **NEXT_PAGE_QUERY},
    ),
    ("projects.get", {"project_gid": GID}, f"projects/{GID}", {}),
    ("task_projects.list", {"task_gid": GID}, f"tasks/{GID}/projects", FIRST_PAGE),
    (
        "team_projects.list",
        {"team_gid": GID, "archived": True},
        f"teams/{GID}/projects",
        {"archived": "true", **FIRST_PAGE},
    ),
    (
        "workspace_projects.list",
        {"workspace_gid": GID, "archived": True},
        f"workspaces/{GID}/projects",
        {"archived": "true", **FIRST_PAGE},
    ),
    ("workspaces.list", {}, "workspaces", FIRST_PAGE),
    ("workspaces.get", {"workspace_gid": GID}, f"workspaces/{GID}", {}),
    ("users.list", {"workspace": GID, "team": "7"}, "users", {"workspace": GID, "team": "7", **FIRST_PAGE}),
    ("users.get", {"user_gid": "ada@example.com"}, "users/ada@example.com", {}),
    ("workspace_users.list", {"workspace_gid": GID}, f"workspaces/{GID}/users", FIRST_PAGE),
    ("team_users.list", {"team_gid": GID, "limit": 3}, f"teams/{GID}/users", {"limit": "3"}),
    ("teams.get", {"team_gid": GID}, f"teams/{GID}", {}),
    ("workspace_teams.list", {"workspace_gid": GID}, f"workspaces/{GID}/teams", FIRST_PAGE),
    (
        "user_teams.list",
        {"user_gid": "me", "organization": GID},
        "users/me/teams",
        {"organization": GID, **FIRST_PAGE},
    ),
    ("attachments.list", {"parent": GID}, "attachments", {"parent": GID, **FIRST_PAGE}),
    ("attachments.get", {"attachment_gid": GID}, f"attachments/{GID}", {}),
    ("attachments.download", {"attachment_gid": GID}, f"attachments/{GID}", {}),
    ("workspace_tags.list", {"workspace_gid": GID}, f"workspaces/{GID}/tags", FIRST_PAGE),
    ("tags.get", {"tag_gid": GID}, f"tags/{GID}", {}),
    ("tag_tasks.list", {"tag_gid": GID}, f"tags/{GID}/tasks", FIRST_PAGE),
    ("project_sections.list", {"project_gid": GID}, f"projects/{GID}/sections", FIRST_PAGE),
    ("sections.get", {"section_gid": GID}, f"sections/{GID}", {}),
    (
        "section_tasks.list",
        {"section_gid": GID, "completed_since": SINCE},
        f"sections/{GID}/tasks",
        {"completed_since": SINCE, **FIRST_PAGE},
    ),
    ("task_subtasks.list", {"task_gid": GID}, f"tasks/{GID}/subtasks", FIRST_PAGE),
    ("task_dependencies.list", {"task_gid": GID}, f"tasks/{GID}/dependencies", FIRST_PAGE),
    ("task_dependents.list", {"task_gid": GID}, f"tasks/{GID}/dependents", FIRST_PAGE),
]

#: writes: action, params of the path, data, method and path
WRITES: list[tuple[str, dict[str, Any], dict[str, Any] | None, str]] = [
    (
        "tasks.create",
        {},
        {
            "name": "Write the release notes",
            "workspace": GID,
            "projects": ["1"],
            "assignee": "me",
            "html_notes": "<body>…</body>",
            "due_at": SINCE,
            "start_on": "2026-01-30",
            "completed": False,
            "parent": "2",
            "tags": ["3"],
            "followers": ["4"],
            "resource_subtype": "milestone",
        },
        "POST tasks",
    ),
    (
        "tasks.update",
        {"task_gid": GID},
        {"name": "Notes", "notes": "", "due_on": None, "completed": True},
        f"PUT tasks/{GID}",
    ),
    ("tasks.delete", {"task_gid": GID}, None, f"DELETE tasks/{GID}"),
    (
        "projects.create",
        {},
        {
            "name": "Release",
            "workspace": GID,
            "team": "7",
            "notes": "",
            "color": "light-green",
            "default_view": "board",
            "due_on": "2026-01-31",
            "privacy_setting": "private",
            "archived": False,
        },
        "POST projects",
    ),
    ("projects.update", {"project_gid": GID}, {"archived": True, "start_on": None}, f"PUT projects/{GID}"),
    ("projects.delete", {"project_gid": GID}, None, f"DELETE projects/{GID}"),
    ("workspace_tags.create", {"workspace_gid": GID}, {"name": "urgent"}, f"POST workspaces/{GID}/tags"),
    ("tags.update", {"tag_gid": GID}, {"color": "light-red"}, f"PUT tags/{GID}"),
    ("tags.delete", {"tag_gid": GID}, None, f"DELETE tags/{GID}"),
    (
        "project_sections.create",
        {"project_gid": GID},
        {"name": "In review", "insert_after": "9"},
        f"POST projects/{GID}/sections",
    ),
    ("sections.update", {"section_gid": GID}, {"name": "Done"}, f"PUT sections/{GID}"),
    ("sections.delete", {"section_gid": GID}, None, f"DELETE sections/{GID}"),
    ("section_tasks.create", {"section_gid": GID}, {"task": "1", "insert_before": "2"}, f"POST sections/{GID}/addTask"),
    ("task_stories.create", {"task_gid": GID}, {"text": "Ready.", "is_pinned": True}, f"POST tasks/{GID}/stories"),
    ("task_tags.create", {"task_gid": GID}, {"tag": "3"}, f"POST tasks/{GID}/addTag"),
    ("task_tags.delete", {"task_gid": GID}, {"tag": "3"}, f"POST tasks/{GID}/removeTag"),
    (
        "workspace_memberships.create",
        {"workspace_gid": GID},
        {"user": "ada@example.com"},
        f"POST workspaces/{GID}/addUser",
    ),
]

ONE_FILTER = "exactly one of project, section, assignee with workspace must be given; given: "
NEXT = {"offset": "eyJ0", "path": "/tasks?limit=1&offset=eyJ0", "uri": "https://app.asana.com/api/1.0/tasks"}

CALLS = [
    *(Call(action, params, f"/{path}", query) for action, params, path, query in READS),
    # A write wraps its fields in `data`.
    *(
        Call(
            action,
            place if data is None else {**place, "data": data},
            "/" + line.partition(" ")[2],
            {},
            line.partition(" ")[0],
            None if data is None else {"data": data},
        )
        for action, place, data, line in WRITES
    ),
    Call(
        "tasks.duplicate",
        {"task_gid": GID, "name": "Again", "include": ["notes", "dates"]},
        f"/tasks/{GID}/duplicate",
        method="POST",
        body={"data": {"name": "Again", "include": "notes,dates"}},
    ),
    Call(
        "projects.duplicate",
        {"project_gid": GID, "name": "Again", "team": "7", "schedule_dates": {"should_skip_weekends": True}},
        f"/projects/{GID}/duplicate",
        method="POST",
        body={"data": {"name": "Again", "team": "7", "schedule_dates": {"should_skip_weekends": True}}},
    ),
]
REFUSED = [
    Refused("tasks.list", {}, "", f"{ONE_FILTER}none"),
    Refused("tasks.list", {"assignee": "me"}, "", f"{ONE_FILTER}assignee"),
    Refused("tasks.list", {"workspace": GID}, "", f"{ONE_FILTER}workspace"),
    Refused("tasks.list", {"project": GID, "section": GID}, "", f"{ONE_FILTER}project, section"),
    Refused(
        "tasks.list",
        {"assignee": "me", "workspace": GID, "modified_since": SINCE},
        "",
        "modified_since needs at least one of project, section",
    ),
    Refused("tasks.list", {"project": GID, "limit": 101}, "limit", "at most 100"),
    Refused("tasks.list", {"project": GID, "modified_since": "yesterday"}, "modified_since", "must be a date-time"),
    Refused("tasks.create", {"data": {"name": "x"}}, "data.workspace", "data.workspace is missing"),
    Refused("tasks.create", {"name": "x", "data": {"name": "x", "workspace": GID}}, "name", "name is not a param"),
    Refused(
        "tasks.create",
        {"data": {"name": "x", "workspace": GID, "resource_subtype": "bug"}},
        "data.resource_subtype",
        "allowed: default_task, milestone, approval, custom",
    ),
    Refused("tasks.update", {"task_gid": GID, "data": {}}, "data", "at least 1 members"),
    Refused("tasks.update", {"task_gid": GID, "data": {"due_on": "31.1."}}, "data.due_on", "must be a date"),
    Refused("tasks.update", {"task_gid": GID, "data": {"asignee": "me"}}, "data.asignee", "did you mean assignee?"),
    Refused(
        "projects.create",
        {"data": {"name": "x", "workspace": GID, "default_view": "gantt"}},
        "data.default_view",
        "allowed: list, board, calendar, timeline",
    ),
    Refused("user_teams.list", {"user_gid": "me"}, "organization", "organization is missing"),
    Refused("attachments.list", {}, "parent", "parent is missing"),
    Refused("workspace_task_search.list", {"workspace_gid": GID, "limit": 101}, "limit", "at most 100"),
    Refused("section_tasks.create", {"section_gid": GID, "data": {}}, "data.task", "data.task is missing"),
]
ANSWERS = [
    Answer(
        "tasks.list",
        b'{"data":[{"gid":"1"}],"next_page":{"offset":"eyJ0","path":"/tasks?limit=1&offset=eyJ0",'
        b'"uri":"https://app.asana.com/api/1.0/tasks"}}',
        [{"gid": "1"}],
        {"next_page": NEXT},
    ),
    Answer("tasks.list", b'{"data":[],"next_page":null}', [], {"next_page": None}),
    Answer("workspace_task_search.list", b'{"data":[{"gid":"1"}]}', [{"gid": "1"}], None),
    Answer("tasks.get", b'{"data":{"gid":"1","name":"x"}}', {"gid": "1", "name": "x"}, None),
    Answer("tasks.delete", b'{"data":{}}', {}, None),
    Answer("task_stories.create", b'{"data":{"gid":"9","type":"comment"}}', {"gid": "9", "type": "comment"}, None),
]
FAILURES = [
    Failure(
        "tasks.list",
        status,
        {"errors": [{"message": "project: Not a Long: x", "help": "see the manual", "phrase": "6 sad squid snuggle"}]},
        error,
        None,
        "project: Not a Long: x",
        "6 sad squid snuggle",
        headers={"retry-after": "7"},
    )
    for status, error in [
        (400, UpstreamRejected),
        (401, ReauthorizationRequired),
        (402, UpstreamRejected),
        (403, UpstreamRejected),
        (404, UpstreamNotFound),
        (412, UpstreamRejected),
        (429, UpstreamRateLimited),
        (451, UpstreamRejected),
        (500, UpstreamError),
        (503, UpstreamError),
    ]
]
BAD_CREDENTIALS = [
    BadCredentials({"access_token": "a"}, "refresh_token", "refresh_token is missing"),
    BadCredentials({"access_token": "a", "refresh_token": "r", "secret": "s"}, "secret", "did you mean client_secret?"),
    BadCredentials({"token": ""}, "token", "token is missing"),
]
PAGES = [
    Pages(
        "tasks.list",
        {"project": GID, "opt_fields": "name"},
        [{"data": [{"gid": "1"}], "next_page": NEXT}, {"data": [{"gid": "2"}], "next_page": None}],
        [[{"gid": "1"}], [{"gid": "2"}]],
        [
            f"/api/1.0/tasks?limit=20&project={GID}&opt_fields=name",
            f"/api/1.0/tasks?limit=20&offset=eyJ0&project={GID}&opt_fields=name",
        ],
    )
]
CASES = Cases(
    "work-management",
    "https://app.asana.com/api/1.0",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[
        ({"token": "t1"}, "Bearer t1"),
        ({"access_token": "t1", "refresh_token": "r"}, "Bearer t1"),
    ],
    check=("/api/1.0/workspaces?limit=1", {"data": [], "next_page": None}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=BAD_CREDENTIALS,
)
