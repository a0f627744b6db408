"""A session at the kind's own addresses: what goes out, what an answer means, and who is told of a refusal."""

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from pydantic import SecretStr

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
    UpstreamTimeout,
)
from gateway.kinds.catalog import Kind
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.oauth_tokens.client import TokenClient
from gateway.upstream.oauth_tokens.model import App, TokenSet
from gateway.upstream.rate_limits import RateScope, Unlimited
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.harness.applications import Applications
from tests.harness.catalog import shipped_catalog
from tests.kinds.small_kind import small_operation

URL = "https://api.example.com/v1/things"
SCOPE = RateScope(id="small:c-1", kind="small")
LISTED = {"records": "things", "paging": "page", "order": "stable", "params": {"page": {"type": "integer"}}}


class Renewing:
    """A token that can be renewed once, and the refusals that it is told of."""

    def __init__(self) -> None:
        self.token = "old-token"
        self.refusals: list[tuple[str, str]] = []

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def renewed(self, refused: Mapping[str, str]) -> Mapping[str, str] | None:
        if self.token == "new-token":
            return None
        self.token = "new-token"
        return await self.headers()

    async def refused(self, credentials: Mapping[str, str], reason: str) -> None:
        self.refusals.append((credentials["Authorization"], reason))


class Paused(Unlimited):
    """A limiter that remembers what it was told to pause."""

    def __init__(self) -> None:
        self.pauses: list[tuple[RateScope, float]] = []

    def pause(self, scope: RateScope, seconds: float) -> None:
        self.pauses.append((scope, seconds))


@pytest.fixture
def web() -> Iterator[Applications]:
    with Applications() as web:
        yield web


@pytest.fixture
def limiter() -> Paused:
    return Paused()


@pytest.fixture
async def upstreams(limiter):
    async with Transport(limiter=limiter) as transport:
        yield Upstreams(transport)


def connector(upstreams: Upstreams, action: dict[str, Any] | None = None, **spec: Any) -> UpstreamConnector:
    kind = Kind(small_operation(action, **spec).spec)
    return upstreams.connector(kind, {}, Renewing(), SCOPE)


async def test_a_call_goes_to_the_kinds_own_address_with_the_credentials(web, upstreams):
    web.get(f"{URL}?q=a%26b", payload={"id": 1})

    answer = await connector(upstreams, {"params": {"q": {}}}).execute("things", "act", {"q": "a&b"})

    assert answer.decoded() == {"id": 1}
    [sent] = web.sent("GET", f"{URL}?q=a%26b")
    assert sent["headers"]["Authorization"] == "Bearer old-token"
    assert sent["allow_redirects"] is False


async def test_every_page_is_requested_until_the_last(web, upstreams):
    web.get(URL, payload={"things": [1], "next_page": f"{URL}?page=2"})
    web.get(f"{URL}?page=2", payload={"things": [2], "next_page": None})

    pages = [page.decoded() async for page in connector(upstreams, LISTED).pages("things", "act")]

    assert pages == [[1], [2]]


WITHOUT_RECORDS = {"message": ["error"], "no_records": ["No things found*"]}


@pytest.mark.parametrize("words", ["No things found", "No things found for this filter"])
async def test_a_404_that_says_that_a_list_has_no_records_is_an_empty_page_and_its_end(web, upstreams, words):
    web.get(URL, status=404, payload={"error": words})

    page = await connector(upstreams, LISTED, failure=WITHOUT_RECORDS).execute("things", "act")

    assert (page.decoded(), page.is_proved_end) == ([], True)


@pytest.mark.parametrize(
    ("action", "status", "words", "error"),
    [
        (LISTED, 404, "There is no such project", UpstreamNotFound),
        (LISTED, 400, "No things found for this filter", UpstreamRejected),
        ({"record": "thing"}, 404, "No things found for this filter", UpstreamNotFound),
    ],
)
async def test_other_refusals_are_no_empty_list(web, upstreams, action, status, words, error):
    web.get(URL, status=status, payload={"error": words})

    with pytest.raises(error):
        await connector(upstreams, action, failure=WITHOUT_RECORDS).execute("things", "act")


