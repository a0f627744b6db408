"""One connector at work: credentials on the request and renewed once, writes marked as in flight, dry runs."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from yarl import URL

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamFault,
    UpstreamInvalidResponse,
    UpstreamRateLimited,
    UpstreamRejected,
    UpstreamTimeout,
)
from gateway.kinds.catalog import Kind
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.prepared import prepare
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.run_context import InMemoryRunContext
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from gateway.web.errors import problem_response
from tests.kinds.small_kind import small_operation
from tests.upstream.wire import CLOSE, OK, answer

REFUSED = answer(b'{"error": "expired"}', "401 Who")
ACTION = {"request": "GET /things", "effect": "read"}
Connect = Callable[..., UpstreamConnector]


class Renewing:
    """Credentials that get better a number of times."""

    def __init__(self, renewals: int) -> None:
        self.number, self.renewals = 1, renewals
        self.refusals: list[str] = []

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer token-{self.number}"}

    async def renewed(self, refused: Mapping[str, str]) -> Mapping[str, str] | None:
        if self.number > self.renewals:
            return None
        self.number += 1
        return await self.headers()

    async def refused(self, credentials: Mapping[str, str], reason: str) -> None:
        self.refusals.append(reason)


class Notes(InMemoryRunContext):
    """A run context that remembers when writes went out, and which of them certainly were not done."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str] = []

    async def mark_in_flight(self) -> None:
        self.noted.append("marked")

    def first_byte_sent(self) -> None:
        self.noted.append("sent")

    async def clear_in_flight(self) -> None:
        self.noted.append("not done")


@pytest.fixture
def connect(wire, transport) -> Connect:
    """Connectors of a kind whose one action is this, at the misbehaving server."""

    def connected(action: dict[str, Any] = ACTION, renewals: int = 0, **spec: Any) -> UpstreamConnector:
        kind = Kind(small_operation(action, **spec).spec)
        upstreams = Upstreams(transport, {kind.name: wire.origin})
        return upstreams.connector(kind, {}, Renewing(renewals), RateScope(id="small:c-1", kind="small"))

    return connected


def tokens(received: list[str]) -> list[str]:
    return [line.split(" ")[-1] for head in received for line in head.split("\r\n") if "Authorization" in line]


@pytest.mark.usefixtures("skipped_pauses")
async def test_refused_credentials_are_renewed_and_the_call_continues(wire, connect):
    wire.says(REFUSED, answer(b'{"a": 1}'))

    answered = await connect(renewals=1).execute("things", "act")

    assert answered.decoded() == {"a": 1}
    assert tokens(wire.received) == ["token-1", "token-2"]


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize(("renewals", "sent"), [(0, ["token-1"]), (5, ["token-1", "token-2"])])
async def test_credentials_are_renewed_once_and_no_more(wire, connect, renewals, sent):
    wire.says(REFUSED, REFUSED, REFUSED)

    connector = connect(renewals=renewals)
    with pytest.raises(ReauthorizationRequired):
        await connector.execute("things", "act")

    assert tokens(wire.received) == sent
    assert connector.session.authorizer.refusals == ["the application answered 401: expired"]


@pytest.mark.usefixtures("skipped_pauses")
async def test_a_refusal_within_a_success_is_renewed_too(wire, connect):
    failure = {"ok": "ok", "code": ["error"], "codes": {"reauthorization_required": ["expired"]}}
    wire.says(answer(b'{"ok": false, "error": "expired"}'), answer(b'{"ok": true}'))

    answered = await connect(renewals=1, failure=failure).execute("things", "act")

    assert answered.decoded() == {"ok": True}
    assert tokens(wire.received) == ["token-1", "token-2"]


async def test_what_an_application_echoes_of_the_credentials_is_masked(wire, connect):
    wire.says(answer(b'{"error": "bad token-1"}', "422 No", "X-Request-Id: token-1"))

    with pytest.raises(UpstreamRejected) as refused:
        await connect(failure={"message": ["error"]}).execute("things", "act")

    assert refused.value.upstream == UpstreamFault(status=422, code=None, message="bad ***", request_id="***")
    assert "token-1" not in refused.value.detail


