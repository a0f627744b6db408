"""The cases of team chat."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

JSON = "application/json; charset=utf-8"
TS = "1503435956.000247"
BLOCKS = [{"type": "section", "text": {"type": "mrkdwn", "text": "*Done*"}}]
WINDOW = {"oldest": "1503435900.000000", "latest": "1503436000.000000"}

#: reads: action, params, path, query
READS: list[tuple[str, dict[str, Any], str, dict[str, str]]] = [
    ("users.list", {}, "users.list", {"limit": "200"}),
    ("users.list", {"limit": 999, "cursor": "dXNlcjpV="}, "users.list", {"limit": "999", "cursor": "dXNlcjpV="}),
    ("users.get", {"user": "U1"}, "users.info", {"user": "U1"}),
    ("channels.list", {}, "conversations.list", {"limit": "200"}),
    (
        "channels.list",
        {"types": "public_channel,private_channel,mpim,im", "exclude_archived": True, "limit": 5},
        "conversations.list",
        {"types": "public_channel,private_channel,mpim,im", "exclude_archived": "true", "limit": "5"},
    ),
    ("channels.get", {"channel": "C1"}, "conversations.info", {"channel": "C1", "include_num_members": "true"}),
    ("channel_messages.list", {"channel": "C1"}, "conversations.history", {"channel": "C1", "limit": "100"}),
    (
        "channel_messages.list",
        {"channel": "C1", "cursor": "bmV4dA==", "limit": 15, "inclusive": False, **WINDOW},
        "conversations.history",
        {"channel": "C1", "cursor": "bmV4dA==", "limit": "15", "inclusive": "false", **WINDOW},
    ),
    (
        "threads.list",
        {"channel": "C1", "ts": TS, "inclusive": True, **WINDOW},
        "conversations.replies",
        {"channel": "C1", "ts": TS, "limit": "100", "inclusive": "true", **WINDOW},
    ),
]

#: writes: action, params that are the body as they are, path
WRITES: list[tuple[str, dict[str, Any], str]] = [
    ("channels.create", {"name": "incident-4711", "is_private": True}, "conversations.create"),
    ("channels.update", {"channel": "C1", "name": "n" * 80}, "conversations.rename"),
    ("messages.create", {"channel": "C1", "text": "Grüße & <b>"}, "chat.postMessage"),
    (
        "messages.create",
        {
            "channel": "U1",
            "text": "fallback",
            "thread_ts": TS,
            "reply_broadcast": True,
            "unfurl_links": False,
            "unfurl_media": False,
            "blocks": BLOCKS,
            "mrkdwn": False,
        },
        "chat.postMessage",
    ),
    ("messages.update", {"channel": "C1", "ts": TS, "text": "new", "blocks": BLOCKS}, "chat.update"),
    ("messages.delete", {"channel": "C1", "ts": TS}, "chat.delete"),
    ("channel_topics.create", {"channel": "C1", "topic": "t" * 250}, "conversations.setTopic"),
    ("channel_purposes.create", {"channel": "C1", "purpose": ""}, "conversations.setPurpose"),
    ("channel_invites.create", {"channel": "C1", "users": "U1,U2", "force": True}, "conversations.invite"),
    ("channel_kicks.create", {"channel": "C1", "user": "U1"}, "conversations.kick"),
    ("channel_archives.create", {"channel": "C1"}, "conversations.archive"),
    (
        "ephemeral_messages.create",
        {"channel": "C1", "user": "U1", "text": "psst", "thread_ts": TS, "blocks": BLOCKS},
        "chat.postEphemeral",
    ),
    (
        "scheduled_messages.create",
        {"channel": "C1", "text": "later", "post_at": 1790000000, "thread_ts": TS, "reply_broadcast": False},
        "chat.scheduleMessage",
    ),
    ("pins.create", {"channel": "C1", "timestamp": TS}, "pins.add"),
    (
        "bookmarks.create",
        {"channel_id": "C1", "title": "Runbook", "type": "link", "link": "https://wiki.example", "emoji": ":book:"},
        "bookmarks.add",
    ),
    ("reactions.create", {"channel": "C1", "timestamp": TS, "name": "thumbsup"}, "reactions.add"),
    ("reactions.delete", {"channel": "C1", "timestamp": TS, "name": "thumbsup"}, "reactions.remove"),
]

CALLS = [
    *(Call(action, params, f"/{path}", query) for action, params, path, query in READS),
    *(Call(action, params, f"/{path}", {}, "POST", params, {"Content-Type": JSON}) for action, params, path in WRITES),
]
REFUSED = [
    Refused("users.list", {"limit": 1000}, "limit", "at most 999"),
    Refused("users.get", {}, "user", "user is missing"),
    Refused("users.get", {"user_id": "U1", "user": "U1"}, "user_id", "did you mean user?"),
    Refused("channels.list", {"types": "public"}, "types", "comma-separated mix of public_channel"),
    Refused("channels.list", {"types": "im,mpim,"}, "types", "comma-separated mix"),
    Refused("channels.create", {"name": "Incident"}, "name", "lower case, without spaces, at most 80 characters"),
    Refused("channels.create", {"name": "in cident"}, "name", "lower case, without spaces"),
    Refused("channels.create", {"name": "n" * 81}, "name", "at most 80 characters"),
    Refused("channels.update", {"channel": "C1", "name": ""}, "name", "lower case, without spaces"),
    Refused(
        "threads.list", {"channel": "C1"}, "ts", "ts is missing; string (timestamp of the thread's parent message)"
    ),
    Refused("threads.list", {"channel": "C1", "ts": 1503435956.000247}, "ts", "expected string"),
    Refused("messages.create", {"channel": "C1", "text": "x", "blocks": [{}]}, "blocks.0.type", "is missing"),
    Refused("messages.update", {"channel": "C1", "text": "x"}, "ts", "ts is missing"),
    Refused("channel_topics.create", {"channel": "C1", "topic": "t" * 251}, "topic", "at most 250 characters"),
    Refused(
        "bookmarks.create",
        {"channel_id": "C1", "title": "x", "type": "file", "link": "https://x"},
        "type",
        "type is 'file'; allowed: link",
    ),
    Refused(
        "scheduled_messages.create", {"channel": "C1", "text": "x", "post_at": "noon"}, "post_at", "expected integer"
    ),
]
ANSWERS = [
    Answer(
        "users.list",
        b'{"ok":true,"members":[{"id":"U1"}],"response_metadata":{"next_cursor":"dXNlcjpV="}}',
        [{"id": "U1"}],
        {"next_cursor": "dXNlcjpV="},
    ),
    Answer(
        "channels.list", b'{"ok":true,"channels":[],"response_metadata":{"next_cursor":""}}', [], {"next_cursor": None}
    ),
    Answer(
        "channel_messages.list",
        b'{"ok":true,"messages":[{"ts":"1.000100"}],"has_more":true,"response_metadata":{"next_cursor":"bmV4dA"}}',
        [{"ts": "1.000100"}],
        {"next_cursor": "bmV4dA", "has_more": True},
    ),
    Answer(
        "threads.list",
        b'{"ok":true,"messages":[{"ts":"1.000100"},{"ts":"2.000100","thread_ts":"1.000100"}],"has_more":false}',
        [{"ts": "1.000100"}, {"ts": "2.000100", "thread_ts": "1.000100"}],
        {"next_cursor": None, "has_more": False},
    ),
    Answer("users.get", b'{"ok":true,"user":{"id":"U1"}}', {"id": "U1"}, None),
    Answer("channels.get", b'{"ok":true,"channel":{"id":"C1","num_members":4}}', {"id": "C1", "num_members": 4}, None),
    Answer(
        "messages.create",
        b'{"ok":true,"channel":"C1","ts":"1.000100","message":{"ts":"1.000100","text":"x"}}',
        {"ts": "1.000100", "text": "x"},
        None,
    ),
    Answer(
        "messages.delete",
        b'{"ok":true,"channel":"C1","ts":"1.000100"}',
        {"ok": True, "channel": "C1", "ts": "1.000100"},
        None,
    ),
    Answer(
        "reactions.create", b'{"ok":true,"warning":"missing_charset"}', {"ok": True, "warning": "missing_charset"}, None
    ),
    Answer("bookmarks.create", b'{"ok":true,"bookmark":{"id":"Bk1"}}', {"id": "Bk1"}, None),
]
#: a refusal comes with status 200 and is read by its code
FAILURES = [
    Failure(
        "users.list",
        200,
        {"ok": False, "error": code, "response_metadata": {"messages": ["[ERROR] no"]}},
        error,
        code,
        "[ERROR] no",
    )
    for code, error in [
        ("not_authed", ReauthorizationRequired),
        ("invalid_auth", ReauthorizationRequired),
        ("account_inactive", ReauthorizationRequired),
        ("token_revoked", ReauthorizationRequired),
        ("token_expired", ReauthorizationRequired),
        ("ratelimited", UpstreamRateLimited),
        ("channel_not_found", UpstreamNotFound),
        ("user_not_found", UpstreamNotFound),
        ("message_not_found", UpstreamNotFound),
        ("thread_not_found", UpstreamNotFound),
        ("internal_error", UpstreamError),
        ("service_unavailable", UpstreamError),
        ("missing_scope", UpstreamRejected),
        ("not_in_channel", UpstreamRejected),
        ("already_reacted", UpstreamRejected),
        ("a_code_of_tomorrow", UpstreamRejected),
    ]
]
PAGES = [
    Pages(
        f"{entity}.list",
        {**params, "limit": 1},
        [
            {"ok": True, member: [{"id": 1}], "response_metadata": {"next_cursor": "b2="}},
            {"ok": True, member: [], "response_metadata": {"next_cursor": "b3="}},
            {"ok": True, member: [{"id": 2}], "response_metadata": {"next_cursor": ""}},
        ],
        [[{"id": 1}], [], [{"id": 2}]],
        [f"/api/{path}limit=1", f"/api/{path}cursor=b2%3D&limit=1", f"/api/{path}cursor=b3%3D&limit=1"],
    )
    for entity, params, member, path in [
        ("users", {}, "members", "users.list?"),
        ("channel_messages", {"channel": "C1"}, "messages", "conversations.history?channel=C1&"),
    ]
]
CASES = Cases(
    "team-chat",
    "https://slack.com/api",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"bot_key": "xoxb-1"}, "Bearer xoxb-1")],
    check=("/api/users.list?limit=1", {"ok": True, "members": [], "response_metadata": {"next_cursor": ""}}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[
        BadCredentials({"bot_key": "xoxb-1", "bot_token": "xoxb-1"}, "bot_token", "bot_token is not a credential")
    ],
)
