"""Team chat: every action as it goes over the wire, and answers whose status never tells the truth."""

from typing import Any

import msgspec
import pytest
from yarl import URL

from gateway.connectors.auth import checked_credentials
from gateway.connectors.responses import UpstreamResponse
from gateway.errors import (
    InvalidCredentials,
    InvalidParams,
    ReauthorizationRequired,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.kinds.catalog import load_kind, shipped_specs
from gateway.kinds.params import validated
from gateway.kinds.spec import Effect
from tests.connectors.judged import read

KIND = load_kind(shipped_specs() / "team-chat")
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


def test_every_action_has_a_case():
    cases = {case[0] for case in (*READS, *WRITES)}

    assert cases == {str(operation) for operation in KIND.operations.values()}


@pytest.mark.parametrize(("action", "params", "path", "query"), READS)
def test_a_read_is_a_query_without_a_body(offline, action, params, path, query):
    [shown] = offline("team-chat").dry_run(*action.split("."), params)

    url = URL(shown["url"])
    assert (shown["method"], str(url.with_query(None))) == ("GET", f"https://slack.com/api/{path}")
    assert dict(url.query) == query
    assert shown["body"] is None
    assert "Content-Type" not in shown["headers"]


@pytest.mark.parametrize(("action", "params", "path"), WRITES)
def test_a_write_is_json_that_names_its_charset(offline, action, params, path):
    [shown] = offline("team-chat").dry_run(*action.split("."), params)

    assert (shown["method"], shown["url"]) == ("POST", f"https://slack.com/api/{path}")
    assert shown["headers"]["Content-Type"] == JSON
    assert shown["body"] == params


@pytest.mark.parametrize("operation", KIND.operations.values(), ids=str)
def test_every_example_is_valid(operation):
    assert validated(operation, operation.action.example).keys() >= operation.action.example.keys()


def test_what_can_be_repeated_without_harm_says_so():
    effects = {str(operation): operation.action.effect for operation in KIND.operations.values()}

    assert {name for name, effect in effects.items() if effect is Effect.READ} == {case[0] for case in READS}
    assert {name for name, effect in effects.items() if effect is Effect.IDEMPOTENT} == {
        "channels.update",
        "messages.update",
        "channel_topics.create",
        "channel_purposes.create",
    }


@pytest.mark.parametrize(
    ("action", "params", "field", "said"),
    [
        ("users.list", {"limit": 1000}, "limit", "at most 999"),
        ("users.get", {}, "user", "user is missing"),
        ("users.get", {"user_id": "U1", "user": "U1"}, "user_id", "did you mean user?"),
        ("channels.list", {"types": "public"}, "types", "comma-separated mix of public_channel"),
        ("channels.list", {"types": "im,mpim,"}, "types", "comma-separated mix"),
        ("channels.create", {"name": "Incident"}, "name", "lower case, without spaces, at most 80 characters"),
        ("channels.create", {"name": "in cident"}, "name", "lower case, without spaces"),
        ("channels.create", {"name": "n" * 81}, "name", "at most 80 characters"),
        ("channels.update", {"channel": "C1", "name": ""}, "name", "lower case, without spaces"),
        ("threads.list", {"channel": "C1"}, "ts", "ts is missing; string (timestamp of the thread's parent message)"),
        ("threads.list", {"channel": "C1", "ts": 1503435956.000247}, "ts", "expected string"),
        ("messages.create", {"channel": "C1", "text": "x", "blocks": [{}]}, "blocks.0.type", "is missing"),
        ("messages.update", {"channel": "C1", "text": "x"}, "ts", "ts is missing"),
        ("channel_topics.create", {"channel": "C1", "topic": "t" * 251}, "topic", "at most 250 characters"),
        (
            "bookmarks.create",
            {"channel_id": "C1", "title": "x", "type": "file", "link": "https://x"},
            "type",
            "type is 'file'; allowed: link",
        ),
        ("scheduled_messages.create", {"channel": "C1", "text": "x", "post_at": "noon"}, "post_at", "expected integer"),
    ],
)
def test_params_that_cannot_be_sent_are_refused_with_the_way_to_mend_them(action, params, field, said):
    with pytest.raises(InvalidParams) as refused:
        validated(KIND.operation(*action.split(".")), params)

    [fault] = refused.value.faults
    assert fault.field == field
    assert said in fault.message


@pytest.mark.parametrize(
    ("action", "body", "records", "meta"),
    [
        (
            "users.list",
            b'{"ok":true,"members":[{"id":"U1"}],"response_metadata":{"next_cursor":"dXNlcjpV="}}',
            [{"id": "U1"}],
            {"next_cursor": "dXNlcjpV="},
        ),
        (
            "channels.list",
            b'{"ok":true,"channels":[],"response_metadata":{"next_cursor":""}}',
            [],
            {"next_cursor": None},
        ),
        (
            "channel_messages.list",
            b'{"ok":true,"messages":[{"ts":"1.000100"}],"has_more":true,"response_metadata":{"next_cursor":"bmV4dA"}}',
            [{"ts": "1.000100"}],
            {"next_cursor": "bmV4dA", "has_more": True},
        ),
        (
            "threads.list",
            b'{"ok":true,"messages":[{"ts":"1.000100"},{"ts":"2.000100","thread_ts":"1.000100"}],"has_more":false}',
            [{"ts": "1.000100"}, {"ts": "2.000100", "thread_ts": "1.000100"}],
            {"next_cursor": None, "has_more": False},
        ),
        ("users.get", b'{"ok":true,"user":{"id":"U1"}}', {"id": "U1"}, None),
        ("channels.get", b'{"ok":true,"channel":{"id":"C1","num_members":4}}', {"id": "C1", "num_members": 4}, None),
        (
            "messages.create",
            b'{"ok":true,"channel":"C1","ts":"1.000100","message":{"ts":"1.000100","text":"x"}}',
            {"ts": "1.000100", "text": "x"},
            None,
        ),
        (
            "messages.delete",
            b'{"ok":true,"channel":"C1","ts":"1.000100"}',
            {"ok": True, "channel": "C1", "ts": "1.000100"},
            None,
        ),
        (
            "reactions.create",
            b'{"ok":true,"warning":"missing_charset"}',
            {"ok": True, "warning": "missing_charset"},
            None,
        ),
        ("bookmarks.create", b'{"ok":true,"bookmark":{"id":"Bk1"}}', {"id": "Bk1"}, None),
    ],
)
def test_an_answer_is_read_into_records_and_meta(action, body, records, meta):
    answer = read(KIND.operation(*action.split(".")), UpstreamResponse(200, {}, body))

    assert answer.decoded() == records
    assert answer.meta == meta


@pytest.mark.parametrize(
    ("code", "error"),
    [
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
    ],
)
def test_a_refusal_comes_with_status_200_and_is_read_by_its_code(code, error):
    body = f'{{"ok":false,"error":"{code}","response_metadata":{{"messages":["[ERROR] no"]}}}}'.encode()

    with pytest.raises(error) as raised:
        read(KIND.operation("users", "list"), UpstreamResponse(200, {}, body))

    assert type(raised.value) is error
    assert (raised.value.upstream.code, raised.value.upstream.message) == (code, "[ERROR] no")


def test_a_missing_scope_is_named():
    body = b'{"ok":false,"error":"missing_scope","needed":"pins:write","provided":"chat:write"}'

    with pytest.raises(UpstreamRejected, match="missing_scope: pins:write"):
        read(KIND.operation("pins", "create"), UpstreamResponse(200, {}, body))


def test_a_success_may_be_of_any_size():
    members = [{"id": f"U{number}", "profile": {"title": "x" * 2000}} for number in range(1000)]
    body = msgspec.json.encode({"members": members, "ok": True, "response_metadata": {"next_cursor": "n"}})

    answer = read(KIND.operation("users", "list"), UpstreamResponse(200, {}, body))

    assert len(body) > 1 << 20
    assert answer.decoded() == members


def test_a_refusal_of_any_size_is_read_by_its_code():
    body = msgspec.json.encode({"ok": False, "error": "token_revoked", "echo": "x" * (2 << 20)})

    with pytest.raises(ReauthorizationRequired):
        read(KIND.operation("users", "list"), UpstreamResponse(200, {}, body))


def test_an_answer_that_does_not_say_whether_it_is_ok_is_not_believed():
    with pytest.raises(UpstreamInvalidResponse):
        read(KIND.operation("users", "list"), UpstreamResponse(200, {}, b'{"members":[]}'))


@pytest.mark.parametrize(
    "credentials",
    [{"bot_key": "xoxb-1"}, {"access_token": "xoxb-1", "client_id": "1.2", "client_secret": "s", "refresh_token": "r"}],
    ids=["token", "oauth"],
)
async def test_a_request_carries_the_token_in_its_header_alone(upstream, connect, credentials):
    upstream.answers({"ok": True, "channel": {"id": "C1"}})

    await connect("team-chat", credentials).execute("channels", "create", {"name": "news"})

    [received] = upstream.received
    assert received.headers["Authorization"] == "Bearer xoxb-1"
    assert (received.method, received.url.path) == ("POST", "/api/conversations.create")
    assert (received.headers["Content-Type"], received.body) == (JSON, {"name": "news"})


def test_credentials_of_no_method_are_refused_by_name():
    with pytest.raises(InvalidCredentials, match="bot_token"):
        checked_credentials(KIND.spec, {"bot_key": "xoxb-1", "bot_token": "xoxb-1"})


@pytest.mark.parametrize(
    ("entity", "params", "member"),
    [("users", {}, "members"), ("channel_messages", {"channel": "C1"}, "messages")],
)
async def test_pages_are_turned_by_cursor_past_an_empty_page(upstream, connect, entity, params, member):
    upstream.answers({"ok": True, member: [{"id": 1}], "response_metadata": {"next_cursor": "b2="}})
    upstream.answers({"ok": True, member: [], "response_metadata": {"next_cursor": "b3="}})
    upstream.answers({"ok": True, member: [{"id": 2}], "response_metadata": {"next_cursor": ""}})

    pages = connect("team-chat", {"bot_key": "xoxb-1"}).pages(entity, "list", {**params, "limit": 1})
    records = [page.decoded() async for page in pages]

    assert records == [[{"id": 1}], [], [{"id": 2}]]
    assert [received.url.query.get("cursor") for received in upstream.received] == [None, "b2=", "b3="]
    assert {received.url.query["limit"] for received in upstream.received} == {"1"}


@pytest.mark.usefixtures("skipped_pauses")
async def test_a_limit_is_waited_for_as_long_as_the_application_asks(upstream, connect):
    upstream.answers({"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": "1"})
    upstream.answers({"ok": True, "user": {"id": "U1"}})

    answer = await connect("team-chat", {"bot_key": "xoxb-1"}).execute("users", "get", {"user": "U1"})

    assert answer.decoded() == {"id": "U1"}


async def test_a_limit_that_outlasts_the_callers_patience_tells_how_long_it_is(upstream, connect):
    upstream.answers({"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": "60"})

    with pytest.raises(UpstreamRateLimited) as limited:
        await connect("team-chat", {"bot_key": "xoxb-1"}).execute("users", "get", {"user": "U1"})

    assert limited.value.retry_after == 60


async def test_the_health_check_asks_for_one_user(upstream, connect):
    upstream.answers({"ok": True, "members": [], "response_metadata": {"next_cursor": ""}})

    await connect("team-chat", {"bot_key": "xoxb-1"}).check()

    assert str(upstream.received[0].url) == "/api/users.list?limit=1"
