"""The cases of GitHub. Its GraphQL schema is public: the documents were validated against it."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, GraphQL, Pages, Refused

REPO = {"owner": "acme", "repo": "shop"}
OF_REPO = "/repos/acme/shop"
ORG, USER = {"org": "acme"}, {"username": "octocat"}
NUMBER = {**REPO, "number": 7}
PAGE = {"per_page": 5, "after": "Y3Vyc29yOjU="}
SHA = "aa218f56b14c9653891f9e74264a383fa43fefbd"
BLOB = "95b966ae1c166bd92f8ae7d1c313e738c731dfc3"

#: action, params, a text of the document, and the variables where they are not the params
QUERIES: list[tuple[str, dict[str, Any], str, dict[str, Any] | None]] = [
    ("repositories.list", {**USER, **PAGE}, "user(login: $username)", None),
    ("repositories.get", REPO, "repository(owner: $owner, name: $repo)", None),
    ("repositories.api_search", {"query": "topic:queue", "limit": 5}, "type: REPOSITORY", None),
    ("org_repositories.list", ORG, "organization(login: $org)", {**ORG, "per_page": 30}),
    ("viewer_repositories.list", PAGE, "ownerAffiliations: [OWNER]", None),
    ("branches.list", {**REPO, **PAGE}, 'refPrefix: "refs/heads/"', None),
    ("branches.get", {**REPO, "branch": "fix/a"}, "qualifiedName: $branch", {**REPO, "branch": "refs/heads/fix/a"}),
    ("commits.list", {**REPO, **PAGE, "path": "docs"}, "path: $path", None),
    ("commits.get", {**REPO, "sha": SHA}, "object(oid: $sha)", None),
    ("releases.list", {**REPO, **PAGE}, "field: CREATED_AT, direction: DESC", None),
    ("releases.get", {**REPO, "tag": "v1.0"}, "release(tagName: $tag)", None),
    ("issues.list", {**REPO, **PAGE, "states": ["OPEN"]}, "states: $states", None),
    ("issues.list", {**REPO, "limit": 5}, "issues(first: $per_page", {**REPO, "per_page": 5}),
    ("issues.get", NUMBER, "issue(number: $number)", None),
    ("comments.list", {**NUMBER, **PAGE}, "comments(first: $per_page", None),
    ("comments.get", {"id": "IC_1"}, "... on IssueComment", None),
    ("pull_requests.list", {**REPO, **PAGE, "states": ["MERGED"]}, "pullRequests(first", None),
    ("pull_requests.get", NUMBER, "pullRequest(number: $number)", None),
    ("reviews.list", {**NUMBER, **PAGE}, "reviews(first: $per_page", None),
    ("pr_comments.list", {**NUMBER, **PAGE}, "pullRequest(number: $number)", None),
    ("pr_comments.get", {"id": "IC_2"}, "... on IssueComment", None),
    ("labels.list", {**REPO, **PAGE}, "labels(first: $per_page", None),
    ("labels.get", {**REPO, "name": 'a "b"'}, "label(name: $name)", None),
    ("milestones.list", {**REPO, **PAGE, "states": ["CLOSED"]}, "milestones(first", None),
    ("milestones.get", NUMBER, "milestone(number: $number)", None),
    ("organizations.get", ORG, "organization(login: $org)", None),
    ("organizations.list", {**USER, **PAGE}, "organizations(first", None),
    ("users.get", USER, "user(login: $username)", None),
    ("users.list", {**ORG, **PAGE}, "membersWithRole(first", None),
    ("users.api_search", {"query": "ada", "limit": 5}, "type: USER", None),
    ("teams.list", {**ORG, **PAGE}, "teams(first", None),
    ("teams.get", {**ORG, "team_slug": "backend"}, "team(slug: $team_slug)", None),
    ("tags.list", {**REPO, **PAGE}, "field: TAG_COMMIT_DATE", None),
    ("tags.get", {**REPO, "tag": "v1.0"}, "qualifiedName: $tag", {**REPO, "tag": "refs/tags/v1.0"}),
    ("stargazers.list", {**REPO, **PAGE}, "edges { ...Chosen }", None),
    ("viewer.get", {}, "viewer {", None),
    ("projects.list", {**ORG, **PAGE}, "projectsV2(first", None),
    ("projects.get", {**ORG, "project_number": 3}, "projectV2(number: $project_number)", None),
    ("project_items.list", {**ORG, "project_number": 3, **PAGE}, "items(first", None),
    ("discussions.list", {**REPO, **PAGE, "states": ["OPEN"], "answered": False}, "answered: $answered", None),
    ("discussions.get", NUMBER, "discussion(number: $number)", None),
    ("discussions.api_search", {"query": "release", "per_page": 5}, "type: DISCUSSION", None),
    (
        *("file_content.get", {**REPO, "path": "docs/a.md", "ref": "v1"}),
        *("... on Blob { ...Chosen }", {**REPO, "expression": "v1:docs/a.md"}),
    ),
    ("file_content.get", {**REPO, "path": "a.md"}, "object(expression", {**REPO, "expression": "HEAD:a.md"}),
    ("directory_content.list", {**REPO, "path": "docs"}, "... on Tree", {**REPO, "expression": "HEAD:docs"}),
    # names of fields are part of the document
    (
        *("issues.get", {**NUMBER, "fields": ["title", "author.login"]}),
        *("fragment Chosen on Issue { title author { login } }", NUMBER),
    ),
]
#: `type: ISSUE` finds pull requests as well as issues, and the fields of one are empty for the other
BOTH = "the SDK does not tell issues from pull requests, which come as records without members"
SEARCHES = [("issues.api_search", "is:issue"), ("pull_requests.api_search", "is:pr")]


def written(action, params, path, body, method="POST", **members):
    """A write whose other params are its body."""
    return Call(action, {**params, **body}, path, method=method, body=body, **members)


TITLE = {"title": "Login fails"}
TEXT = {"body": "Fixed in 1.1"}
ISSUE, PULL = {**REPO, "issue_number": 7}, {**REPO, "pull_number": 7}
ASKED = {"reviewers": ["octocat"], "team_reviewers": ["backend"]}
FILE = {**REPO, "path": "docs/a b.md"}
OF_FILE = f"{OF_REPO}/contents/docs%2Fa%20b.md"
COMMIT = {"message": "Greet", "content": "SGVsbG8="}
NULLS = "the SDK drops null, which clears the value"

CALLS = [
    *(
        Call(
            *(action, params, "/graphql"),
            method="POST",
            body=GraphQL(text, params if variables is None else variables),
        )
        for action, params, text, variables in QUERIES
    ),
    *(
        Call(
            *(action, {"query": "label:bug", **PAGE}, "/graphql"),
            method="POST",
            body=GraphQL("search(", {"query": f"label:bug {of}", **PAGE}),
            sdk_differs=BOTH,
        )
        for action, of in SEARCHES
    ),
    Call(
        *("directory_content.list", REPO, "/graphql"),
        method="POST",
        body=GraphQL("entries { ...Chosen }", {**REPO, "expression": "HEAD:"}),
        sdk_differs="the SDK refuses an empty path, which is the topmost folder",
    ),
    written("repositories.create", {}, "/user/repos", {"name": "shop", "private": True}),
    Call(
        *("branches.create", {**REPO, "branch": "fix/a", "sha": SHA}, f"{OF_REPO}/git/refs"),
        method="POST",
        body={"ref": "refs/heads/fix/a", "sha": SHA},
    ),
    Call("branches.delete", {**REPO, "branch": "fix/a"}, f"{OF_REPO}/git/refs/heads%2Ffix%2Fa", method="DELETE"),
    written("releases.create", REPO, f"{OF_REPO}/releases", {"tag_name": "v1.1", "generate_release_notes": True}),
    written("releases.update", {**REPO, "release_id": 1}, f"{OF_REPO}/releases/1", {"draft": False}, "PATCH"),
    Call("releases.delete", {**REPO, "release_id": 1}, f"{OF_REPO}/releases/1", method="DELETE"),
    written(
        *("issues.create", REPO, f"{OF_REPO}/issues"),
        {**TITLE, "body": "Since *today*", "labels": ["bug"], "assignees": ["octocat"], "milestone": 3},
    ),
    written("issues.update", ISSUE, f"{OF_REPO}/issues/7", {"state": "closed", "labels": [], "assignees": []}, "PATCH"),
    written(
        *("issues.update", ISSUE, f"{OF_REPO}/issues/7"),
        *({"milestone": None, "state_reason": None, "title": "Login"}, "PATCH"),
        sdk_differs=NULLS,
    ),
    written("comments.create", ISSUE, f"{OF_REPO}/issues/7/comments", TEXT),
    written("comments.update", {**REPO, "comment_id": 1}, f"{OF_REPO}/issues/comments/1", TEXT, "PATCH"),
    Call("comments.delete", {**REPO, "comment_id": 1}, f"{OF_REPO}/issues/comments/1", method="DELETE"),
    written(
        *("pull_requests.create", REPO, f"{OF_REPO}/pulls"),
        {**TITLE, "head": "fix-login", "base": "main", "body": "", "draft": True, "maintainer_can_modify": False},
    ),
    written("pull_requests.update", PULL, f"{OF_REPO}/pulls/7", {"state": "closed"}, "PATCH"),
    written("pull_requests.merge", PULL, f"{OF_REPO}/pulls/7/merge", {"merge_method": "squash", "sha": SHA}, "PUT"),
    Call("pull_request_files.list", {**PULL, "page": 2}, f"{OF_REPO}/pulls/7/files", {"page": "2"}),
    written("reviews.create", PULL, f"{OF_REPO}/pulls/7/reviews", {"event": "COMMENT", **TEXT}),
    Call("review_requests.get", PULL, f"{OF_REPO}/pulls/7/requested_reviewers"),
    written("review_requests.create", PULL, f"{OF_REPO}/pulls/7/requested_reviewers", ASKED),
    written("review_requests.delete", PULL, f"{OF_REPO}/pulls/7/requested_reviewers", ASKED, "DELETE"),
    written("labels.create", REPO, f"{OF_REPO}/labels", {"name": "bug", "color": "d73a4a"}),
    written("issue_labels.create", ISSUE, f"{OF_REPO}/issues/7/labels", {"labels": ["bug"]}),
    Call("issue_labels.delete", {**ISSUE, "name": "a/b c"}, f"{OF_REPO}/issues/7/labels/a%2Fb%20c", method="DELETE"),
    written("milestones.create", REPO, f"{OF_REPO}/milestones", {"title": "Sprint 12"}),
    written(
        "milestones.update", {**REPO, "milestone_number": 3}, f"{OF_REPO}/milestones/3", {"state": "closed"}, "PATCH"
    ),
    written("file_content.create", FILE, OF_FILE, {**COMMIT, "branch": "main"}, "PUT"),
    written("file_content.update", FILE, OF_FILE, {**COMMIT, "sha": BLOB}, "PUT"),
    written("file_content.delete", FILE, OF_FILE, {"message": "Remove", "sha": BLOB}, "DELETE"),
    Call(
        *("workflow_runs.list", {**REPO, "branch": "main", "status": "failure", "limit": 5}, f"{OF_REPO}/actions/runs"),
        {"branch": "main", "status": "failure", "per_page": "5"},
    ),
    Call("workflow_runs.get", {**REPO, "run_id": 8}, f"{OF_REPO}/actions/runs/8"),
    written(
        "workflow_runs.rerun", {**REPO, "run_id": 8}, f"{OF_REPO}/actions/runs/8/rerun", {"enable_debug_logging": True}
    ),
    Call("workflow_runs.cancel", {**REPO, "run_id": 8}, f"{OF_REPO}/actions/runs/8/cancel", method="POST"),
    Call(
        *("check_runs.list", {**REPO, "ref": "fix/a", "status": "completed", "filter": "all"}),
        *(f"{OF_REPO}/commits/fix%2Fa/check-runs", {"status": "completed", "filter": "all"}),
    ),
    Call("workflow_jobs.list", {**REPO, "run_id": 8, "page": 2}, f"{OF_REPO}/actions/runs/8/jobs", {"page": "2"}),
    Call("workflow_jobs.download", {**REPO, "job_id": 9}, f"{OF_REPO}/actions/jobs/9/logs"),
    Call(
        *("workflow_dispatches.create", {**REPO, "workflow_id": "a b.yml", "ref": "main", "inputs": {"to": "test"}}),
        f"{OF_REPO}/actions/workflows/a%20b.yml/dispatches",
        method="POST",
        body={"ref": "main", "inputs": {"to": "test"}, "return_run_details": True},
    ),
    Call(
        *("review_comments.list", {**PULL, "sort": "updated", "direction": "desc"}, f"{OF_REPO}/pulls/7/comments"),
        {"sort": "updated", "direction": "desc"},
    ),
    written("review_comments.reply", {**PULL, "comment_id": 10}, f"{OF_REPO}/pulls/7/comments/10/replies", TEXT),
    Call(
        *("code.api_search", {"query": "a&b repo:acme/shop", "per_page": 5}, "/search/code"),
        {"q": "a&b repo:acme/shop", "per_page": "5"},
    ),
]
REFUSED = [
    Refused("issues.list", {**REPO, "states": ["open"]}, "states.0", "allowed: OPEN, CLOSED"),
    Refused("issues.list", {**REPO, "per_page": 101}, "per_page", "at most 100"),
    Refused("issues.list", {"owner": "acme"}, "repo", "repo is missing"),
    # more than a name would be more of the document
    Refused("issues.get", {**NUMBER, "fields": ["id } viewer { login"]}, "fields.0", "must match"),
    # a request without members would change nothing
    Refused("issues.update", ISSUE, "", "at least 4 members"),
    Refused("commits.get", {**REPO, "sha": "aa218f5"}, "sha", "must match"),
]
CONNECTION = {"pageInfo": {"hasNextPage": False, "endCursor": "c"}, "nodes": [{"id": "I_1"}]}
END = {"hasNextPage": False, "endCursor": "c"}
ANSWERS = [
    Answer("issues.list", {"data": {"repository": {"issues": CONNECTION}}}, [{"id": "I_1"}], END),
    Answer(
        "issues.api_search", {"data": {"search": {**CONNECTION, "issueCount": 1}}}, [{"id": "I_1"}], {**END, "total": 1}
    ),
    Answer("issues.get", {"data": {"repository": {"issue": {"number": 7}}}}, {"number": 7}, None),
    Answer(
        "directory_content.list",
        {"data": {"repository": {"object": {"entries": [{"name": "a.md"}]}}}},
        [{"name": "a.md"}],
        None,
    ),
    Answer("issues.update", {"number": 7, "state": "closed"}, {"number": 7, "state": "closed"}, None),
    Answer("workflow_runs.list", {"total_count": 1, "workflow_runs": [{"id": 8}]}, [{"id": 8}], {"next_url": None}),
]
LIMIT = "API rate limit exceeded for user ID 1."
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
FAILURES = [
    Failure("issues.update", 401, {"message": "Bad credentials"}, ReauthorizationRequired, message="Bad credentials"),
    Failure(
        *("issues.update", 403, {"message": "Resource not accessible by personal access token"}, UpstreamRejected),
        message="Resource not accessible by personal access token",
    ),
    Failure("issues.update", 404, {"message": "Not Found", "status": "404"}, UpstreamNotFound, message="Not Found"),
    Failure(
        "issues.create",
        422,
        {
            "message": "Validation Failed",
            "errors": [{"resource": "Issue", "field": "title", "code": "missing_field"}],
            "status": "422",
        },
        UpstreamRejected,
        "missing_field",
        "Validation Failed",
        field="title",
    ),
    Failure(
        "issues.get",
        200,
        {
            "data": {"repository": None},
            "errors": [{"type": "NOT_FOUND", "path": ["repository"], "message": "Could not resolve to a Repository."}],
        },
        UpstreamNotFound,
        "NOT_FOUND",
        "Could not resolve to a Repository.",
    ),
    Failure(
        "projects.list",
        200,
        {
            "errors": [
                {"type": "INSUFFICIENT_SCOPES", "message": "Your token has not been granted the required scopes."}
            ]
        },
        UpstreamRejected,
        "INSUFFICIENT_SCOPES",
        "Your token has not been granted the required scopes.",
    ),
    Failure(
        "issues.list",
        200,
        {"errors": [{"type": "RATE_LIMITED", "message": LIMIT}]},
        UpstreamRateLimited,
        "RATE_LIMITED",
        LIMIT,
    ),
    # Both limits are said with 403 too. No header tells when the secondary limit ends.
    Failure(
        *("issues.update", 403, {"message": SECONDARY}, UpstreamRateLimited),
        message=SECONDARY,
        headers={"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "4000", "x-ratelimit-reset": "3000"},
        retry_after=60,
    ),
    Failure(
        *("issues.update", 403, {"message": LIMIT}, UpstreamRateLimited),
        message=LIMIT,
        headers={"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "300"},
        retry_after=300,
    ),
    Failure(
        "issues.update",
        429,
        {"message": LIMIT},
        UpstreamRateLimited,
        message=LIMIT,
        headers={"retry-after": "42"},
        retry_after=42,
    ),
    Failure("issues.list", 502, b"<html>", UpstreamError),
]
BAD_CREDENTIALS = [
    BadCredentials({"token": "t", "password": "p"}, "password", "password is not a credential"),
]
FIRST, SECOND = ({"per_page": 1, **REPO}, {"per_page": 1, "after": "c1", **REPO})
TWO = [
    {"pageInfo": {"hasNextPage": True, "endCursor": "c1"}, "nodes": [{"id": "I_1"}]},
    {"pageInfo": {"hasNextPage": False, "endCursor": "c2"}, "nodes": [{"id": "I_2"}]},
]
PAGES = [
    Pages(
        "issues.list",
        {**REPO, "per_page": 1},
        [{"data": {"repository": {"issues": page}}} for page in TWO],
        [[{"id": "I_1"}], [{"id": "I_2"}]],
        ["/graphql", "/graphql"],
        sent=[GraphQL("issues(first: $per_page", FIRST), GraphQL("issues(first: $per_page", SECOND)],
    ),
    Pages(
        "pull_request_files.list",
        {**PULL, "per_page": 1},
        [[{"sha": "a"}], [{"sha": "b"}]],
        [[{"sha": "a"}], [{"sha": "b"}]],
        [f"{OF_REPO}/pulls/7/files?per_page=1", f"{OF_REPO}/pulls/7/files?per_page=1&page=2"],
        headers=[{"Link": '<https://api.github.com/repositories/1/pulls/7/files?per_page=1&page=2>; rel="next"'}],
    ),
]
CASES = Cases(
    "github",
    "https://api.github.com",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"token": "ghp_1"}, "Bearer ghp_1"), ({"access_token": "gho_1"}, "Bearer gho_1")],
    check=("/graphql", {"data": {"viewer": {"id": "U_1"}}}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=BAD_CREDENTIALS,
    headers={"X-GitHub-Api-Version": "2022-11-28"},
)