@pytest.mark.usefixtures("skipped_pauses")
async def test_refused_credentials_are_renewed_without_an_error_for_the_caller(web, upstreams):
    web.get(URL, status=401)
    web.get(URL, payload={})
    calling = connector(upstreams)

    await calling.execute("things", "act")

    assert [sent["headers"]["Authorization"] for sent in web.sent("GET", URL)] == [
        *("Bearer old-token", "Bearer new-token"),
    ]
    assert calling.session.authorizer.refusals == []


@pytest.mark.usefixtures("skipped_pauses")
async def test_credentials_refused_for_good_are_reported_once(web, upstreams):
    web.get(URL, status=401, payload={"error": "new-token is no good"}, repeat=True)
    calling = connector(upstreams, failure={"message": ["error"]})

    with pytest.raises(ReauthorizationRequired):
        await calling.execute("things", "act")

    assert calling.session.authorizer.refusals == [
        ("Bearer new-token", "the application answered 401: *** is no good"),
    ]


OAUTH = {
    "authentication": {
        "oauth": {
            "title": "OAuth",
            "scheme": "bearer",
            "token": "access_token",
            "oauth": True,
            "credentials": {"access_token": {"description": "a token"}},
        }
    },
    "oauth": {
        "authorization_url": "https://api.example.com/authorize",
        "token_url": "https://api.example.com/token",
        "expired_statuses": [403, 404],
    },
}


@pytest.mark.parametrize("status", [403, 404])
async def test_a_status_that_may_mean_an_expired_token_renews_it_once_and_repeats(web, upstreams, status):
    web.get(URL, status=status)
    web.get(URL, payload={"id": 1})
    web.get(URL, status=404, repeat=True)
    calling = connector(upstreams, **OAUTH)

    answer = await calling.execute("things", "act")
    for _ in range(3):
        with pytest.raises(UpstreamNotFound):
            await calling.execute("things", "act")

    assert answer.decoded() == {"id": 1}
    tokens = [sent["headers"]["Authorization"] for sent in web.sent("GET", URL)]
    assert tokens == ["Bearer old-token", *["Bearer new-token"] * 4]
    assert calling.session.authorizer.refusals == []


async def test_a_record_that_is_missing_is_missing_also_for_the_renewed_token(web, upstreams):
    web.get(URL, status=404, repeat=True)

    with pytest.raises(UpstreamNotFound):
        await connector(upstreams, **OAUTH).execute("things", "act")

    assert len(web.sent("GET", URL)) == 2


async def test_a_request_that_was_sent_with_the_old_token_is_repeated_with_the_new_one(web, upstreams):
    class RenewedMeanwhile(Renewing):
        async def headers(self):
            now, self.token = self.token, "new-token"
            return {"Authorization": f"Bearer {now}"}

    web.get(URL, status=404)
    web.get(URL, payload={"id": 1})
    calling = connector(upstreams, **OAUTH)
    calling = replace(calling, session=replace(calling.session, authorizer=RenewedMeanwhile()))
    calling.session.transport.doubts.settle(SCOPE.id)

    answer = await calling.execute("things", "act")

    assert answer.decoded() == {"id": 1}
    assert web.sent("GET", URL)[1]["headers"]["Authorization"] == "Bearer new-token"


async def test_a_missing_record_stays_missing_if_the_token_cannot_be_renewed_now(web, upstreams):
    class Unrenewable(Renewing):
        async def renewed(self, refused):
            raise UpstreamError("the token endpoint is away")

    web.get(URL, status=404)
    calling = connector(upstreams, **OAUTH)
    calling = replace(calling, session=replace(calling.session, authorizer=Unrenewable()))

    with pytest.raises(UpstreamNotFound):
        await calling.execute("things", "act")


