"""The cases of Jira."""

from base64 import b64encode
from hashlib import sha256

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

KEY = "ACME-7"
ISSUE = f"/rest/api/3/issue/{KEY}"
USER = "5b10ac8d82e05b22cc7d4ef5"
ADF = {"type": "doc", "version": 1, "content": [{"type": "paragraph", "content": [{"type": "text", "text": "Hi"}]}]}
FIELDS = {"project": {"key": "ACME"}, "issuetype": {"name": "Bug"}, "summary": "Printer on fire"}
STAFF = {"type": "role", "value": "Staff"}
#: what the application does with an update that does not say otherwise
QUIET = {
    "notifyUsers": "true",
    "overrideScreenSecurity": "false",
    "overrideEditableFlag": "false",
    "returnIssue": "false",
}
#: the engine derives it from the bytes
BOUNDARY = sha256(b"hi").hexdigest()[:32]
NULLS = "the SDK drops nulls, which clear a field"

CALLS = [
    Call(
        "issues.api_search",
        {"jql": "project = ACME ORDER BY updated", "maxResults": 2, "nextPageToken": "t1", "fields": "summary"},
        "/rest/api/3/search/jql",
        {"jql": "project = ACME ORDER BY updated", "maxResults": "2", "nextPageToken": "t1", "fields": "summary"},
    ),
    Call(
        "issues.api_search",
        {
            "jql": "key = ACME-7",
            "expand": "names",
            "properties": "a,b",
            "fieldsByKeys": True,
            "failFast": False,
        },
        "/rest/api/3/search/jql",
        {
            "jql": "key = ACME-7",
            "maxResults": "50",
            "fields": "*navigable",
            "expand": "names",
            "properties": "a,b",
            "fieldsByKeys": "true",
            "failFast": "false",
        },
    ),
    Call(
        "issues.create",
        {"fields": {**FIELDS, "description": ADF, "customfield_10010": 5}, "update": {"labels": [{"add": "hot"}]}},
        "/rest/api/3/issue",
        {"updateHistory": "false"},
        "POST",
        {"fields": {**FIELDS, "description": ADF, "customfield_10010": 5}, "update": {"labels": [{"add": "hot"}]}},
    ),
    Call("issues.get", {"issueIdOrKey": KEY}, ISSUE),
    Call(
        "issues.get",
        {"issueIdOrKey": KEY, "fields": "summary,status", "expand": "changelog", "updateHistory": True},
        ISSUE,
        {"fields": "summary,status", "expand": "changelog", "updateHistory": "true"},
    ),
    Call(
        "issues.update",
        {"issueIdOrKey": KEY, "fields": {"summary": "Out"}, "transition": {"id": "31"}},
        ISSUE,
        QUIET,
        "PUT",
        {"fields": {"summary": "Out"}, "transition": {"id": "31"}},
    ),
    Call(
        "issues.update",
        {"issueIdOrKey": KEY, "fields": {"assignee": None, "labels": []}, "notifyUsers": False},
        ISSUE,
        {**QUIET, "notifyUsers": "false"},
        "PUT",
        {"fields": {"assignee": None, "labels": []}},
    ),
    Call("issues.delete", {"issueIdOrKey": KEY}, ISSUE, {"deleteSubtasks": "false"}, "DELETE"),
    Call(
        "projects.api_search",
        {"id": [1, 2], "keys": ["A"], "query": "acme", "status": ["live", "archived"], "categoryId": 4},
        "/rest/api/3/project/search",
        [
            ("maxResults", "50"),
            ("orderBy", "key"),
            ("id", "1"),
            ("id", "2"),
            ("keys", "A"),
            ("query", "acme"),
            ("categoryId", "4"),
            ("action", "view"),
            ("status", "live"),
            ("status", "archived"),
        ],
    ),
    Call(
        "projects.get",
        {"projectIdOrKey": "ACME", "expand": "lead"},
        "/rest/api/3/project/ACME",
        {"expand": "lead"},
    ),
    Call(
        "users.get",
        {"accountId": USER, "expand": "groups"},
        "/rest/api/3/user",
        {"accountId": USER, "expand": "groups"},
    ),
    Call("users.list", {"startAt": 50}, "/rest/api/3/users", {"startAt": "50", "maxResults": "50"}),
    Call(
        "users.api_search",
        {"query": "ada", "maxResults": 5},
        "/rest/api/3/user/search",
        {"query": "ada", "maxResults": "5"},
    ),
    Call("issue_fields.list", {}, "/rest/api/3/field"),
    Call(
        "issue_fields.api_search",
        {"type": ["custom"], "id": ["a", "b"], "query": "points", "orderBy": "-name"},
        "/rest/api/3/field/search",
        [
            ("maxResults", "50"),
            ("type", "custom"),
            ("id", "a"),
            ("id", "b"),
            ("query", "points"),
            ("orderBy", "-name"),
        ],
    ),
    Call(
        "issue_comments.list",
        {"issueIdOrKey": KEY, "orderBy": "-created"},
        f"{ISSUE}/comment",
        {"maxResults": "50", "orderBy": "-created"},
    ),
    Call(
        "issue_comments.create",
        {"issueIdOrKey": KEY, "body": ADF, "visibility": STAFF, "expand": "renderedBody"},
        f"{ISSUE}/comment",
        {"expand": "renderedBody"},
        "POST",
        {"body": ADF, "visibility": STAFF},
    ),
    Call("issue_comments.get", {"issueIdOrKey": KEY, "commentId": "10"}, f"{ISSUE}/comment/10"),
    Call(
        "issue_comments.update",
        {"issueIdOrKey": KEY, "commentId": "10", "body": ADF},
        f"{ISSUE}/comment/10",
        {"notifyUsers": "true"},
        "PUT",
        {"body": ADF},
    ),
    Call("issue_comments.delete", {"issueIdOrKey": KEY, "commentId": "10"}, f"{ISSUE}/comment/10", method="DELETE"),
    Call("issue_worklogs.get", {"issueIdOrKey": KEY, "worklogId": "10"}, f"{ISSUE}/worklog/10"),
    Call(
        "issue_worklogs.list",
        {"issueIdOrKey": KEY},
        f"{ISSUE}/worklog",
        {"maxResults": "1000"},
    ),
    Call(
        "issue_worklogs.create",
        {"issueIdOrKey": KEY, "timeSpentSeconds": 3600, "started": "2026-01-17T12:34:00.000+0000", "comment": ADF},
        f"{ISSUE}/worklog",
        {"notifyUsers": "true", "adjustEstimate": "auto"},
        "POST",
        {"timeSpentSeconds": 3600, "started": "2026-01-17T12:34:00.000+0000", "comment": ADF},
    ),
    Call(
        "issues_assignee.update",
        {"issueIdOrKey": KEY, "accountId": USER},
        f"{ISSUE}/assignee",
        method="PUT",
        body={"accountId": USER},
    ),
    Call(
        "issues_assignee.update",
        {"issueIdOrKey": KEY, "accountId": None},
        f"{ISSUE}/assignee",
        method="PUT",
        body={"accountId": None},
        sdk_differs=NULLS,
    ),
    Call(
        "issue_transitions.list",
        {"issueIdOrKey": KEY, "expand": "transitions.fields"},
        f"{ISSUE}/transitions",
        {"expand": "transitions.fields"},
    ),
    Call(
        "issue_transitions.create",
        {"issueIdOrKey": KEY, "transition": {"id": "31"}, "fields": {"resolution": {"name": "Done"}}},
        f"{ISSUE}/transitions",
        method="POST",
        body={"transition": {"id": "31"}, "fields": {"resolution": {"name": "Done"}}},
    ),
    Call(
        "issue_links.create",
        {"type": {"name": "Blocks"}, "inwardIssue": {"key": KEY}, "outwardIssue": {"key": "ACME-8"}},
        "/rest/api/3/issueLink",
        method="POST",
        body={"type": {"name": "Blocks"}, "inwardIssue": {"key": KEY}, "outwardIssue": {"key": "ACME-8"}},
    ),
    Call("issue_links.delete", {"linkId": "9"}, "/rest/api/3/issueLink/9", method="DELETE"),
    Call("issue_link_types.list", {}, "/rest/api/3/issueLinkType"),
    Call("issue_attachments.get", {"attachmentId": "9"}, "/rest/api/3/attachment/9"),
    Call("issue_attachments.download", {"attachmentId": "9"}, "/rest/api/3/attachment/content/9"),
    Call("issue_attachments.delete", {"attachmentId": "9"}, "/rest/api/3/attachment/9", method="DELETE"),
    Call(
        "issue_attachments.create",
        {"issueIdOrKey": KEY, "file": {"content": "aGk=", "filename": "hi.txt", "content_type": "text/plain"}},
        f"{ISSUE}/attachments",
        method="POST",
        body=(
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="hi.txt"\r\n'
            f"Content-Type: text/plain\r\n\r\nhi\r\n--{BOUNDARY}--\r\n"
        ),
        headers={"X-Atlassian-Token": "no-check", "Content-Type": f"multipart/form-data; boundary={BOUNDARY}"},
    ),
    Call("issue_watchers.list", {"issueIdOrKey": KEY}, f"{ISSUE}/watchers"),
    Call(
        "issue_watchers.create", {"issueIdOrKey": KEY, "accountId": USER}, f"{ISSUE}/watchers", method="POST", body=USER
    ),
    Call(
        "issue_watchers.delete",
        {"issueIdOrKey": KEY, "accountId": USER},
        f"{ISSUE}/watchers",
        {"accountId": USER},
        "DELETE",
    ),
    Call("current_user.get", {"expand": "groups"}, "/rest/api/3/myself", {"expand": "groups"}),
    Call(
        "issue_changelogs.list",
        {"issueIdOrKey": "ACME-7", "startAt": 100},
        "/rest/api/3/issue/ACME-7/changelog",
        {"startAt": "100", "maxResults": "100"},
    ),
]
REFUSED = [
    Refused("issues.api_search", {}, "jql", "jql is missing"),
    Refused("issues.api_search", {"jql": "a = b", "maxResults": 5001}, "maxResults", "at most 5000"),
    Refused("issues.api_search", {"jql": "a = b", "startAt": 50}, "startAt", "startAt is not a param"),
    Refused("issues.create", {"fields": {"summary": "x"}}, "fields.project", "missing", ["fields.issuetype"]),
    Refused(
        "issues.create", {"fields": {**FIELDS, "description": "text"}}, "fields.description", "expected object or null"
    ),
    Refused("issues.update", {"issueIdOrKey": KEY}, "", "at least one of fields, update"),
    Refused("issue_comments.create", {"issueIdOrKey": KEY, "body": "hello"}, "body", "object"),
    Refused("issue_worklogs.create", {"issueIdOrKey": KEY}, "", "exactly one of timeSpentSeconds, timeSpent"),
    Refused("users.api_search", {}, "", "at least one of query, accountId, property"),
]
ANSWERS = [
    Answer(
        "issues.api_search",
        {"issues": [{"id": "1"}], "nextPageToken": "t2", "isLast": False},
        [{"id": "1"}],
        {"nextPageToken": "t2", "isLast": False, "total": None},
    ),
    Answer("users.list", [{"accountId": USER}], [{"accountId": USER}], None),
    Answer("issue_fields.list", [{"id": "summary"}], [{"id": "summary"}], None),
    Answer("issue_transitions.list", {"transitions": [{"id": "31"}]}, [{"id": "31"}], None),
    Answer("issue_attachments.create", [{"id": "9"}], {"id": "9"}, None),
    Answer("issues.create", {"id": "1", "key": KEY}, {"id": "1", "key": KEY}, None),
]
FAILURES = [
    *(
        Failure("issues.get", status, {"errorMessages": ["no such issue"], "errors": {}}, error, None, "no such issue")
        for status, error in [
            (400, UpstreamRejected),
            (401, ReauthorizationRequired),
            (403, UpstreamRejected),
            (404, UpstreamNotFound),
            (409, UpstreamRejected),
            (500, UpstreamError),
        ]
    ),
    Failure(
        "issues.get",
        400,
        {"errorMessages": [], "errors": {"priority": "Priority is not valid"}},
        UpstreamRejected,
        None,
        "Priority is not valid",
    ),
    Failure(
        "issues.get", 401, {"code": 401, "message": "Unauthorized"}, ReauthorizationRequired, "401", "Unauthorized"
    ),
    Failure("issues.get", 429, {}, UpstreamRateLimited, headers={"retry-after": "7"}, retry_after=7),
]
PAGES = [
    Pages(
        "issues.api_search",
        {"jql": "a = b", "maxResults": 1},
        [{"issues": [{"id": "1"}], "nextPageToken": "t2", "isLast": False}, {"issues": [{"id": "2"}], "isLast": True}],
        [[{"id": "1"}], [{"id": "2"}]],
        [
            "/rest/api/3/search/jql?jql=a%20%3D%20b&maxResults=1&fields=%2Anavigable",
            "/rest/api/3/search/jql?jql=a%20%3D%20b&nextPageToken=t2&maxResults=1&fields=%2Anavigable",
        ],
    ),
    Pages(
        "projects.api_search",
        {"maxResults": 1},
        [{"values": [{"id": "1"}], "total": 2}, {"values": [{"id": "2"}], "total": 2}],
        [[{"id": "1"}], [{"id": "2"}]],
        [f"/rest/api/3/project/search?{start}maxResults=1&orderBy=key&action=view" for start in ("", "startAt=1&")],
    ),
    Pages(
        "users.list",
        {"maxResults": 1000},
        # The application returns fewer users than requested, and skips those that it may not show.
        [[{"accountId": "1"}, {"accountId": "2"}], [{"accountId": "3"}], []],
        [[{"accountId": "1"}, {"accountId": "2"}], [{"accountId": "3"}], []],
        [f"/rest/api/3/users?{start}maxResults=1000" for start in ("", "startAt=2&", "startAt=3&")],
    ),
]
CASES = Cases(
    "jira",
    "https://acme.atlassian.net",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[
        (
            {"username": "ada@example.com", "password": "key"},
            f"Basic {b64encode(b'ada@example.com:key').decode()}",
        ),
        ({"refresh_token": "r", "access_token": "t"}, "Bearer t"),
    ],
    check=("/rest/api/3/users?maxResults=1", []),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[
        BadCredentials({}, "refresh_token", "api_token (username, password)"),
        BadCredentials({"username": "ada@example.com"}, "password", "password is missing"),
    ],
    environment={"subdomain": "acme"},
)
