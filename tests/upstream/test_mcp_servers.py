"""Tools of MCP servers as operations: servers of every revision, with and without sessions, and hostile ones."""

import asyncio
import json

import pytest
from opentelemetry.semconv._incubating.metrics.mcp_metrics import MCP_CLIENT_OPERATION_DURATION
from yarl import URL

from gateway.errors import (
    GatewayError,
    InvalidParams,
    ReauthorizationRequired,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamRejected,
    UpstreamTimeout,
    UpstreamTooLarge,
)
from gateway.foundation.mcp import HANDSHAKE_VERSIONS, OLDEST_VERSION, VERSIONS, has_handshake
from gateway.foundation.telemetry.metrics import REGISTRY
from gateway.kinds.importing.mapping import Options, import_document
from gateway.upstream.mcp_messages import message
from gateway.upstream.mcp_servers import McpAddress, described
from tests.harness.mcp_server import SEARCH, tools
from tests.upstream.mcp_reached import KIND, TITLE, reaching
from tests.upstream.mcp_reached import URL as ADDRESS

SERVERS = {
    **{f"{version}, {answers}": {"protocol": version, "streams": answers == "streams"}
       for version in VERSIONS for answers in ("JSON", "streams")},
    **{f"{version}, sessions": {"protocol": version, "has_sessions": True, "streams": True}
       for version in (*HANDSHAKE_VERSIONS, OLDEST_VERSION)},
}  # fmt: skip


@pytest.mark.parametrize("members", SERVERS.values(), ids=SERVERS)
async def test_tools_of_every_revision_are_called(members):
    async with reaching(**members) as reached:
        connector = await reached.connector()
        await connector.check()
        await connector.check()

        results = [await connector.execute(KIND, "create_issue", TITLE) for _ in range(2)]

    assert connector.kind.spec.mcp == members["protocol"]
    assert [json.loads(each.decoded()["content"][0]["text"]) for each in results] == [TITLE, TITLE]
    assert reached.server.asked.count("initialize") == has_handshake(members["protocol"])
    assert reached.server.asked[-2:] == ["tools/call create_issue"] * 2


@pytest.mark.parametrize("status", [400, 404])
async def test_a_session_that_the_server_has_forgotten_begins_anew(status):
    async with reaching(protocol="2025-11-25", has_sessions=True, unknown_session=status) as reached:
        connector = await reached.connector()
        await connector.execute(KIND, "create_issue", TITLE)
        reached.server.sessions.clear()
        reached.server.asked.clear()

        await connector.execute(KIND, "create_issue", TITLE)

    called = "tools/call create_issue"
    assert reached.server.asked == [called, "initialize", "notifications/initialized", called]


async def test_a_session_is_not_used_with_other_credentials():
    async with reaching(protocol="2025-11-25", has_sessions=True) as reached:
        old = await reached.connector("old-token")
        new = await reached.connector("new-token", scope=old.session.scope)
        reached.server.headers.clear()

        for connector in (old, old, new, new):
            await connector.execute(KIND, "create_issue", TITLE)

    opened = {(each["Authorization"], each.get("Mcp-Session-Id")) for each in reached.server.headers}
    tokens = sorted(token for token, session_id in opened if session_id is not None)
    assert tokens == ["Bearer new-token", "Bearer old-token"]
    assert len({session_id for _, session_id in opened if session_id is not None}) == 2


@pytest.mark.parametrize("protocol", HANDSHAKE_VERSIONS)
async def test_what_a_server_asks_before_it_answers_is_refused_and_a_ping_is_answered(protocol):
    asks = ("ping", "elicitation/create", "sampling/createMessage", "roots/list")
    async with reaching(protocol=protocol, has_sessions=True, streams=True) as reached:
        connector = await reached.connector("secret")
        reached.server.asks = asks
        reached.server.headers.clear()

        await connector.execute(KIND, "create_issue", TITLE)

    assert [each["id"] for each in reached.server.replies] == list(asks)
    assert [each.get("result") for each in reached.server.replies] == [{}, None, None, None]
    assert [each["error"]["code"] for each in reached.server.replies[1:]] == [-32601] * 3


