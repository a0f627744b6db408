"""The cases of Gmail."""

from functools import partial

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Pages, Refused, google_failure

ME = "/gmail/v1/users/me"
RAW = "VG86IGFkYUBleGFtcGxlLmNvbQ0KDQpIaQ"
COLOR = {"textColor": "#000000", "backgroundColor": "#ffffff"}
LISTED = {"maxResults": "100", "includeSpamTrash": "false"}
PAGE = {"maxResults": 5, "pageToken": "p2", "q": "is:unread", "includeSpamTrash": True}
PAGE_SENT = {"maxResults": "5", "pageToken": "p2", "q": "is:unread", "includeSpamTrash": "true"}

CALLS = [
    Call("profile.get", {}, f"{ME}/profile"),
    Call("messages.list", {}, f"{ME}/messages", LISTED),
    Call("messages.list", {**PAGE, "labelIds": "INBOX"}, f"{ME}/messages", {**PAGE_SENT, "labelIds": "INBOX"}),
    Call(
        "messages.list",
        {"labelIds": ["INBOX", "UNREAD"]},
        f"{ME}/messages",
        [("maxResults", "100"), ("labelIds", "INBOX"), ("labelIds", "UNREAD"), ("includeSpamTrash", "false")],
    ),
    Call(
        "messages.get",
        {"messageId": "m1", "format": "metadata", "metadataHeaders": "Subject"},
        f"{ME}/messages/m1",
        {"format": "metadata", "metadataHeaders": "Subject"},
    ),
    Call("messages.get", {"messageId": "m1"}, f"{ME}/messages/m1", {"format": "full"}),
    Call(
        "messages.create",
        {"raw": RAW, "threadId": "t1"},
        f"{ME}/messages/send",
        method="POST",
        body={"raw": RAW, "threadId": "t1"},
    ),
    Call(
        "messages.update",
        {"messageId": "m1", "addLabelIds": ["STARRED"], "removeLabelIds": ["UNREAD"]},
        f"{ME}/messages/m1/modify",
        method="POST",
        body={"addLabelIds": ["STARRED"], "removeLabelIds": ["UNREAD"]},
    ),
    Call("messages_trash.create", {"messageId": "m1"}, f"{ME}/messages/m1/trash", method="POST"),
    Call("messages_untrash.create", {"messageId": "m1"}, f"{ME}/messages/m1/untrash", method="POST"),
    Call("attachments.get", {"messageId": "m1", "attachmentId": "a1"}, f"{ME}/messages/m1/attachments/a1"),
    Call("labels.list", {}, f"{ME}/labels"),
    Call(
        "labels.create",
        {"name": "Bills", "messageListVisibility": "show", "labelListVisibility": "labelShow", "color": COLOR},
        f"{ME}/labels",
        method="POST",
        body={"name": "Bills", "messageListVisibility": "show", "labelListVisibility": "labelShow", "color": COLOR},
    ),
    Call("labels.get", {"labelId": "Label_7"}, f"{ME}/labels/Label_7"),
    Call(
        "labels.update",
        {"labelId": "Label_7", "id": "Label_7", "name": "Bills"},
        f"{ME}/labels/Label_7",
        method="PATCH",
        body={"id": "Label_7", "name": "Bills"},
        sdk_differs="the SDK sends PUT, which replaces the whole label",
    ),
    Call("labels.delete", {"labelId": "Label_7"}, f"{ME}/labels/Label_7", method="DELETE"),
    Call("drafts.list", PAGE, f"{ME}/drafts", PAGE_SENT),
    Call(
        "drafts.create",
        {"message": {"raw": RAW, "threadId": "t1"}},
        f"{ME}/drafts",
        method="POST",
        body={"message": {"raw": RAW, "threadId": "t1"}},
    ),
    Call("drafts.get", {"draftId": "d1"}, f"{ME}/drafts/d1", {"format": "full"}),
    Call(
        "drafts.update",
        {"draftId": "d1", "message": {"raw": RAW}},
        f"{ME}/drafts/d1",
        method="PUT",
        body={"message": {"raw": RAW}},
    ),
    Call("drafts.delete", {"draftId": "d1"}, f"{ME}/drafts/d1", method="DELETE"),
    Call("drafts_send.create", {"id": "d1"}, f"{ME}/drafts/send", method="POST", body={"id": "d1"}),
    Call("threads.list", {**PAGE, "labelIds": "INBOX"}, f"{ME}/threads", {**PAGE_SENT, "labelIds": "INBOX"}),
    Call("threads.get", {"threadId": "t1", "format": "minimal"}, f"{ME}/threads/t1", {"format": "minimal"}),
    Call(
        "threads.update",
        {"threadId": "t1", "removeLabelIds": ["INBOX"]},
        f"{ME}/threads/t1/modify",
        method="POST",
        body={"removeLabelIds": ["INBOX"]},
    ),
    Call(
        "messages.update_many",
        {"ids": ["m1", "m2"], "addLabelIds": ["STARRED"], "removeLabelIds": ["UNREAD"]},
        f"{ME}/messages/batchModify",
        method="POST",
        body={"ids": ["m1", "m2"], "addLabelIds": ["STARRED"], "removeLabelIds": ["UNREAD"]},
    ),
    Call("threads.trash", {"threadId": "t1"}, f"{ME}/threads/t1/trash", method="POST"),
]
REFUSED = [
    Refused("messages.list", {"maxResults": 501}, "maxResults", "at most 500"),
    Refused("messages.get", {"messageId": "m1", "format": "html"}, "format", "allowed: full"),
    Refused("messages.create", {"to": "ada@example.com"}, "raw", "missing", ["to"]),
    Refused("messages.update", {"messageId": "m1"}, "", "at least one of addLabelIds, removeLabelIds"),
    Refused("labels.update", {"labelId": "L"}, "", "at least one of name"),
    Refused("drafts.create", {"message": {"text": "x"}}, "message.raw", "missing", ["message.text"]),
]
ANSWERS = [
    Answer(
        "messages.list",
        {"messages": [{"id": "m1"}], "nextPageToken": "p2", "resultSizeEstimate": 9},
        [{"id": "m1"}],
        {"nextPageToken": "p2", "resultSizeEstimate": 9},
    ),
    Answer("messages.list", {"resultSizeEstimate": 0}, [], {"nextPageToken": None, "resultSizeEstimate": 0}),
    Answer("labels.list", {}, [], None),
    Answer("profile.get", {"emailAddress": "a@b.c"}, {"emailAddress": "a@b.c"}, None),
]
refused = partial(google_failure, "messages.get")
FAILURES = [
    refused(400, "invalidArgument", UpstreamRejected),
    refused(401, "authError", ReauthorizationRequired),
    refused(403, "insufficientPermissions", UpstreamRejected),
    refused(403, "userRateLimitExceeded", UpstreamRateLimited),
    refused(403, "dailyLimitExceeded", UpstreamRateLimited),
    refused(404, "notFound", UpstreamNotFound),
    refused(429, "rateLimitExceeded", UpstreamRateLimited, headers={"retry-after": "7"}, retry_after=7),
    refused(500, "backendError", UpstreamError),
]
PAGES = [
    Pages(
        "threads.list",
        {"maxResults": 1},
        [{"threads": [{"id": "t1"}], "nextPageToken": "p2"}, {"threads": [{"id": "t2"}]}],
        [[{"id": "t1"}], [{"id": "t2"}]],
        [
            f"{ME}/threads?maxResults=1&includeSpamTrash=false",
            f"{ME}/threads?maxResults=1&pageToken=p2&includeSpamTrash=false",
        ],
    ),
]
CASES = Cases(
    "gmail",
    "https://gmail.googleapis.com",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"refresh_token": "r", "access_token": "t"}, "Bearer t")],
    check=(f"{ME}/profile", {"emailAddress": "ada@example.com"}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[
        BadCredentials({}, "refresh_token", "refresh_token"),
        BadCredentials({"refresh_token": "r", "api_key": "k"}, "api_key", "api_key is not a credential"),
    ],
)
