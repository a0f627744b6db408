"""The transport against a server that misbehaves on demand: what is tried again, what never is, and what is cut off."""

import asyncio
import gzip
import socket
from collections.abc import Mapping
from uuid import uuid4

import pytest
from yarl import URL

from gateway.contract.kinds import Effect
from gateway.errors import (
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamRateLimited,
    UpstreamTimeout,
    UpstreamTooLarge,
    UpstreamTruncated,
)
from gateway.upstream.auth import StaticAuthorizer
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.rate_limits import RateScope, Unlimited
from gateway.upstream.requests import UpstreamRequest
from gateway.upstream.responses import UpstreamResponse
from gateway.upstream.sent_requests import SentRequest
from gateway.upstream.transport import ANSWER_CAP, NotSent, Transport
from gateway.upstream.upstreams import Upstreams
from tests.kinds.small_kind import small_operation
from tests.upstream.wire import CLOSE, OK, SILENCE, Wire, answer

READ, IDEMPOTENT, WRITE = Effect.READ, Effect.IDEMPOTENT, Effect.WRITE
MIB = 1 << 20


SCOPE = RateScope(id="small:c-1", kind="small")
OF_CONNECTOR = RateScope.of_connector(small_operation().spec, uuid4())


async def sent(transport: Transport, request: UpstreamRequest, timeout: float = 60) -> UpstreamResponse:
    """The answer at the end of all tries, by a session that says nothing of who calls."""
    session = Upstreams(transport).session(small_operation().spec, {}, StaticAuthorizer({}), SCOPE)
    return (await session.exchange(request, timeout=timeout)).response


def request(wire: Wire, effect: Effect = READ, method: str = "GET") -> UpstreamRequest:
    body = None if method == "GET" else b"{}"
    return UpstreamRequest(
        method=method, url=wire.origin / "things", headers={"Authorization": "Bearer x"}, body=body, effect=effect
    )


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize(
    "lost",
    [CLOSE, answer(b"{", length=9), answer(status="503 Away"), answer(status="500 Oops"), b"HTTP/1.1 200 OK\r\n"],
)
async def test_a_read_is_sent_again_until_it_is_answered(wire, transport, lost):
    wire.says(lost, lost, OK)

    response = await sent(transport, request(wire))

    assert (response.status, response.body) == (200, b"{}")
    assert len(wire.received) == 3


@pytest.mark.usefixtures("skipped_pauses")
async def test_a_read_is_tried_three_times_and_no_more(wire, transport):
    wire.says(CLOSE, CLOSE, CLOSE, OK)

    with pytest.raises(UpstreamError):
        await sent(transport, request(wire))

    assert len(wire.received) == 3


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("effect", [WRITE, IDEMPOTENT])
async def test_what_changes_something_is_sent_once_on_a_fresh_and_on_a_used_connection(wire, transport, method, effect):
    wire.says(OK, CLOSE)
    await sent(transport, request(wire, effect, method))

    with pytest.raises(UpstreamError) as lost:
        await sent(transport, request(wire, effect, method))

    assert len(wire.received) == 2
    assert lost.value.is_outcome_unknown
    assert lost.value.extra["safe_to_retry"] is (effect is IDEMPOTENT)


@pytest.mark.parametrize(
    ("lost", "error"),
    [
        (CLOSE, UpstreamError),
        (answer(b"{", length=9), UpstreamTruncated),
        (answer(status="502 Bad Gateway"), UpstreamError),
        (answer(status="504 Gateway Timeout"), UpstreamError),
        (b"no http at all\r\n\r\n", UpstreamInvalidResponse),
        (SILENCE, UpstreamTimeout),
    ],
)
async def test_a_write_whose_answer_is_lost_ends_unknown(wire, transport, lost, error):
    wire.says(lost)

    with pytest.raises(error) as raised:
        await sent(transport, request(wire, WRITE, "POST"), timeout=0.2)

    assert raised.value.is_outcome_unknown
    assert not raised.value.retryable
    assert len(wire.received) == 1


@pytest.mark.parametrize(("status", "is_unknown"), [("500 Oops", True), ("503 Away", False)])
async def test_a_write_that_the_application_failed_is_not_to_be_sent_again(wire, transport, status, is_unknown):
    wire.says(answer(status=status))

    with pytest.raises(UpstreamError) as raised:
        await sent(transport, request(wire, WRITE, "POST"))

    assert raised.value.is_outcome_unknown is is_unknown
    assert not raised.value.retryable
    assert len(wire.received) == 1