async def test_a_server_that_asks_without_end_is_answered_a_bounded_number_of_times():
    async with reaching(protocol="2025-11-25", streams=True) as reached:
        session = (await reached.connector()).session
        reached.server.asks = ["ping"] * 30
        with pytest.raises(UpstreamTimeout):
            await session.ask(message(URL(f"{session.address}/mcp"), "tools/list", {}, "2025-11-25"), timeout=3)

    assert len(reached.server.replies) == 20


async def test_no_id_is_used_twice_in_a_session():
    async with reaching(protocol="2025-11-25", has_sessions=True, streams=True) as reached:
        connector = await reached.connector()
        await connector.execute(KIND, "create_issue", TITLE)

        titles = [f"Broken {number}" for number in range(5)]
        calls = (connector.execute(KIND, "create_issue", {"title": each}) for each in titles)
        results = [json.loads(each.decoded()["content"][0]["text"]) for each in await asyncio.gather(*calls)]

    assert [each["title"] for each in results] == titles
    assert reached.server.asked.count("initialize") == 1


async def test_a_session_that_is_never_known_ends():
    async with reaching(protocol="2025-11-25", has_sessions=True) as reached:
        connector = await reached.connector()
        await connector.execute(KIND, "create_issue", TITLE)
        reached.server.sessions = Nothing()

        with pytest.raises(UpstreamNotFound):
            await connector.execute(KIND, "create_issue", TITLE)


class Nothing(set):
    """A set that keeps nothing."""

    def add(self, _: object) -> None: ...


async def test_every_page_of_tools_is_read():
    async with reaching(tools=[*tools(7)], page=2) as reached:
        found = await reached.described()

    assert [each["name"] for each in found["tools"]] == [f"tool_{number}" for number in range(7)]


async def test_a_list_that_does_not_come_in_time_is_given_up():
    async with reaching(streams=True, is_silent=True) as reached:
        with pytest.raises(UpstreamTimeout, match="has not listed its tools"):
            await described(reached.upstreams, McpAddress(url=ADDRESS, kind=KIND), within=0.3)


ODD_BODIES = {
    "JSON as text": ("text/plain", b"%b"),
    "JSON of no type": ("application/octet-stream", b"%b"),
    "JSON with a byte order mark": ("application/json", b"\xef\xbb\xbf%b"),
    "events with a byte order mark": ("text/event-stream; charset=utf-8", b"\xef\xbb\xbfdata: %b\n\n"),
}


@pytest.mark.parametrize(("media_type", "body"), ODD_BODIES.values(), ids=ODD_BODIES)
async def test_a_response_is_read_whatever_its_type_and_its_byte_order_mark(media_type, body):
    async with reaching() as reached:
        connector = await reached.connector()
        reached.server.wrapping = media_type, body

        result = await connector.execute(KIND, "create_issue", TITLE)

    assert json.loads(result.decoded()["content"][0]["text"]) == TITLE


REFUSED = {
    "a cursor again and again": ({"repeats_cursor": True}, UpstreamInvalidResponse, "does not end"),
    "more tools than it may have": ({"tools": [*tools(2_001)], "page": 3_000}, UpstreamInvalidResponse, "2,000 tools"),
    "a token that is missing": ({"token": "secret"}, InvalidParams, "asks for a token"),
    "a stream without an end": ({"streams": True, "is_endless": True}, UpstreamTooLarge, "MiB"),
    "a stream without a response": ({"streams": True, "is_cut": True}, UpstreamError, "ended before"),
}


@pytest.mark.parametrize(("members", "error", "words"), REFUSED.values(), ids=REFUSED)
async def test_a_list_of_tools_is_refused_with_the_reason(members, error, words):
    async with reaching(**members) as reached:
        with pytest.raises(error, match=words):
            await reached.described()