async def test_a_403_that_is_a_spent_allowance_pauses_the_scope_of_the_call(web, upstreams, limiter):
    allowance = {"limit": "x-limit", "remaining": "x-left", "reset": "x-reset"}
    web.get(URL, status=403, headers={"X-Limit": "60", "X-Left": "0", "X-Reset": "300"})

    with pytest.raises(UpstreamRateLimited) as limited:
        await connector(upstreams, rate_limit={"requests": 60, "seconds": 3600, "allowances": [allowance]}).execute(
            "things", "act"
        )

    assert limited.value.retry_after == 300
    assert limiter.pauses == [(SCOPE, 300.0)]


async def test_a_limit_pauses_the_scope_of_the_call(web, upstreams, limiter):
    web.get(URL, status=429, headers={"Retry-After": "60"})

    with pytest.raises(UpstreamRateLimited):
        await connector(upstreams).execute("things", "act")

    assert limiter.pauses == [(SCOPE, 60.0)]


@pytest.mark.usefixtures("skipped_pauses")
async def test_token_requests_have_a_scope_of_their_own(web, upstreams, limiter):
    spec = shipped_catalog().kind("work-management").spec
    web.post(spec.oauth.token_url, status=429, headers={"Retry-After": "60"})
    web.post(spec.oauth.token_url, payload={"access_token": "a", "expires_in": 3600})
    app = App("app-1", SecretStr("app-secret"))

    for connector_id in ("one", "other"):
        client = TokenClient(spec, {}, upstreams, RateScope.of_tokens(spec, connector_id))
        answer = await client.renew(app, {"refresh_token": "r"}, spec.authentication["oauth"])

    assert isinstance(answer, TokenSet)
    assert [scope.id for scope, _ in limiter.pauses] == ["work-management:tokens:one"]


KEY = ConnectionKey("api.example.com", 443, True, True, None, None, None)
UNTRUSTED = "is signed by an authority that is not trusted; add the authority's certificate to SSL_CERT_FILE"


def refused(code: int | None) -> ssl.SSLCertVerificationError:
    """A certificate that OpenSSL refuses with this code."""
    error = ssl.SSLCertVerificationError("refused")
    if code is not None:
        error.verify_code = code
    return error


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize(
    ("failure", "error", "cause"),
    [
        (aiohttp.ClientConnectorDNSError(KEY, OSError(-2, "no name")), UpstreamError, "its name is not found (DNS)"),
        (
            aiohttp.ClientConnectorError(KEY, ConnectionRefusedError(111, "refused")),
            UpstreamError,
            "the connection is refused",
        ),
        (aiohttp.ClientConnectorError(KEY, OSError(113, "no route")), UpstreamError, "the connection failed"),
        *(
            (aiohttp.ClientConnectorCertificateError(KEY, refused(code)), UpstreamError, f"its TLS certificate {cause}")
            for code, cause in (
                (None, "is not valid"),
                (9, "is not valid yet"),
                (10, "has expired"),
                (18, UNTRUSTED),
                (20, UNTRUSTED),
                (62, "is for another host name"),
                (64, "is not valid"),
            )
        ),
        (aiohttp.ClientConnectorSSLError(KEY, OSError(1, "tls")), UpstreamError, "the TLS handshake failed"),
        (aiohttp.ConnectionTimeoutError(), UpstreamTimeout, "the connection timed out"),
    ],
)
async def test_what_cannot_be_reached_is_reported_with_host_and_cause(web, upstreams, failure, error, cause):
    web.post(URL, exception=failure, repeat=True)

    with pytest.raises(error) as raised:
        await connector(upstreams, {"request": "POST /things", "effect": "write"}).execute("things", "act")

    assert raised.value.detail == f"api.example.com cannot be reached: {cause}"
    assert not raised.value.is_outcome_unknown


async def test_what_the_application_rejects_comes_with_an_example(web, upstreams):
    web.get(URL, status=422)

    with pytest.raises(UpstreamRejected) as rejected:
        await connector(upstreams, {"example": {"id": 7}, "params": {"id": {}}}).execute("things", "act")

    assert rejected.value.extra["example"] == {"entity": "things", "action": "act", "params": {"id": 7}}
