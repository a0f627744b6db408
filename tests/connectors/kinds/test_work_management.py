"""Work management: every action as it goes over the wire, and every answer as it comes back."""

from typing import Any

import pytest
from yarl import URL

from gateway.connectors.auth import checked_credentials, headers_for
from gateway.connectors.responses import UpstreamResponse
from gateway.errors import (
    InvalidCredentials,
    InvalidParams,
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.kinds.catalog import load_kind, shipped_specs
from gateway.kinds.params import validated
from gateway.kinds.spec import Effect
from tests.connectors.judged import read

KIND = load_kind(shipped_specs() / "work-management")
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


def test_every_action_has_a_case():
    cases = {case[0] for case in (*READS, *WRITES)}

    assert cases == {str(operation) for operation in KIND.operations.values()}


@pytest.mark.parametrize(("action", "params", "path", "query"), READS)
def test_a_read_makes_its_request(offline, action, params, path, query):
    [shown] = offline("work-management").dry_run(*action.split("."), params)

    url = URL(shown["url"])
    assert (shown["method"], url.host, url.path) == ("GET", "app.asana.com", f"/api/1.0/{path}")
    assert dict(url.query) == query
    assert shown["body"] is None


@pytest.mark.parametrize(("action", "place", "data", "request_line"), WRITES)
def test_a_write_wraps_its_fields_in_data(offline, action, place, data, request_line):
    params = place if data is None else {**place, "data": data}

    [shown] = offline("work-management").dry_run(*action.split("."), params)

    method, path = request_line.split(" ")
    assert (shown["method"], shown["url"]) == (method, f"https://app.asana.com/api/1.0/{path}")
    assert shown["body"] == (None if data is None else {"data": data})
    assert shown["headers"].get("Content-Type") == (None if data is None else "application/json")


def test_a_search_refuses_an_offset_and_says_how_to_go_on():
    with pytest.raises(InvalidParams) as refused:
        validated(KIND.operation("workspace_task_search", "list"), {"workspace_gid": GID, "offset": "eyJ0", "limit": 2})

    [fault] = refused.value.faults
    assert fault.field == "offset"
    assert "send sort_by created_at and created_at.before" in fault.message


@pytest.mark.parametrize(
    ("action", "data"),
    [
        ("tasks.create", {"name": "x", "workspace": GID, "resource_subtype": "section"}),
        ("projects.update", {"color": "pink"}),
    ],
)
def test_what_the_application_refuses_is_refused_before_it_is_sent(action, data):
    ids = {"projects.update": {"project_gid": GID}}.get(action, {})

    with pytest.raises(InvalidParams, match="allowed: "):
        validated(KIND.operation(*action.split(".")), {**ids, "data": data})


def test_null_clears_a_colour():
    operation = KIND.operation("projects", "update")

    assert validated(operation, {"project_gid": GID, "data": {"color": None}})["data"] == {"color": None}


@pytest.mark.parametrize("operation", KIND.operations.values(), ids=str)
def test_every_example_is_valid(operation):
    assert validated(operation, operation.action.example).keys() >= operation.action.example.keys()


def test_every_read_of_records_can_ask_for_more_fields():
    without = {
        str(operation)
        for operation in KIND.operations.values()
        if operation.action.effect is Effect.READ and "opt_fields" not in operation.action.params
    }

    assert without == {"attachments.download"}


def test_only_what_adds_something_is_a_write():
    effects = {str(operation): operation.action.effect for operation in KIND.operations.values()}

    assert {name for name, effect in effects.items() if effect is Effect.READ} == {case[0] for case in READS}
    assert {name for name, effect in effects.items() if effect is Effect.WRITE} == {
        "tasks.create",
        "projects.create",
        "project_sections.create",
        "task_stories.create",
        "workspace_tags.create",
    }


ONE_FILTER = "exactly one of project, section, assignee with workspace must be given; given: "


@pytest.mark.parametrize(
    ("action", "params", "field", "said"),
    [
        ("tasks.list", {}, "", f"{ONE_FILTER}none"),
        ("tasks.list", {"assignee": "me"}, "", f"{ONE_FILTER}assignee"),
        ("tasks.list", {"workspace": GID}, "", f"{ONE_FILTER}workspace"),
        ("tasks.list", {"project": GID, "section": GID}, "", f"{ONE_FILTER}project, section"),
        (
            "tasks.list",
            {"assignee": "me", "workspace": GID, "modified_since": SINCE},
            "",
            "modified_since needs at least one of project, section",
        ),
        ("tasks.list", {"project": GID, "limit": 101}, "limit", "at most 100"),
        ("tasks.list", {"project": GID, "modified_since": "yesterday"}, "modified_since", "must be a date-time"),
        ("tasks.create", {"data": {"name": "x"}}, "data.workspace", "data.workspace is missing"),
        ("tasks.create", {"name": "x", "data": {"name": "x", "workspace": GID}}, "name", "name is not a param"),
        (
            "tasks.create",
            {"data": {"name": "x", "workspace": GID, "resource_subtype": "bug"}},
            "data.resource_subtype",
            "allowed: default_task, milestone, approval, custom",
        ),
        ("tasks.update", {"task_gid": GID, "data": {}}, "data", "at least 1 members"),
        ("tasks.update", {"task_gid": GID, "data": {"due_on": "31.1."}}, "data.due_on", "must be a date"),
        ("tasks.update", {"task_gid": GID, "data": {"asignee": "me"}}, "data.asignee", "did you mean assignee?"),
        (
            "projects.create",
            {"data": {"name": "x", "workspace": GID, "default_view": "gantt"}},
            "data.default_view",
            "allowed: list, board, calendar, timeline",
        ),
        ("user_teams.list", {"user_gid": "me"}, "organization", "organization is missing"),
        ("attachments.list", {}, "parent", "parent is missing"),
        ("workspace_task_search.list", {"workspace_gid": GID, "limit": 101}, "limit", "at most 100"),
        ("section_tasks.create", {"section_gid": GID, "data": {}}, "data.task", "data.task is missing"),
    ],
)
def test_params_that_cannot_be_sent_are_refused_with_the_way_to_mend_them(action, params, field, said):
    with pytest.raises(InvalidParams) as refused:
        validated(KIND.operation(*action.split(".")), params)

    [fault] = refused.value.faults
    assert fault.field == field
    assert said in fault.message


NEXT = {"offset": "eyJ0", "path": "/tasks?limit=1&offset=eyJ0", "uri": "https://app.asana.com/api/1.0/tasks"}


@pytest.mark.parametrize(
    ("action", "body", "records", "meta"),
    [
        (
            "tasks.list",
            b'{"data":[{"gid":"1"}],"next_page":{"offset":"eyJ0","path":"/tasks?limit=1&offset=eyJ0",'
            b'"uri":"https://app.asana.com/api/1.0/tasks"}}',
            [{"gid": "1"}],
            {"next_page": NEXT},
        ),
        ("tasks.list", b'{"data":[],"next_page":null}', [], {"next_page": None}),
        ("workspace_task_search.list", b'{"data":[{"gid":"1"}]}', [{"gid": "1"}], None),
        ("tasks.get", b'{"data":{"gid":"1","name":"x"}}', {"gid": "1", "name": "x"}, None),
        ("tasks.delete", b'{"data":{}}', {}, None),
        ("task_stories.create", b'{"data":{"gid":"9","type":"comment"}}', {"gid": "9", "type": "comment"}, None),
    ],
)
def test_an_answer_is_read_into_records_and_meta(action, body, records, meta):
    answer = read(KIND.operation(*action.split(".")), UpstreamResponse(200, {}, body))

    assert answer.decoded() == records
    assert answer.meta == meta


@pytest.mark.parametrize(
    ("status", "error"),
    [
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
    ],
)
def test_a_failure_is_read_for_what_it_means(status, error):
    body = b'{"errors":[{"message":"project: Not a Long: x","help":"see the manual","phrase":"6 sad squid snuggle"}]}'

    with pytest.raises(error) as raised:
        read(KIND.operation("tasks", "list"), UpstreamResponse(status, {"retry-after": "7"}, body))

    said = raised.value.upstream
    assert type(raised.value) is error
    assert (said.status, said.message, said.request_id) == (status, "project: Not a Long: x", "6 sad squid snuggle")


@pytest.mark.parametrize(
    ("credentials", "method"),
    [
        ({"refresh_token": "r"}, "oauth"),
        ({"access_token": "a", "refresh_token": "r", "client_id": "i", "client_secret": "s"}, "oauth"),
        ({"token": "t"}, "token"),
    ],
)
def test_a_refresh_token_or_a_personal_token_is_enough(credentials, method):
    assert checked_credentials(KIND.spec, credentials) == (method, credentials)


@pytest.mark.parametrize(
    ("credentials", "said"),
    [
        ({"access_token": "a"}, "refresh_token is missing"),
        ({"access_token": "a", "refresh_token": "r", "secret": "s"}, "did you mean client_secret?"),
        ({"token": ""}, "token is missing"),
    ],
)
def test_credentials_that_cannot_work_are_refused_by_name(credentials, said):
    with pytest.raises(InvalidCredentials) as refused:
        checked_credentials(KIND.spec, credentials)

    assert said in refused.value.detail


def test_a_bare_refresh_token_proves_nothing_until_it_was_exchanged():
    with pytest.raises(ReauthorizationRequired, match="no access_token yet"):
        headers_for(KIND.spec.authentication["oauth"], {"refresh_token": "r"})


@pytest.mark.parametrize("credentials", [{"token": "t1"}, {"access_token": "t1", "refresh_token": "r"}])
async def test_pages_are_turned_by_the_offset_with_the_token_on_each_request(upstream, connect, credentials):
    upstream.answers({"data": [{"gid": "1"}], "next_page": NEXT})
    upstream.answers({"data": [{"gid": "2"}], "next_page": None})

    pages = connect("work-management", credentials).pages("tasks", "list", {"project": GID, "opt_fields": "name"})
    records = [page.decoded() async for page in pages]

    assert records == [[{"gid": "1"}], [{"gid": "2"}]]
    assert [dict(received.url.query) for received in upstream.received] == [
        {"project": GID, "limit": "20", "opt_fields": "name"},
        {"project": GID, "limit": "20", "opt_fields": "name", "offset": "eyJ0"},
    ]
    assert {received.headers["Authorization"] for received in upstream.received} == {"Bearer t1"}


async def test_the_health_check_asks_for_one_workspace(upstream, connect):
    upstream.answers({"data": [], "next_page": None})

    await connect("work-management", {"token": "t1"}).check()

    assert str(upstream.received[0].url) == "/api/1.0/workspaces?limit=1"