@pytest.mark.parametrize("url", ["http://mcp.tracker.io/mcp", "ftp://x/mcp", "mcp.tracker.io", "https://u:p@a.io/mcp"])
async def test_an_address_that_is_no_https_url_is_refused(url):
    async with reaching() as reached:
        with pytest.raises(InvalidParams):
            await reached.described(url=url)

    assert reached.server.asked == []


FAILURES = {
    "an error of the tool": (
        {"content": [{"type": "text", "text": "no such project"}], "isError": True},
        UpstreamRejected,
        "no such project",
    ),
    "an unknown tool": ({"error": {"code": -32601, "message": "gone"}}, UpstreamNotFound, "gone"),
    "wrong arguments": ({"error": {"code": -32602, "message": "title is empty"}}, UpstreamRejected, "title is empty"),
    "a question for a person": ({"resultType": "input_required"}, UpstreamRejected, "asks a person"),
}


@pytest.mark.parametrize(("answer", "error", "words"), FAILURES.values(), ids=FAILURES)
async def test_a_call_that_failed_says_why(answer, error, words):
    async with reaching(answer=answer) as reached:
        connector = await reached.connector()
        with pytest.raises(error, match=words):
            await connector.execute(KIND, "create_issue", TITLE)


async def test_a_write_whose_response_is_lost_has_an_unknown_outcome_and_is_not_repeated():
    async with reaching(protocol="2025-11-25", streams=True) as reached:
        connector = await reached.connector()
        reached.server.is_cut = True
        with pytest.raises(GatewayError) as raised:
            await connector.execute(KIND, "create_issue", TITLE)

    assert raised.value.extra["outcome"] == "unknown"
    assert reached.server.asked.count("tools/call create_issue") == 1


async def test_arguments_are_checked_against_the_tools_schema():
    async with reaching() as reached:
        connector = await reached.connector()
        with pytest.raises(InvalidParams) as raised:
            await connector.execute(KIND, "create_issue", {"labels": ["none"], "wrong": 1})

    assert {each.field for each in raised.value.faults} == {"title", "labels.0", "wrong"}
    assert reached.server.asked == []


async def test_a_dry_run_shows_the_message_and_sends_nothing():
    async with reaching() as reached:
        connector = await reached.connector("secret")

        [shown] = connector.dry_run(KIND, "create_issue", TITLE)

    assert shown["body"]["params"]["name"] == "create_issue"
    assert shown["body"]["params"]["arguments"] == TITLE
    assert shown["headers"]["Authorization"] == "***"
    assert reached.server.asked == []


async def test_the_duration_of_a_request_has_opentelemetrys_name_its_method_and_its_error():
    def counted(method: str, error_type: str = "") -> float:
        name = MCP_CLIENT_OPERATION_DURATION.replace(".", "_")
        labels = {"mcp_method_name": method, "error_type": error_type}
        return REGISTRY.get_sample_value(f"{name}_seconds_count", labels) or 0

    cases = [("tools/call", ""), ("tools/list", ""), ("tools/call", "401")]
    before = [counted(*case) for case in cases]
    async with reaching() as reached:
        connector = await reached.connector()
        await connector.execute(KIND, "create_issue", TITLE)
        reached.server.token = "another"
        with pytest.raises(ReauthorizationRequired):
            await connector.execute(KIND, "create_issue", TITLE)

    assert [counted(*case) - earlier for case, earlier in zip(cases, before, strict=True)] == [1, 1, 1]


async def test_a_refused_token_asks_for_another_connection():
    async with reaching(token="right") as reached:
        connector = await reached.connector("right")
        reached.server.token = "another"
        with pytest.raises(ReauthorizationRequired):
            await connector.execute(KIND, "call_search", {"query": "x"})


async def test_a_tool_that_says_that_it_reads_is_a_write_until_a_person_confirms_it():
    async with reaching(tools=[SEARCH]) as reached:
        imported = import_document(await reached.described(), Options(kind=KIND))

    assert imported.entities[KIND]["actions"]["call_search"]["effect"] == "write"
    assert [each.place for each in imported.findings if "only reads" in each.reason] == ["search"]
