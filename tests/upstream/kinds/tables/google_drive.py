"""The cases of Google Drive."""

from functools import partial
from hashlib import sha256
from urllib.parse import quote

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Pages, Refused, google_failure

FILES = "/drive/v3/files"
FILE = f"{FILES}/f1"
COMMENT = f"{FILE}/comments/c1"
LISTED = (
    "nextPageToken,incompleteSearch,files(id,name,mimeType,parents,size,createdTime,modifiedTime,trashed,starred,"
    "shared,owners,driveId,webViewLink)"
)
READ = (
    "id,name,mimeType,description,parents,size,createdTime,modifiedTime,version,trashed,starred,shared,ownedByMe,"
    "owners,lastModifyingUser,driveId,webViewLink,md5Checksum,capabilities"
)
ALL = {"fields": "*", "includeDeleted": "false"}
METADATA = b'{"name":"hi.txt","mimeType":"text/plain","parents":["d1"]}'
#: the engine derives it from the parts
BOUNDARY = sha256(METADATA + b"hi").hexdigest()[:32]

CALLS = [
    Call(
        "files.list",
        {"pageSize": 5, "pageToken": "p2", "q": "trashed = false", "orderBy": "name", "supportsAllDrives": True},
        FILES,
        {
            "pageSize": "5",
            "pageToken": "p2",
            "q": "trashed = false",
            "orderBy": "name",
            "fields": LISTED,
            "supportsAllDrives": "true",
        },
    ),
    Call(
        "files.list",
        {
            "fields": "files(id)",
            "spaces": "drive",
            "corpora": "drive",
            "driveId": "d",
            "includeItemsFromAllDrives": True,
        },
        FILES,
        {
            "pageSize": "100",
            "fields": "files(id)",
            "spaces": "drive",
            "corpora": "drive",
            "driveId": "d",
            "includeItemsFromAllDrives": "true",
        },
    ),
    Call("files.get", {"fileId": "f1", "supportsAllDrives": True}, FILE, {"fields": READ, "supportsAllDrives": "true"}),
    Call("files.get", {"fileId": "f1", "fields": "id,name"}, FILE, {"fields": "id,name"}),
    Call(
        "files.create",
        {"name": "Plans", "mimeType": "application/vnd.google-apps.folder", "parents": ["d1"], "description": "x"},
        FILES,
        method="POST",
        body={"name": "Plans", "mimeType": "application/vnd.google-apps.folder", "parents": ["d1"], "description": "x"},
    ),
    Call(
        "files.update",
        {"fileId": "f1", "name": "Plan", "addParents": "d2", "removeParents": "d1", "supportsAllDrives": True},
        FILE,
        {"addParents": "d2", "removeParents": "d1", "supportsAllDrives": "true"},
        "PATCH",
        {"name": "Plan"},
    ),
    Call("files.update", {"fileId": "f1", "trashed": True}, FILE, method="PATCH", body={"trashed": True}),
    Call("files.delete", {"fileId": "f1"}, FILE, method="DELETE"),
    Call(
        "files.download",
        {"fileId": "f1", "acknowledgeAbuse": True},
        FILE,
        {"alt": "media", "acknowledgeAbuse": "true"},
    ),
    Call(
        "files_upload.create",
        {
            "name": "hi.txt",
            "mimeType": "text/plain",
            "parents": ["d1"],
            "file_content": "aGk=",
            "file_mime_type": "text/markdown",
        },
        "/upload/drive/v3/files",
        {"uploadType": "multipart"},
        "POST",
        (
            f"--{BOUNDARY}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{METADATA.decode()}\r\n"
            f"--{BOUNDARY}\r\nContent-Type: text/markdown\r\n\r\nhi\r\n--{BOUNDARY}--\r\n"
        ),
        headers={"Content-Type": f"multipart/related; boundary={BOUNDARY}"},
    ),
    Call(
        "files_export.download",
        {"fileId": "f1", "mimeType": "application/pdf"},
        f"{FILE}/export",
        {"mimeType": "application/pdf"},
    ),
    Call("drives.list", {"q": "name contains 'a'"}, "/drive/v3/drives", {"pageSize": "10", "q": "name contains 'a'"}),
    Call(
        "drives.get",
        {"driveId": "d1", "useDomainAdminAccess": True},
        "/drive/v3/drives/d1",
        {"useDomainAdminAccess": "true"},
    ),
    Call(
        "permissions.list",
        {"fileId": "f1", "pageSize": 5, "supportsAllDrives": True},
        f"{FILE}/permissions",
        {"pageSize": "5", "supportsAllDrives": "true"},
    ),
    Call("permissions.get", {"fileId": "f1", "permissionId": "9"}, f"{FILE}/permissions/9"),
    Call(
        "permissions.create",
        {"fileId": "f1", "type": "user", "role": "reader", "emailAddress": "a@b.cd", "sendNotificationEmail": False},
        f"{FILE}/permissions",
        {"sendNotificationEmail": "false"},
        "POST",
        {"type": "user", "role": "reader", "emailAddress": "a@b.cd"},
    ),
    Call(
        "permissions.update",
        {"fileId": "f1", "permissionId": "9", "role": "writer"},
        f"{FILE}/permissions/9",
        method="PATCH",
        body={"role": "writer"},
    ),
    Call("permissions.delete", {"fileId": "f1", "permissionId": "9"}, f"{FILE}/permissions/9", method="DELETE"),
    Call(
        "comments.list",
        {"fileId": "f1", "startModifiedTime": "2026-01-01T00:00:00Z"},
        f"{FILE}/comments",
        {"pageSize": "20", "startModifiedTime": "2026-01-01T00:00:00Z", **ALL},
    ),
    Call("comments.get", {"fileId": "f1", "commentId": "c1"}, COMMENT, ALL),
    Call(
        "comments.create",
        {"fileId": "f1", "content": "Hi"},
        f"{FILE}/comments",
        {"fields": "*"},
        "POST",
        {"content": "Hi"},
    ),
    Call("replies.list", {"fileId": "f1", "commentId": "c1"}, f"{COMMENT}/replies", {"pageSize": "20", **ALL}),
    Call("replies.get", {"fileId": "f1", "commentId": "c1", "replyId": "r1"}, f"{COMMENT}/replies/r1", ALL),
    Call(
        "replies.create",
        {"fileId": "f1", "commentId": "c1", "action": "resolve"},
        f"{COMMENT}/replies",
        {"fields": "*"},
        "POST",
        {"action": "resolve"},
    ),
    Call("revisions.list", {"fileId": "f1"}, f"{FILE}/revisions", {"pageSize": "200"}),
    Call("revisions.get", {"fileId": "f1", "revisionId": "7"}, f"{FILE}/revisions/7"),
    Call(
        "changes.list",
        {"pageToken": "8", "driveId": "d1", "spaces": "drive"},
        "/drive/v3/changes",
        {
            "pageToken": "8",
            "pageSize": "100",
            "driveId": "d1",
            "spaces": "drive",
            "includeRemoved": "true",
            "restrictToMyDrive": "false",
        },
    ),
    Call("changes_start_page_token.get", {"driveId": "d1"}, "/drive/v3/changes/startPageToken", {"driveId": "d1"}),
    Call("about.get", {"fields": "user"}, "/drive/v3/about", {"fields": "user"}),
    Call(
        "files.copy",
        {"fileId": "f1", "name": "Offer", "parents": ["d1"], "supportsAllDrives": True},
        f"{FILE}/copy",
        {"supportsAllDrives": "true"},
        method="POST",
        body={"name": "Offer", "parents": ["d1"]},
    ),
    Call(
        "comments.update",
        {"fileId": "f1", "commentId": "c1", "content": "Done"},
        COMMENT,
        {"fields": "*"},
        method="PATCH",
        body={"content": "Done"},
    ),
    Call("comments.delete", {"fileId": "f1", "commentId": "c1"}, COMMENT, method="DELETE"),
]
REFUSED = [
    Refused("files.list", {"pageSize": 1001}, "pageSize", "at most 1000"),
    Refused("files.update", {"fileId": "f1"}, "", "2"),
    Refused("files_upload.create", {"name": "x"}, "file_content", "missing"),
    Refused("files_export.download", {"fileId": "f1"}, "mimeType", "missing"),
    Refused("permissions.create", {"fileId": "f1", "type": "user", "role": "god"}, "role", "allowed: owner"),
    Refused("changes.list", {}, "pageToken", "missing"),
    Refused("replies.create", {"fileId": "f1", "commentId": "c1"}, "", "at least one of content, action"),
]
ANSWERS = [
    Answer(
        "files.list",
        {"files": [{"id": "f1"}], "nextPageToken": "p2", "incompleteSearch": False},
        [{"id": "f1"}],
        {"nextPageToken": "p2", "incompleteSearch": False},
    ),
    Answer("comments.list", {"kind": "drive#commentList"}, [], {"nextPageToken": None}),
    Answer(
        "changes.list",
        {"changes": [{"fileId": "f1"}], "newStartPageToken": "9"},
        [{"fileId": "f1"}],
        {"nextPageToken": None, "newStartPageToken": "9"},
    ),
    Answer("about.get", {"user": {"displayName": "Ada"}}, {"user": {"displayName": "Ada"}}, None),
]
refused = partial(google_failure, "files.get")
FAILURES = [
    refused(400, "badRequest", UpstreamRejected),
    refused(401, "authError", ReauthorizationRequired),
    refused(403, "insufficientFilePermissions", UpstreamRejected),
    refused(403, "rateLimitExceeded", UpstreamRateLimited),
    refused(403, "sharingRateLimitExceeded", UpstreamRateLimited),
    refused(404, "notFound", UpstreamNotFound),
    refused(429, "rateLimitExceeded", UpstreamRateLimited, headers={"retry-after": "7"}, retry_after=7),
    refused(500, "backendError", UpstreamError),
]
PAGES = [
    Pages(
        "drives.list",
        {"pageSize": 1},
        [{"drives": [{"id": "1"}], "nextPageToken": "p2"}, {"drives": [{"id": "2"}]}],
        [[{"id": "1"}], [{"id": "2"}]],
        ["/drive/v3/drives?pageSize=1", "/drive/v3/drives?pageSize=1&pageToken=p2"],
    ),
]
CASES = Cases(
    "google-drive",
    "https://www.googleapis.com",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"refresh_token": "r", "access_token": "t"}, "Bearer t")],
    check=(f"{FILES}?pageSize=1&fields={quote(LISTED, safe='')}", {"files": []}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[
        BadCredentials({}, "refresh_token", "refresh_token"),
        BadCredentials({"refresh_token": "r", "api_key": "k"}, "api_key", "api_key is not a credential"),
    ],
)
