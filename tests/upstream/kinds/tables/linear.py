"""The cases of Linear. Its schema is public: every document was validated against it."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, GraphQL, Pages, Refused

ID = "0b1b1cf7-4b0c-4c0c-9b0a-0d7f3a3f5f11"
SINCE = "2026-01-31T08:00:00Z"
PAGE = {"first": 50}
NEXT_PAGE = {"first": 100, "after": "WyJ0"}

#: action, params, a text of the document, the variables
CALLS_AND_VARIABLES: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("issues.list", {}, "issues(\n", PAGE),
    ("issues.list", NEXT_PAGE, "issues(\n", NEXT_PAGE),
    (
        "issues.list",
        {
            "orderBy": "updatedAt",
            "includeArchived": True,
            "teamId": "t",
            "teamKey": "ENG",
            "assigneeId": "u",
            "assigneeEmail": "ada@example.com",
            "stateId": "s",
            "stateType": "started",
            "projectId": "p",
            "cycleId": "c",
            "labelName": "bug",
            "priority": 1,
            "createdSince": SINCE,
            "updatedSince": SINCE,
        },
        "filter: $filter",
        {
            **PAGE,
            "orderBy": "updatedAt",
            "includeArchived": True,
            "filter": {
                "team": {"id": {"eq": "t"}, "key": {"eq": "ENG"}},
                "assignee": {"id": {"eq": "u"}, "email": {"eq": "ada@example.com"}},
                "state": {"id": {"eq": "s"}, "type": {"eq": "started"}},
                "project": {"id": {"eq": "p"}},
                "cycle": {"id": {"eq": "c"}},
                "labels": {"name": {"eq": "bug"}},
                "priority": {"eq": 1},
                "createdAt": {"gte": SINCE},
                "updatedAt": {"gte": SINCE},
            },
        },
    ),
    (
        "issues.api_search",
        {"term": 'a "quoted" } word', "teamId": "t", "includeComments": True, "includeArchived": False},
        "searchIssues(",
        {**PAGE, "term": 'a "quoted" } word', "teamId": "t", "includeComments": True, "includeArchived": False},
    ),
    ("issues.get", {"id": "ENG-123"}, "issue(id: $id)", {"id": "ENG-123"}),
    (
        "issues.create",
        {
            "teamId": "t",
            "title": "Login fails",
            "description": "Since *today*.",
            "stateId": "s",
            "priority": 2,
            "projectId": "p",
        },
        "issueCreate(input: $input)",
        {
            "input": {
                "teamId": "t",
                "title": "Login fails",
                "description": "Since *today*.",
                "stateId": "s",
                "priority": 2,
                "projectId": "p",
            }
        },
    ),
    (
        "issues.create",
        {
            "teamId": "t",
            "title": "x",
            "assigneeId": "u",
            "parentId": "i",
            "cycleId": "c",
            "labelIds": ["l"],
            "estimate": 3,
            "dueDate": "2026-02-28",
        },
        "issueCreate(input: $input)",
        {
            "input": {
                "teamId": "t",
                "title": "x",
                "assigneeId": "u",
                "parentId": "i",
                "cycleId": "c",
                "labelIds": ["l"],
                "estimate": 3,
                "dueDate": "2026-02-28",
            }
        },
    ),
    (
        "issues.update",
        {
            "id": ID,
            "title": "Login",
            "description": "x",
            "stateId": "s",
            "priority": 0,
            "assigneeId": "u",
            "projectId": "p",
        },
        "issueUpdate(id: $id, input: $input)",
        {
            "id": ID,
            "input": {
                "title": "Login",
                "description": "x",
                "stateId": "s",
                "priority": 0,
                "assigneeId": "u",
                "projectId": "p",
            },
        },
    ),
    (
        "issues.update",
        {
            "id": ID,
            "parentId": None,
            "cycleId": None,
            "teamId": "t",
            "labelIds": [],
            "addedLabelIds": ["l"],
            "removedLabelIds": ["m"],
            "estimate": None,
            "dueDate": None,
        },
        "issueUpdate(id: $id, input: $input)",
        {
            "id": ID,
            "input": {
                "parentId": None,
                "cycleId": None,
                "teamId": "t",
                "labelIds": [],
                "addedLabelIds": ["l"],
                "removedLabelIds": ["m"],
                "estimate": None,
                "dueDate": None,
            },
        },
    ),
    ("issues.archive", {"id": ID}, "issueArchive(id: $id)", {"id": ID}),
    ("issues.delete", {"id": ID}, "issueDelete(id: $id)", {"id": ID}),
    ("projects.list", NEXT_PAGE, "projects(filter: $filter", NEXT_PAGE),
    (
        "projects.list",
        {"orderBy": "createdAt", "name": "api", "statusType": "started", "leadId": "u", "updatedSince": SINCE},
        "projects(filter: $filter",
        {
            **PAGE,
            "orderBy": "createdAt",
            "filter": {
                "name": {"containsIgnoreCase": "api"},
                "status": {"type": {"eq": "started"}},
                "lead": {"id": {"eq": "u"}},
                "updatedAt": {"gte": SINCE},
            },
        },
    ),
    ("projects.get", {"id": ID}, "project(id: $id)", {"id": ID}),
    (
        "projects.create",
        {
            "name": "Migration",
            "teamIds": ["t"],
            "description": "x",
            "leadId": "u",
            "startDate": "2026-01-31",
            "targetDate": "2026-02-28",
        },
        "projectCreate(input: $input)",
        {
            "input": {
                "name": "Migration",
                "teamIds": ["t"],
                "description": "x",
                "leadId": "u",
                "startDate": "2026-01-31",
                "targetDate": "2026-02-28",
            }
        },
    ),
    (
        "projects.create",
        {"name": "x", "teamIds": ["t"], "content": "# Plan", "statusId": "s", "priority": 3},
        "projectCreate(input: $input)",
        {"input": {"name": "x", "teamIds": ["t"], "content": "# Plan", "statusId": "s", "priority": 3}},
    ),
    (
        "projects.update",
        {
            "id": ID,
            "name": "x",
            "description": "y",
            "startDate": "2026-01-31",
            "targetDate": "2026-02-28",
            "leadId": "u",
        },
        "projectUpdate(id: $id, input: $input)",
        {
            "id": ID,
            "input": {
                "name": "x",
                "description": "y",
                "startDate": "2026-01-31",
                "targetDate": "2026-02-28",
                "leadId": "u",
            },
        },
    ),
    (
        "projects.update",
        {"id": ID, "content": "", "statusId": "s", "priority": 4, "teamIds": ["t"]},
        "projectUpdate(id: $id, input: $input)",
        {"id": ID, "input": {"content": "", "statusId": "s", "priority": 4, "teamIds": ["t"]}},
    ),
    ("project_statuses.list", {}, "projectStatuses(first: $first", PAGE),
    ("teams.list", {"limit": 3}, "teams(first: $first", {"first": 3}),
    ("teams.list", {}, "teams(first: $first", PAGE),
    ("teams.get", {"id": ID}, "team(id: $id)", {"id": ID}),
    ("workflow_states.list", NEXT_PAGE, "workflowStates(filter: $filter", NEXT_PAGE),
    (
        "workflow_states.list",
        {"teamId": "t", "teamKey": "ENG"},
        "workflowStates(filter: $filter",
        {**PAGE, "filter": {"team": {"id": {"eq": "t"}, "key": {"eq": "ENG"}}}},
    ),
    ("users.list", NEXT_PAGE, "users(filter: $filter", NEXT_PAGE),
    (
        "users.list",
        {"email": "ada@example.com", "name": "ada", "isMe": True, "includeDisabled": True},
        "users(filter: $filter",
        {
            **PAGE,
            "includeDisabled": True,
            "filter": {
                "email": {"eq": "ada@example.com"},
                "name": {"containsIgnoreCase": "ada"},
                "isMe": {"eq": True},
            },
        },
    ),
    ("users.get", {"id": ID}, "user(id: $id)", {"id": ID}),
    ("comments.list", {"issueId": "ENG-123", **NEXT_PAGE}, "comments(first", {"issueId": "ENG-123", **NEXT_PAGE}),
    ("comments.get", {"id": ID}, "comment(id: $id)", {"id": ID}),
    (
        "comments.create",
        {"issueId": "ENG-123", "body": "Ready."},
        "commentCreate(input: $input)",
        {"input": {"issueId": "ENG-123", "body": "Ready."}},
    ),
    (
        "comments.create",
        {"issueId": "ENG-123", "body": "Ready.", "parentId": "c"},
        "commentCreate(input: $input)",
        {"input": {"issueId": "ENG-123", "body": "Ready.", "parentId": "c"}},
    ),
    ("comments.update", {"id": ID, "body": "x"}, "commentUpdate(id: $id", {"id": ID, "input": {"body": "x"}}),
    ("comments.delete", {"id": ID}, "commentDelete(id: $id)", {"id": ID}),
    (
        "issue_labels.list",
        {"name": "bug", "teamId": "t"},
        "issueLabels(filter: $filter",
        {**PAGE, "filter": {"name": {"eq": "bug"}, "team": {"id": {"eq": "t"}}}},
    ),
    (
        "issue_labels.create",
        {"name": "bug", "teamId": "t", "color": "#eb5757", "description": "x", "parentId": "g"},
        "issueLabelCreate(input: $input)",
        {"input": {"name": "bug", "teamId": "t", "color": "#eb5757", "description": "x", "parentId": "g"}},
    ),
    (
        "cycles.list",
        {"teamId": "t", "teamKey": "ENG", "isActive": True},
        "cycles(filter: $filter",
        {**PAGE, "filter": {"team": {"id": {"eq": "t"}, "key": {"eq": "ENG"}}, "isActive": {"eq": True}}},
    ),
    ("attachments.list", {"issueId": "ENG-123"}, "attachments(first", {"issueId": "ENG-123", **PAGE}),
    (
        "attachments.create",
        {"issueId": "ENG-123", "url": "https://example.com/1", "title": "Logs"},
        "attachmentLinkURL(",
        {"issueId": "ENG-123", "url": "https://example.com/1", "title": "Logs"},
    ),
    ("issue_relations.list", {"issueId": "ENG-123"}, "relations(first", {"issueId": "ENG-123", **PAGE}),
    (
        "issue_relations.create",
        {"issueId": "ENG-1", "relatedIssueId": "ENG-2", "type": "blocks"},
        "issueRelationCreate(",
        {"input": {"issueId": "ENG-1", "relatedIssueId": "ENG-2", "type": "blocks"}},
    ),
    (
        "issues.list",
        {"stateType": "duplicate"},
        "issues(\n",
        {**PAGE, "filter": {"state": {"type": {"eq": "duplicate"}}}},
    ),
    ("project_updates.list", {"projectId": "p1"}, "projectUpdates(first", {"projectId": "p1", **PAGE}),
    (
        "project_updates.create",
        {"projectId": "p1", "body": "Half done", "health": "onTrack"},
        "projectUpdateCreate(",
        {"input": {"projectId": "p1", "body": "Half done", "health": "onTrack"}},
    ),
]


def page_of(name: str, records: list[Any], end: str | None) -> dict[str, Any]:
    info = {"hasNextPage": end is not None, "endCursor": end}
    return {"data": {name: {"nodes": records, "pageInfo": info}}}


def said(code: str, kind: str, message: str) -> dict[str, Any]:
    """An error as the application words it."""
    return {"errors": [{"message": message, "extensions": {"code": code, "type": kind, "userError": True}}]}


CALLS = [
    Call(action, params, "/graphql", {}, "POST", GraphQL(text, variables))
    for action, params, text, variables in CALLS_AND_VARIABLES
] + [
    Call(
        "issues.update",
        {"id": ID, "assigneeId": None, "projectId": None},
        "/graphql",
        {},
        "POST",
        GraphQL("issueUpdate(", {"id": ID, "input": {"assigneeId": None, "projectId": None}}),
        sdk_differs="it drops nulls, which clear the members",
    )
]
REFUSED = [
    Refused("issues.list", {"first": 251}, "first", "at most 250"),
    Refused("issues.list", {"stateType": "open"}, "stateType", "allowed: triage, backlog"),
    Refused("issues.create", {"title": "x"}, "teamId", "teamId is missing"),
    Refused("issues.create", {"teamId": "t", "title": "x", "priority": 5}, "priority", "allowed: 0, 1, 2, 3, 4"),
    # The application would answer that it changed something.
    Refused("issues.update", {"id": ID}, "", "at least 2"),
    Refused("projects.create", {"name": "x", "teamIds": []}, "teamIds", "at least 1"),
    Refused("projects.update", {"id": ID, "state": "started"}, "state", "send `statusId`"),
    Refused("projects.update", {"id": ID, "targetDate": "31.1."}, "targetDate", "must be a date"),
    Refused("comments.create", {"issueId": "ENG-1", "body": ""}, "body", "at least 1"),
    Refused("issue_labels.create", {"name": "x", "color": "red"}, "color", "color"),
]
ANSWERS = [
    Answer(
        "issues.list",
        page_of("issues", [{"id": "1"}], "WyJ0"),
        [{"id": "1"}],
        {"hasNextPage": True, "endCursor": "WyJ0"},
    ),
    Answer(
        "comments.list",
        {"data": {"issue": page_of("comments", [{"id": "1"}], None)["data"]}},
        [{"id": "1"}],
        {"hasNextPage": False, "endCursor": None},
    ),
    Answer("issues.get", {"data": {"issue": {"id": "1"}}}, {"id": "1"}, None),
    Answer(
        "issues.create",
        {"data": {"issueCreate": {"success": True, "issue": {"id": "1"}}}},
        {"success": True, "issue": {"id": "1"}},
        None,
    ),
]
FAILURES = [
    Failure("issues.get", status, said(code, kind, "no"), error, code, "no", headers=headers, retry_after=wait)
    for status, code, kind, error, headers, wait in [
        (200, "INPUT_ERROR", "invalid input", UpstreamRejected, {}, None),
        (400, "GRAPHQL_VALIDATION_FAILED", "graphql error", UpstreamRejected, {}, None),
        (400, "RATELIMITED", "ratelimited", UpstreamRateLimited, {"retry-after": "7"}, 7),
        (400, "RATELIMITED", "ratelimited", UpstreamRateLimited, {}, 60),
        (401, "AUTHENTICATION_ERROR", "authentication error", ReauthorizationRequired, {}, None),
        (200, "AUTHENTICATION_ERROR", "authentication error", ReauthorizationRequired, {}, None),
        (403, "FORBIDDEN", "forbidden", UpstreamRejected, {}, None),
        (200, "INTERNAL_SERVER_ERROR", "internal error", UpstreamError, {}, None),
        (500, "INTERNAL_SERVER_ERROR", "internal error", UpstreamError, {}, None),
    ]
]
BAD_CREDENTIALS = [
    BadCredentials({"access_token": "a"}, "refresh_token", "refresh_token is missing"),
    BadCredentials({"api_key": ""}, "api_key", "api_key is missing"),
]
PAGES = [
    Pages(
        "issues.list",
        {"teamKey": "ENG"},
        [page_of("issues", [{"id": "1"}], "WyJ0"), page_of("issues", [{"id": "2"}], None)],
        [[{"id": "1"}], [{"id": "2"}]],
        ["/graphql", "/graphql"],
        [
            GraphQL("issues(", {"first": 50, "filter": {"team": {"key": {"eq": "ENG"}}}}),
            GraphQL("issues(", {"first": 50, "filter": {"team": {"key": {"eq": "ENG"}}}, "after": "WyJ0"}),
        ],
    )
]
CASES = Cases(
    "linear",
    "https://api.linear.app",
    CALLS,
    REFUSED,
    FAILURES,
    # A personal key is the whole header: the application refuses `Bearer` before it.
    authorizations=[
        ({"api_key": "lin_api_1"}, "lin_api_1"),
        ({"access_token": "t1", "refresh_token": "r"}, "Bearer t1"),
    ],
    check=("/graphql", page_of("users", [], None)),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=BAD_CREDENTIALS,
)