@pytest.mark.usefixtures("skipped_pauses")
async def test_a_write_that_was_never_sent_is_tried_again_and_its_outcome_is_known(transport, wire):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        origin = URL(f"http://127.0.0.1:{unused.getsockname()[1]}")

    async with Transport(EgressPolicy.of([origin])) as elsewhere:
        with pytest.raises(UpstreamError, match="cannot be reached") as raised:
            await sent(elsewhere, UpstreamRequest(method="POST", url=origin, headers={}, body=b"{}", effect=WRITE))

    assert raised.value.retryable
    assert not raised.value.is_outcome_unknown


async def test_the_time_allowed_is_for_all_tries_together(wire, transport):
    wire.says(SILENCE, SILENCE)
    clock = asyncio.get_running_loop().time
    began = clock()

    with pytest.raises(UpstreamTimeout):
        await sent(transport, request(wire), timeout=0.3)

    assert 0.3 <= clock() - began < 0.6
    assert len(wire.received) == 1


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize("effect", [READ, WRITE])
async def test_the_wait_that_the_application_requests_is_kept(wire, transport, effect):
    wire.says(answer(b"{}", "429 Slow Down", "Retry-After: 1"), OK)
    clock = asyncio.get_running_loop().time
    began = clock()

    response = await sent(transport, request(wire, effect, "POST"))

    assert response.status == 200
    assert clock() - began >= 1


async def test_a_wait_beyond_patience_is_the_callers(wire, transport):
    wire.says(answer(b"{}", "429 Slow Down", "Retry-After: 60"))

    response = await sent(transport, request(wire))

    assert response.status == 429
    assert response.headers["retry-after"] == "60"


async def test_a_refusal_is_an_answer_and_not_repeated(wire, transport):
    wire.says(answer(b'{"error": "no"}', "422 No"))

    response = await sent(transport, request(wire))

    assert (response.status, response.body) == (422, b'{"error": "no"}')


async def test_an_answer_beyond_the_cap_is_cut_off(wire, transport):
    wire.says(answer(b"0" * (ANSWER_CAP + 1)))

    with pytest.raises(UpstreamTooLarge, match="larger than 32 MiB"):
        await sent(transport, request(wire))


async def test_an_answer_of_just_the_cap_is_read_whole(wire, transport):
    wire.says(answer(b"0" * ANSWER_CAP))

    response = await sent(transport, request(wire))

    assert len(response.body) == ANSWER_CAP


async def test_a_compressed_bomb_is_dropped_on_the_way(wire, transport):
    bomb = gzip.compress(bytes(ANSWER_CAP + 8 * MIB), compresslevel=1)
    wire.says(answer(bomb, "200 OK", "Content-Encoding: gzip"))

    with pytest.raises(UpstreamTooLarge):
        await sent(transport, request(wire))


async def test_a_compressed_answer_is_decoded(wire, transport):
    wire.says(answer(gzip.compress(b'{"a": 1}'), "200 OK", "Content-Encoding: gzip"))

    response = await sent(transport, request(wire))

    assert response.body == b'{"a": 1}'


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize(
    "broken",
    [
        answer(b"{", length=9),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
        answer(b"not gzip", "200 OK", "Content-Encoding: gzip"),
    ],
)
async def test_a_truncated_answer_never_looks_complete(wire, transport, broken):
    wire.says(broken, broken, broken)

    with pytest.raises(UpstreamTruncated):
        await sent(transport, request(wire))


