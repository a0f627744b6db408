"""Team chat, beside what is tested of every kind: answers whose status never tells the truth."""

import msgspec
import pytest

from gateway.contract.kinds import Effect
from gateway.errors import ReauthorizationRequired, UpstreamInvalidResponse, UpstreamRateLimited, UpstreamRejected
from gateway.kinds.loading import load_kind, shipped_specs
from gateway.upstream.responses import UpstreamResponse
from tests.upstream.judged import read
from tests.upstream.kinds.tables.team_chat import JSON, READS

KIND = load_kind(shipped_specs() / "team-chat")


def test_what_can_be_repeated_without_harm_says_so():
    effects = {str(operation): operation.action.effect for operation in KIND.operations.values()}

    assert {name for name, effect in effects.items() if effect is Effect.READ} == {case[0] for case in READS}
    assert {name for name, effect in effects.items() if effect is Effect.IDEMPOTENT} == {
        "channels.update",
        "messages.update",
        "channel_topics.create",
        "channel_purposes.create",
    }


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


@pytest.mark.usefixtures("skipped_pauses")
async def test_a_limit_is_waited_for_as_long_as_the_application_asks(upstream, connect):
    upstream.answers({"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": "1"})
    upstream.answers({"ok": True, "user": {"id": "U1"}})

    answer = await connect("team-chat", {"bot_key": "xoxb-1"}).execute("users", "get", {"user": "U1"})

    assert answer.decoded() == {"id": "U1"}


async def test_a_limit_that_outlasts_the_callers_patience_says_how_long_it_is(upstream, connect):
    upstream.answers({"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": "60"})

    with pytest.raises(UpstreamRateLimited) as limited:
        await connect("team-chat", {"bot_key": "xoxb-1"}).execute("users", "get", {"user": "U1"})

    assert limited.value.retry_after == 60
