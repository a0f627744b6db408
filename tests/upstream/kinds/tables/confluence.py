"""The cases of Confluence."""

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

V2 = "/wiki/api/v2"
V1 = "/wiki/rest/api"
BODY = {"representation": "storage", "value": "<p>Hi</p>"}
VERSION = {"number": 2, "message": "typo"}
#: the engine derives it from the bytes
BOUNDARY = sha256(b"hi").hexdigest()[:32]

CALLS = [
    Call(
        "spaces.list",
        {"type": "global", "status": "current", "keys": ["A", "B"], "sort": "-name", "limit": 2, "cursor": "c1"},
        f"{V2}/spaces",
        [
            ("cursor", "c1"),
            ("limit", "2"),
            ("type", "global"),
            ("status", "current"),
            ("keys", "A"),
            ("keys", "B"),
            ("sort", "-name"),
        ],
    ),
    Call("spaces.get", {"id": "7", "description-format": "plain"}, f"{V2}/spaces/7", {"description-format": "plain"}),
    Call(
        "pages.list",
        {
            "space-id": [1, 2],
            "title": "Plan",
            "status": ["current"],
            "sort": "title",
            "body-format": "storage",
            "limit": 3,
        },
        f"{V2}/pages",
        [
            ("limit", "3"),
            ("space-id", "1"),
            ("space-id", "2"),
            ("title", "Plan"),
            ("status", "current"),
            ("sort", "title"),
            ("body-format", "storage"),
        ],
    ),
    Call(
        "pages.get",
        {"id": "7", "body-format": "view", "version": 3},
        f"{V2}/pages/7",
        {"body-format": "view", "version": "3"},
    ),
    Call("pages.get", {"id": "7", "get-draft": True}, f"{V2}/pages/7", {"get-draft": "true"}),
    Call(
        "pages.create",
        {"spaceId": "1", "title": "Plan", "parentId": "2", "body": BODY, "private": True, "root-level": False},
        f"{V2}/pages",
        {"private": "true", "root-level": "false"},
        "POST",
        {"spaceId": "1", "title": "Plan", "parentId": "2", "body": BODY},
    ),
    Call(
        "pages.update",
        {"id": "7", "status": "current", "title": "Plan", "body": BODY, "version": VERSION, "ownerId": "u1"},
        f"{V2}/pages/7",
        method="PUT",
        body={"id": "7", "status": "current", "title": "Plan", "body": BODY, "version": VERSION, "ownerId": "u1"},
    ),
    Call("pages.delete", {"id": "7", "purge": True}, f"{V2}/pages/7", {"purge": "true"}, "DELETE"),
    Call(
        "blog_posts.list",
        {"space-id": [1], "sort": "-created-date", "limit": 3},
        f"{V2}/blogposts",
        {"limit": "3", "space-id": "1", "sort": "-created-date"},
    ),
    Call("blog_posts.get", {"id": "7", "body-format": "storage"}, f"{V2}/blogposts/7", {"body-format": "storage"}),
    Call(
        "blog_posts.create",
        {"spaceId": "1", "title": "News", "body": BODY},
        f"{V2}/blogposts",
        method="POST",
        body={"spaceId": "1", "title": "News", "body": BODY},
    ),
    Call("blog_posts.delete", {"id": "7"}, f"{V2}/blogposts/7", method="DELETE"),
    Call(
        "comments.list",
        {"page_id": "7", "body-format": "storage", "sort": "-created-date", "limit": 5},
        f"{V2}/pages/7/footer-comments",
        {"limit": "5", "body-format": "storage", "sort": "-created-date"},
    ),
    Call(
        "comments.get", {"comment_id": "9", "body-format": "view"}, f"{V2}/footer-comments/9", {"body-format": "view"}
    ),
    Call(
        "comments.create",
        {"pageId": "7", "body": BODY},
        f"{V2}/footer-comments",
        method="POST",
        body={"pageId": "7", "body": BODY},
    ),
    Call(
        "comments.update",
        {"comment_id": "9", "body": BODY, "version": VERSION},
        f"{V2}/footer-comments/9",
        method="PUT",
        body={"body": BODY, "version": VERSION},
    ),
    Call("comments.delete", {"comment_id": "9"}, f"{V2}/footer-comments/9", method="DELETE"),
    Call(
        "attachments.list",
        {"page_id": "7", "mediaType": "image/png", "filename": "a.png"},
        f"{V2}/pages/7/attachments",
        {"mediaType": "image/png", "filename": "a.png"},
    ),
    Call("attachments.get", {"attachment_id": "att9"}, f"{V2}/attachments/att9"),
    Call(
        "attachments.create",
        {"page_id": "7", "file": {"content": "aGk=", "filename": "hi.txt", "content_type": "text/plain"}},
        f"{V1}/content/7/child/attachment",
        method="POST",
        body=(
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="hi.txt"\r\n'
            f"Content-Type: text/plain\r\n\r\nhi\r\n--{BOUNDARY}--\r\n"
        ),
        headers={"X-Atlassian-Token": "nocheck", "Content-Type": f"multipart/form-data; boundary={BOUNDARY}"},
    ),
    Call(
        "attachments.download",
        {"page_id": "7", "attachment_id": "att9", "version": 2},
        f"{V1}/content/7/child/attachment/att9/download",
        {"version": "2"},
    ),
    Call("groups.list", {}, f"{V1}/group", {"start": "0", "limit": "25"}),
    Call(
        "audit.list",
        {"limit": 100, "startDate": "1760000000000", "endDate": "1770000000000", "searchString": "space"},
        f"{V1}/audit",
        {
            "start": "0",
            "limit": "100",
            "startDate": "1760000000000",
            "endDate": "1770000000000",
            "searchString": "space",
        },
    ),
    Call(
        "content.api_search",
        {"cql": "type = page", "excerpt": "none", "includeArchivedSpaces": True},
        f"{V1}/search",
        {"cql": "type = page", "limit": "25", "includeArchivedSpaces": "true", "excerpt": "none"},
    ),
    Call(
        "page_labels.list",
        {"page_id": "7", "prefix": "global", "sort": "name", "cursor": "c1"},
        f"{V2}/pages/7/labels",
        {"prefix": "global", "sort": "name", "cursor": "c1", "limit": "25"},
    ),
    Call(
        "child_pages.list",
        {"page_id": "7", "sort": "child-position", "limit": 5},
        f"{V2}/pages/7/children",
        {"sort": "child-position", "limit": "5"},
    ),
]
REFUSED = [
    Refused("pages.list", {"limit": 251}, "limit", "at most 250"),
    Refused("pages.list", {"status": ["draft"]}, "status.0", "allowed: current"),
    Refused("pages.get", {"id": "../spaces"}, "id", "must match"),
    Refused("pages.create", {"title": "x"}, "spaceId", "missing"),
    Refused("pages.update", {"id": "7", "status": "current", "title": "x", "body": BODY}, "version", "missing"),
    Refused("comments.create", {"body": BODY}, "", "exactly one of pageId, blogPostId, parentCommentId"),
    Refused("audit.list", {"limit": 1001}, "limit", "at most 1000"),
]
ANSWERS = [
    Answer("pages.get", {"id": "7"}, {"id": "7"}, None),
    Answer(
        "pages.list",
        {"results": [{"id": "7"}], "_links": {"next": "/wiki/api/v2/pages?cursor=c2&limit=1"}},
        [{"id": "7"}],
        {"next": "/wiki/api/v2/pages?cursor=c2&limit=1"},
    ),
    Answer("attachments.create", {"results": [{"id": "att9"}]}, {"id": "att9"}, None),
    Answer(
        "groups.list",
        {"results": [{"id": "g"}], "start": 0, "limit": 25, "size": 1},
        [{"id": "g"}],
        {"start": 0, "limit": 25, "size": 1, "next": None},
    ),
]
FAILURES = [
    *(
        Failure(
            "pages.get",
            status,
            {"errors": [{"status": status, "code": code, "title": "No page", "detail": None}]},
            error,
            code,
            "No page",
        )
        for status, code, error in [
            (400, "INVALID_REQUEST_PARAMETER", UpstreamRejected),
            (401, "UNAUTHORIZED", ReauthorizationRequired),
            (403, "FORBIDDEN", UpstreamRejected),
            (404, "NOT_FOUND", UpstreamNotFound),
            (500, "INTERNAL_SERVER_ERROR", UpstreamError),
        ]
    ),
    Failure(
        "groups.list", 403, {"statusCode": 403, "message": "not permitted"}, UpstreamRejected, "403", "not permitted"
    ),
    Failure("pages.get", 429, {}, UpstreamRateLimited, headers={"retry-after": "7"}, retry_after=7),
]
#: the application uses a smaller limit than requested
NEXT_GROUPS = "/wiki/rest/api/group?limit=3&start=3"
PAGES = [
    Pages(
        "pages.list",
        {"limit": 1},
        [
            {"results": [{"id": "1"}], "_links": {"next": "/wiki/api/v2/pages?limit=1&cursor=c%3D2"}},
            {"results": [{"id": "2"}], "_links": {}},
        ],
        [[{"id": "1"}], [{"id": "2"}]],
        ["/wiki/api/v2/pages?limit=1", "/wiki/api/v2/pages?cursor=c%3D2&limit=1"],
    ),
    Pages(
        "groups.list",
        {"limit": 200},
        [
            {
                "results": [{"id": "1"}, {"id": "2"}, {"id": "3"}],
                "limit": 3,
                "size": 3,
                "_links": {"next": NEXT_GROUPS},
            },
            {"results": [{"id": "4"}], "limit": 3, "size": 1, "_links": {}},
        ],
        [[{"id": "1"}, {"id": "2"}, {"id": "3"}], [{"id": "4"}]],
        ["/wiki/rest/api/group?start=0&limit=200", "/wiki/rest/api/group?start=3&limit=200"],
    ),
]
CASES = Cases(
    "confluence",
    "https://acme.atlassian.net",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[
        ({"username": "ada@example.com", "password": "key"}, f"Basic {b64encode(b'ada@example.com:key').decode()}"),
        ({"refresh_token": "r", "access_token": "t"}, "Bearer t"),
    ],
    check=("/wiki/api/v2/spaces?limit=1", {"results": []}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[
        BadCredentials({"username": "ada@example.com"}, "password", "password is missing"),
        BadCredentials({"username": "a", "password": "b", "token": "c"}, "token", "token is not a credential"),
    ],
    environment={"subdomain": "acme"},
)
