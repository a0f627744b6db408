"""The cases of Sentry."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ORG = {"organization_slug": "acme"}
PROJECT = {**ORG, "project_slug": "checkout"}
ISSUE = {**ORG, "issue_id": "4509877362"}
#: a version may hold what a path does not
RELEASE = {**ORG, "version": "checkout@2.4.1+a/b"}
OF_ORG = "/organizations/acme"
OF_PROJECT = "/projects/acme/checkout"
OF_ISSUE = f"{OF_ORG}/issues/4509877362"
OF_RELEASE = f"{OF_ORG}/releases/checkout@2.4.1%2Ba%2Fb"
EVENT = "9fac2ceed9344f2bbfdd1fdacb0ed9b1"
CURSOR = "0:100:0"
COMMITS = [{"id": "a1b2", "repository": "acme/checkout"}]

CALLS = [
    Call("organizations.list", {"owner": True, "limit": 5}, "/organizations/", {"owner": "true", "per_page": "5"}),
    Call("organizations.get", ORG, f"{OF_ORG}/"),
    Call("projects.list", {**ORG, "cursor": CURSOR}, f"{OF_ORG}/projects/", {"cursor": CURSOR}),
    Call("projects.get", PROJECT, f"{OF_PROJECT}/"),
    Call(
        "projects.create",
        {**ORG, "team_slug": "shop", "name": "Checkout", "platform": "python", "default_rules": False},
        "/teams/acme/shop/projects/",
        method="POST",
        body={"name": "Checkout", "platform": "python", "default_rules": False},
    ),
    Call(
        "projects.update",
        {**PROJECT, "platform": None, "resolveAge": 0},
        f"{OF_PROJECT}/",
        method="PUT",
        body={"platform": None, "resolveAge": 0},
    ),
    Call("project_detail.get", PROJECT, f"{OF_PROJECT}/"),
    Call(
        "issues.list",
        {**PROJECT, "query": "is:unresolved", "statsPeriod": "14d", "cursor": CURSOR},
        f"{OF_PROJECT}/issues/",
        {"query": "is:unresolved", "statsPeriod": "14d", "cursor": CURSOR},
    ),
    # an empty query is not the same as none, which means is:unresolved
    Call("issues.list", {**PROJECT, "query": ""}, f"{OF_PROJECT}/issues/", {"query": ""}),
    Call(
        "issues.list", {**PROJECT, "limit": 5, "sort": "freq"}, f"{OF_PROJECT}/issues/", {"limit": "5", "sort": "freq"}
    ),
    Call(
        "issues.api_search",
        {
            **ORG,
            "query": "level:fatal",
            "project": ["checkout", 7],
            "environment": ["production"],
            "statsPeriod": "90d",
        },
        f"{OF_ORG}/issues/",
        [
            ("query", "level:fatal"),
            ("project", "checkout"),
            ("project", "7"),
            ("environment", "production"),
            ("statsPeriod", "90d"),
        ],
    ),
    Call("issues.get", ISSUE, f"{OF_ISSUE}/"),
    Call(
        "issues.update",
        {**ISSUE, "status": "resolved", "statusDetails": {"inNextRelease": True}, "assignedTo": ""},
        f"{OF_ISSUE}/",
        method="PUT",
        body={"status": "resolved", "statusDetails": {"inNextRelease": True}, "assignedTo": ""},
    ),
    Call("issues.delete", ISSUE, f"{OF_ISSUE}/", method="DELETE"),
    Call(
        "events.list",
        {**PROJECT, "full": "true", "cursor": CURSOR},
        f"{OF_PROJECT}/events/",
        {"full": "true", "cursor": CURSOR},
    ),
    Call(
        "events.list",
        {**PROJECT, "full": True, "sample": True},
        f"{OF_PROJECT}/events/",
        {"full": "true", "sample": "true"},
    ),
    Call("events.get", {**PROJECT, "event_id": EVENT}, f"{OF_PROJECT}/events/{EVENT}/"),
    Call(
        "issue_events.list",
        {**ISSUE, "environment": ["production", "staging"], "full": True, "limit": 5},
        f"{OF_ISSUE}/events/",
        [("environment", "production"), ("environment", "staging"), ("full", "true"), ("per_page", "5")],
    ),
    Call("issue_events.get", {**ISSUE, "event_id": "latest"}, f"{OF_ISSUE}/events/latest/"),
    Call("comments.list", ISSUE, f"{OF_ISSUE}/comments/"),
    Call(
        "comments.create",
        {**ISSUE, "text": "Since 2.4"},
        f"{OF_ISSUE}/comments/",
        method="POST",
        body={"text": "Since 2.4"},
    ),
    Call(
        "comments.update",
        {**ISSUE, "comment_id": "11", "text": "Since 2.3"},
        f"{OF_ISSUE}/comments/11/",
        method="PUT",
        body={"text": "Since 2.3"},
    ),
    Call("comments.delete", {**ISSUE, "comment_id": "11"}, f"{OF_ISSUE}/comments/11/", method="DELETE"),
    Call(
        "releases.list",
        {**ORG, "query": "2.4", "cursor": CURSOR},
        f"{OF_ORG}/releases/",
        {"query": "2.4", "cursor": CURSOR},
    ),
    Call("releases.get", RELEASE, f"{OF_RELEASE}/"),
    Call(
        "releases.get", {**RELEASE, "project": 7, "health": True}, f"{OF_RELEASE}/", {"project": "7", "health": "true"}
    ),
    Call(
        "releases.create",
        {**RELEASE, "projects": ["checkout"], "commits": COMMITS},
        f"{OF_ORG}/releases/",
        method="POST",
        body={"version": RELEASE["version"], "projects": ["checkout"], "commits": COMMITS},
    ),
    Call(
        "releases.update",
        {**RELEASE, "dateReleased": "2026-10-01T08:00:00Z"},
        f"{OF_RELEASE}/",
        method="PUT",
        body={"dateReleased": "2026-10-01T08:00:00Z"},
    ),
    Call("deploys.list", RELEASE, f"{OF_RELEASE}/deploys/"),
    Call(
        "deploys.create",
        {**RELEASE, "environment": "production"},
        f"{OF_RELEASE}/deploys/",
        method="POST",
        body={"environment": "production"},
    ),
    Call("teams.list", {**ORG, "query": "shop", "limit": 5}, f"{OF_ORG}/teams/", {"query": "shop", "per_page": "5"}),
    Call("members.list", ORG, f"{OF_ORG}/members/"),
    Call("members.get", {**ORG, "member_id": "me"}, f"{OF_ORG}/members/me/"),
]
REFUSED = [
    Refused("issues.list", ORG, "project_slug", "project_slug is missing"),
    Refused("issues.list", {**PROJECT, "limit": 101}, "limit", "at most 100"),
    Refused("issues.update", {**ISSUE, "status": "closed"}, "status", "allowed: resolved"),
    Refused("issues.update", ISSUE, "", "at least 3 members"),
    Refused("comments.create", {**ISSUE, "text": ""}, "text", "at least 1"),
]
ANSWERS = [
    Answer("issues.get", {"id": "1", "title": "ZeroDivisionError"}, {"id": "1", "title": "ZeroDivisionError"}, None),
    Answer("issues.list", [{"id": "1"}], [{"id": "1"}], {"next_cursor": None, "more": None}),
    Answer("project_detail.get", {"id": "7", "options": {}}, {"id": "7", "options": {}}, None),
]
FAILURES = [
    Failure("issues.get", 401, {"detail": "Invalid token"}, ReauthorizationRequired, message="Invalid token"),
    Failure(
        "issues.get",
        403,
        {"detail": "You do not have permission to perform this action."},
        UpstreamRejected,
        message="You do not have permission to perform this action.",
    ),
    Failure(
        "issues.get",
        404,
        {"detail": "The requested resource does not exist"},
        UpstreamNotFound,
        message="The requested resource does not exist",
    ),
    Failure(
        "projects.get",
        404,
        {"detail": {"code": "resource-moved", "message": "Resource has been moved", "extra": {}}},
        UpstreamNotFound,
        "resource-moved",
        "Resource has been moved",
    ),
    Failure(
        "comments.create",
        400,
        {"text": ["This field may not be blank."]},
        UpstreamRejected,
        message="This field may not be blank.",
    ),
    Failure(
        "issues.list",
        429,
        {"detail": "You are attempting to use this endpoint too frequently."},
        UpstreamRateLimited,
        message="You are attempting to use this endpoint too frequently.",
        headers={"retry-after": "3"},
        retry_after=3,
    ),
    Failure("issues.list", 500, {"detail": "Internal Error", "errorId": "e1"}, UpstreamError, message="Internal Error"),
]
BAD_CREDENTIALS = [
    BadCredentials({}, "auth_token", "auth_token"),
    BadCredentials({"auth_token": "t", "api_key": "k"}, "api_key", "api_key is not a credential"),
]
LINK = '<https://sentry.io/api/0/x/?cursor={0}>; rel="next"; results="{1}"; cursor="{0}"'
PAGES = [
    Pages(
        "releases.list",
        {**ORG, "per_page": 1},
        [[{"version": "1"}], [{"version": "2"}]],
        [[{"version": "1"}], [{"version": "2"}]],
        [f"/api/0{OF_ORG}/releases/?per_page=1", f"/api/0{OF_ORG}/releases/?per_page=1&cursor=0%3A1%3A0"],
        # the last page has a link too
        headers=[{"Link": LINK.format("0:1:0", "true")}, {"Link": LINK.format("0:2:0", "false")}],
    ),
]
CASES = Cases(
    "sentry",
    "https://sentry.io/api/0",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"auth_token": "sntryu_1"}, "Bearer sntryu_1")],
    check=("/api/0/organizations/?per_page=1", []),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=BAD_CREDENTIALS,
)
