"""The cases of GitLab."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

PROJECT = {"project_id": "acme/shop"}
GROUP = {"group_id": "acme"}
#: a path stands for an id, in one segment
OF_PROJECT = "/projects/acme%2Fshop"
OF_GROUP = "/groups/acme"
ISSUE = {**PROJECT, "issue_iid": 42}
CHANGE = {**PROJECT, "merge_request_iid": 7}
BUILD = {**PROJECT, "pipeline_id": 46}
PAGE = {"page": 2, "per_page": 5}
PAGE_ON_WIRE = {"page": "2", "per_page": "5"}
SINCE = "2026-10-01T00:00:00Z"
SHA = "ed899a2f4b50b4370feeea94676502b42383c746"
FILE = {**PROJECT, "file_path": "docs/a b.md"}
OF_FILE = f"{OF_PROJECT}/repository/files/docs%2Fa%20b.md"
COMMIT = {"branch": "main", "content": "Hello", "commit_message": "Greet"}

#: entity, params and path of its list, a filter of its own, params and the end of the path of its get
READ = [
    ("issues", PROJECT, f"{OF_PROJECT}/issues", {"state": "opened", "updated_after": SINCE}, {"issue_iid": 42}, "42"),
    (
        *("merge_requests", PROJECT, f"{OF_PROJECT}/merge_requests"),
        *({"state": "merged", "order_by": "title"}, {"merge_request_iid": 7}, "7"),
    ),
    ("commits", PROJECT, f"{OF_PROJECT}/repository/commits", {"ref_name": "main", "since": SINCE}, {"sha": SHA}, SHA),
    ("branches", PROJECT, f"{OF_PROJECT}/repository/branches", {"search": "fix"}, {"branch": "fix/a"}, "fix%2Fa"),
    ("pipelines", PROJECT, f"{OF_PROJECT}/pipelines", {"status": "failed", "ref": "main"}, {"pipeline_id": 46}, "46"),
    ("group_members", GROUP, f"{OF_GROUP}/members", {"query": "ada"}, {"user_id": 12}, "12"),
    ("project_members", PROJECT, f"{OF_PROJECT}/members", {"query": "ada"}, {"user_id": 12}, "12"),
    ("releases", PROJECT, f"{OF_PROJECT}/releases", {"order_by": "created_at"}, {"tag_name": "v1.0"}, "v1.0"),
    ("tags", PROJECT, f"{OF_PROJECT}/repository/tags", {"search": "v1", "sort": "asc"}, {"tag_name": "v1.0"}, "v1.0"),
    ("group_milestones", GROUP, f"{OF_GROUP}/milestones", {"state": "active"}, {"milestone_id": 5}, "5"),
    ("project_milestones", PROJECT, f"{OF_PROJECT}/milestones", {"search": "12"}, {"milestone_id": 5}, "5"),
    ("users", {}, "/users", {"search": "ada", "active": "true"}, {"id": 12}, "12"),
    ("groups", {}, "/groups", {"owned": "false", "order_by": "path"}, {"id": "acme/web"}, "acme%2Fweb"),
    ("projects", {}, "/projects", {"membership": "true", "search": "shop"}, {"id": "acme/shop"}, "acme%2Fshop"),
]
BOOLEANS = {"true": True, "false": False}
NOTES = [
    ("issue_notes", ISSUE, f"{OF_PROJECT}/issues/42/notes"),
    ("merge_request_notes", CHANGE, f"{OF_PROJECT}/merge_requests/7/notes"),
]
MILESTONES = [
    ("group_milestones", GROUP, f"{OF_GROUP}/milestones"),
    ("project_milestones", PROJECT, f"{OF_PROJECT}/milestones"),
]


def written(action, params, path, body=None, method="POST"):
    """A write whose other params are its body."""
    return Call(action, {**params, **(body or {})}, path, method=method, body=body)


CALLS = [
    *(
        Call(
            f"{entity}.list",
            {**params, **PAGE, **{name: BOOLEANS.get(value, value) for name, value in own.items()}},
            path,
            {**PAGE_ON_WIRE, **own},
        )
        for entity, params, path, own, _, _ in READ
    ),
    *(Call(f"{entity}.get", {**params, **named}, f"{path}/{last}") for entity, params, path, _, named, last in READ),
    Call("projects.get", {"id": "7", "statistics": True}, "/projects/7", {"statistics": "true"}),
    Call(
        "commits.get",
        {**PROJECT, "sha": SHA, "stats": False},
        f"{OF_PROJECT}/repository/commits/{SHA}",
        {"stats": "false"},
    ),
    Call(
        "issues.list",
        {**PROJECT, "limit": 5, "labels": "bug,login"},
        f"{OF_PROJECT}/issues",
        {"per_page": "5", "labels": "bug,login"},
    ),
    Call(
        "issues.api_search",
        {"scope": "assigned_to_me", "search": "login"},
        "/issues",
        {"scope": "assigned_to_me", "search": "login"},
    ),
    written(
        "issues.create",
        PROJECT,
        f"{OF_PROJECT}/issues",
        {"title": "Login fails", "labels": "bug,login", "assignee_ids": [12]},
    ),
    written(
        *("issues.update", ISSUE, f"{OF_PROJECT}/issues/42"),
        # no label, no assignee and no weight are left
        {"state_event": "close", "labels": "", "assignee_ids": [], "weight": None},
        "PUT",
    ),
    Call("issues.delete", ISSUE, f"{OF_PROJECT}/issues/42", method="DELETE"),
    *(Call(f"{entity}.list", {**params, "sort": "asc"}, path, {"sort": "asc"}) for entity, params, path in NOTES),
    *(written(f"{entity}.create", params, path, {"body": "Fine", "internal": True}) for entity, params, path in NOTES),
    *(
        written(f"{entity}.update", {**params, "note_id": 302}, f"{path}/302", {"body": "Fine"}, "PUT")
        for entity, params, path in NOTES
    ),
    *(
        Call(f"{entity}.delete", {**params, "note_id": 302}, f"{path}/302", method="DELETE")
        for entity, params, path in NOTES
    ),
    Call(
        "merge_requests.api_search",
        {"scope": "all", "reviewer_username": "ada", "wip": "no"},
        "/merge_requests",
        {"scope": "all", "reviewer_username": "ada", "wip": "no"},
    ),
    written(
        *("merge_requests.create", PROJECT, f"{OF_PROJECT}/merge_requests"),
        {"source_branch": "fix-login", "target_branch": "main", "title": "Fix the login", "reviewer_ids": [12]},
    ),
    written("merge_requests.update", CHANGE, f"{OF_PROJECT}/merge_requests/7", {"state_event": "close"}, "PUT"),
    written(
        "merge_requests.merge", CHANGE, f"{OF_PROJECT}/merge_requests/7/merge", {"squash": True, "sha": SHA}, "PUT"
    ),
    written("branches.create", PROJECT, f"{OF_PROJECT}/repository/branches", {"branch": "fix/a", "ref": "main"}),
    Call(
        "branches.delete", {**PROJECT, "branch": "fix/a"}, f"{OF_PROJECT}/repository/branches/fix%2Fa", method="DELETE"
    ),
    written(
        "pipelines.create",
        PROJECT,
        f"{OF_PROJECT}/pipeline",
        {"ref": "main", "variables": [{"key": "A", "value": "1"}]},
    ),
    Call("pipelines.retry", BUILD, f"{OF_PROJECT}/pipelines/46/retry", method="POST"),
    Call("pipelines.cancel", BUILD, f"{OF_PROJECT}/pipelines/46/cancel", method="POST"),
    Call(
        "jobs.list",
        {**BUILD, "scope": ["failed", "canceled"]},
        f"{OF_PROJECT}/pipelines/46/jobs",
        [("scope[]", "failed"), ("scope[]", "canceled")],
    ),
    Call("jobs.get", {**PROJECT, "job_id": 8}, f"{OF_PROJECT}/jobs/8"),
    Call("jobs.download", {**PROJECT, "job_id": 8}, f"{OF_PROJECT}/jobs/8/trace"),
    Call("jobs.retry", {**PROJECT, "job_id": 8}, f"{OF_PROJECT}/jobs/8/retry", method="POST"),
    written("releases.create", PROJECT, f"{OF_PROJECT}/releases", {"tag_name": "v1.1", "ref": "main"}),
    written(
        "releases.update", {**PROJECT, "tag_name": "v1.0"}, f"{OF_PROJECT}/releases/v1.0", {"milestones": []}, "PUT"
    ),
    written("tags.create", PROJECT, f"{OF_PROJECT}/repository/tags", {"tag_name": "v1.1", "ref": "main"}),
    *(written(f"{entity}.create", params, path, {"title": "Sprint 12"}) for entity, params, path in MILESTONES),
    *(
        written(f"{entity}.update", {**params, "milestone_id": 5}, f"{path}/5", {"state_event": "close"}, "PUT")
        for entity, params, path in MILESTONES
    ),
    Call("labels.list", {**PROJECT, "with_counts": True}, f"{OF_PROJECT}/labels", {"with_counts": "true"}),
    written("labels.create", PROJECT, f"{OF_PROJECT}/labels", {"name": "bug", "color": "#d9534f"}),
    Call("files.get", FILE, OF_FILE, {"ref": "HEAD"}),
    written("files.create", FILE, OF_FILE, COMMIT),
    written("files.update", FILE, OF_FILE, {**COMMIT, "last_commit_id": SHA}, "PUT"),
    Call(
        "files.delete",
        {**FILE, "branch": "main", "commit_message": "Remove"},
        OF_FILE,
        {"branch": "main", "commit_message": "Remove"},
        "DELETE",
    ),
    Call(
        "tree.list",
        {**PROJECT, "path": "docs", "recursive": True},
        f"{OF_PROJECT}/repository/tree",
        {"path": "docs", "recursive": "true"},
    ),
    Call(
        *("merge_request_diffs.list", {**CHANGE, "unidiff": True, **PAGE}, f"{OF_PROJECT}/merge_requests/7/diffs"),
        {"unidiff": "true", **PAGE_ON_WIRE},
    ),
    Call(
        *("commit_diffs.list", {**PROJECT, "sha": "fix/a", **PAGE}, f"{OF_PROJECT}/repository/commits/fix%2Fa/diff"),
        PAGE_ON_WIRE,
    ),
    Call(
        *("code.api_search", {**PROJECT, "search": "a&b", "ref": "fix/a"}, f"{OF_PROJECT}/search"),
        {"scope": "blobs", "search": "a&b", "ref": "fix/a"},
    ),
    Call("current_user.get", {}, "/user"),
    written("merge_requests.approve", CHANGE, f"{OF_PROJECT}/merge_requests/7/approve", {"sha": SHA}),
]
REFUSED = [
    Refused("issues.list", {}, "project_id", "project_id is missing"),
    Refused("issues.list", {**PROJECT, "state": "open"}, "state", "allowed: opened, closed, all"),
    Refused("issues.list", {**PROJECT, "per_page": 101}, "per_page", "at most 100"),
    Refused("issues.get", {**PROJECT, "issue_iid": 0}, "issue_iid", "at least 1"),
    # the application would answer 400 to a body without members
    Refused("issues.update", ISSUE, "", "at least 3 members"),
    Refused("issue_notes.create", {**ISSUE, "body": ""}, "body", "at least 1"),
]
ANSWERS = [
    Answer("issues.get", {"id": 1, "iid": 42, "weight": None}, {"id": 1, "iid": 42, "weight": None}, None),
    Answer("issues.list", [{"id": 1}], [{"id": 1}], {"next_url": None}),
]
FAILURES = [
    Failure("issues.get", 401, {"message": "401 Unauthorized"}, ReauthorizationRequired, message="401 Unauthorized"),
    Failure(
        "issues.get",
        401,
        {"error": "invalid_token", "error_description": "Token was revoked. You have to re-authorize from the user."},
        ReauthorizationRequired,
        message="Token was revoked. You have to re-authorize from the user.; invalid_token",
    ),
    Failure(
        "issues.get",
        403,
        {"error": "insufficient_scope", "error_description": "The request requires higher privileges.", "scope": "api"},
        UpstreamRejected,
        message="The request requires higher privileges.; insufficient_scope; api",
    ),
    Failure("issues.get", 404, {"message": "404 Project Not Found"}, UpstreamNotFound, message="404 Project Not Found"),
    Failure(
        "issues.create",
        400,
        {"message": {"title": ["can't be blank", "is too short"]}},
        UpstreamRejected,
        message="can't be blank; is too short",
    ),
    Failure("issues.create", 400, {"error": "title is missing"}, UpstreamRejected, message="title is missing"),
    Failure(
        "merge_requests.create",
        409,
        {"message": ["Another open merge request already exists for this source branch: !7"]},
        UpstreamRejected,
        message="Another open merge request already exists for this source branch: !7",
    ),
    Failure(
        "issues.list",
        429,
        b"Retry later\n",
        UpstreamRateLimited,
        message="Retry later",
        headers={"retry-after": "42"},
        retry_after=42,
    ),
    Failure(
        "issues.list", 500, {"message": "500 Internal Server Error"}, UpstreamError, message="500 Internal Server Error"
    ),
]
BAD_CREDENTIALS = [
    BadCredentials({"access_token": "t", "password": "p"}, "password", "password is not a credential"),
]
NEXT = "https://gitlab.com/api/v4/projects/7/issues?page=2&per_page=1"
PAGES = [
    Pages(
        "issues.list",
        {**PROJECT, "per_page": 1},
        [[{"id": 1}], [{"id": 2}]],
        [[{"id": 1}], [{"id": 2}]],
        [f"/api/v4{OF_PROJECT}/issues?per_page=1", f"/api/v4{OF_PROJECT}/issues?page=2&per_page=1"],
        headers=[{"Link": f'<{NEXT}>; rel="next", <{NEXT}>; rel="last"'}, {"Link": f'<{NEXT}>; rel="last"'}],
    ),
]
CASES = Cases(
    "gitlab",
    "https://gitlab.com/api/v4",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"access_token": "glpat-1"}, "Bearer glpat-1")],
    check=("/api/v4/projects?per_page=1", []),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=BAD_CREDENTIALS,
)