@pytest.mark.parametrize(
    "nonsense", [b"SSH-2.0-server\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * (64 << 10) + b"\r\n\r\n"]
)
async def test_what_is_not_http_is_an_invalid_response(wire, transport, nonsense):
    wire.says(nonsense)

    with pytest.raises(UpstreamInvalidResponse):
        await sent(transport, request(wire))

    assert len(wire.received) == 1


async def test_a_redirect_is_not_followed(wire, transport):
    wire.says(answer(b"", "302 Found", f"Location: {wire.origin}/elsewhere"), OK)

    with pytest.raises(UpstreamInvalidResponse, match="302"):
        await sent(transport, request(wire))

    assert len(wire.received) == 1


async def test_an_address_within_is_never_reached(wire):
    async with Transport() as strict:
        with pytest.raises(UpstreamInvalidResponse, match="not on the public Internet") as raised:
            await sent(strict, request(wire, WRITE, "POST"))

    assert not raised.value.is_outcome_unknown
    assert wire.received == []


async def test_cookies_are_not_kept(wire, transport):
    wire.says(answer(b"{}", "200 OK", "Set-Cookie: session=abc"), OK)

    await sent(transport, request(wire))
    await sent(transport, request(wire))

    assert "abc" not in wire.received[1]


async def test_proxies_of_the_environment_are_not_used(wire, transport, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    wire.says(OK)

    response = await sent(transport, request(wire))

    assert response.status == 200


async def test_header_names_come_in_lower_case(wire, transport):
    wire.says(answer(b"{}", "200 OK", "X-Rate-Limit: 700"))

    response = await sent(transport, request(wire))

    assert response.headers["x-rate-limit"] == "700"


async def test_a_stream_is_requested_plain_and_passed_on_undecoded(wire, transport):
    packed = gzip.compress(b"bytes")
    wire.says(answer(packed, "206 Partial Content", "Content-Encoding: gzip"))

    async with transport.open(request(wire), SCOPE) as stream:
        body = b"".join([piece async for piece in stream.chunks])

    assert (stream.status, stream.headers["content-encoding"], body) == (206, "gzip", packed)
    assert "Accept-Encoding: identity" in wire.received[0]


async def test_a_stream_that_is_cut_short_says_so(wire, transport):
    wire.says(answer(b"half", length=8))

    with pytest.raises(UpstreamTruncated):
        async with transport.open(request(wire), SCOPE) as stream:
            [piece async for piece in stream.chunks]


async def test_a_stream_that_cannot_be_opened_says_so(wire):
    async with Transport() as strict:
        with pytest.raises(NotSent) as unsent:
            async with strict.open(request(wire), SCOPE):
                pass

    assert isinstance(unsent.value.error, UpstreamInvalidResponse)


async def test_a_stream_that_does_not_begin_in_time_is_in_the_request_log(wire):
    wire.says(SILENCE)
    noted: list[SentRequest] = []

    async with Transport(EgressPolicy.of([wire.origin]), observe=noted.append) as transport:
        with pytest.raises(UpstreamTimeout):
            async with transport.open(request(wire), OF_CONNECTOR, timeout=0.2):
                pass

    assert [(each.path, each.status, each.error) for each in noted] == [("/things", None, "upstream_timeout")]


async def test_a_stream_whose_caller_leaves_before_it_begins_is_in_the_request_log(wire):
    wire.says(SILENCE)
    noted: list[SentRequest] = []

    async with Transport(EgressPolicy.of([wire.origin]), observe=noted.append) as transport:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2), transport.open(request(wire), OF_CONNECTOR):
                pass

    assert [(each.path, each.status, each.error) for each in noted] == [("/things", None, "interrupted")]


class ClosedLimiter(Unlimited):
    """A limiter whose scope has used up its budget, and that remembers what it observes."""

    def __init__(self) -> None:
        self.observed: list[tuple[RateScope, str]] = []
        self.is_closed = False

    def acquire(self, scope: RateScope, timeout: float) -> None:
        if self.is_closed:
            raise UpstreamRateLimited("the budget is used up", retry_after=60)

    def release(self, scope: RateScope, headers: Mapping[str, str] | None) -> None:
        assert headers is not None
        self.observed.append((scope, headers["x-left"]))


@pytest.mark.usefixtures("skipped_pauses")
async def test_a_rate_limiter_sees_every_answer_and_can_hold_a_request_back(wire):
    limiter = ClosedLimiter()
    wire.says(answer(b"{}", "500 Oops", "X-Left: 2"), answer(b"{}", "200 OK", "X-Left: 1"))

    async with Transport(EgressPolicy.of([wire.origin]), limiter) as transport:
        await sent(transport, request(wire))
        limiter.is_closed = True
        with pytest.raises(UpstreamRateLimited):
            await sent(transport, request(wire))

    assert limiter.observed == [(SCOPE, "2"), (SCOPE, "1")]
    assert len(wire.received) == 2


def test_a_rate_scope_has_no_default():
    with pytest.raises(ValueError, match="needs an id"):
        RateScope(id="", kind="small")


async def test_a_transport_must_be_opened(wire):
    with pytest.raises(RuntimeError, match="before it was opened"):
        await sent(Transport(), request(wire))