async def test_a_response_header_that_is_not_utf_8_is_decoded_with_replacement_characters(wire, connect):
    wire.says(answer(b"{}", "422 No", "X-Request-Id: c0?ffee").replace(b"?", b"\xff"))

    with pytest.raises(UpstreamRejected) as refused:
        await connect().execute("things", "act")

    assert refused.value.upstream == UpstreamFault(status=422, request_id="c0\ufffdffee")
    assert problem_response(refused.value, "r-1").status == 422


LIMITED = answer(b"", "429 Too Many Requests", "Retry-After: 3600")


@pytest.mark.parametrize(
    ("effect", "said", "noted"),
    [
        ("read", OK, []),
        ("idempotent", OK, ["marked", "sent"]),
        ("write", OK, ["marked", "sent"]),
        ("write", LIMITED, ["marked", "sent", "not done"]),
    ],
)
async def test_a_write_is_noted_before_it_goes_out_and_when_it_was_put_off(wire, connect, effect, said, noted):
    connector, run_context = connect({"request": "POST /things", "effect": effect}), Notes()
    wire.says(said)

    with contextlib.suppress(UpstreamRateLimited):
        await connector.run(prepare(connector.kind.operation("things", "act"), {}), run_context)

    assert run_context.noted == noted


async def test_a_write_without_an_answer_stays_noted_as_sent(wire, connect):
    connector, run_context = connect({"request": "POST /things", "effect": "write"}), Notes()
    wire.says(CLOSE)

    with pytest.raises(UpstreamError) as lost:
        await connector.run(prepare(connector.kind.operation("things", "act"), {}), run_context)

    assert run_context.noted == ["marked", "sent"]
    assert lost.value.is_outcome_unknown
    assert lost.value.extra["known"] == {"request_sent": True}


async def test_a_write_that_finds_no_connection_in_time_was_certainly_not_sent():
    """The server accepts the connection and never answers the TLS handshake."""
    kind = Kind(small_operation({"request": "POST /things", "effect": "write", "timeout": 1}).spec)
    run_context = Notes()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        origin = URL(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        async with Transport(EgressPolicy.of([origin])) as transport:
            upstreams = Upstreams(transport, {kind.name: origin})
            connector = upstreams.connector(kind, {}, Renewing(0), RateScope(id="small:c-1", kind="small"))
            with pytest.raises(UpstreamTimeout) as unsent:
                await connector.run(prepare(connector.kind.operation("things", "act"), {}), run_context)

    assert not unsent.value.is_outcome_unknown
    assert "the connection timed out" in unsent.value.detail
    assert run_context.noted == ["marked", "not done"]


async def test_a_dry_run_sends_nothing_and_shows_no_secret(wire, connect):
    action = {"request": "POST /things/{id}", "effect": "write", "params": {"id": {}, "name": {}}}

    shown = connect(action).dry_run("things", "act", {"id": "a/b", "name": "x"})

    assert shown == [
        {
            "method": "POST",
            "url": f"{wire.origin}/v1/things/a%2Fb",
            "headers": {"Accept": "application/json", "Content-Type": "application/json", "Authorization": "***"},
            "body": {"name": "x"},
        }
    ]
    assert wire.received == []


async def test_the_check_requests_as_little_as_it_can(wire, connect):
    wire.says(answer(b'{"things": []}'))

    await connect({**ACTION, "records": "things", "paging": "page", "params": {"per_page": {}}}).check()

    assert wire.received[0].startswith("GET /v1/things?per_page=1 HTTP/1.1")


async def test_the_check_says_what_is_wrong_and_which_response_it_is_about(wire, connect):
    wire.says(answer(b"<html>", "200 OK", "X-Request-Id: c0ffee"))

    with pytest.raises(UpstreamInvalidResponse) as raised:
        await connect().check()

    assert raised.value.upstream == UpstreamFault(status=200, request_id="c0ffee")
