"""Hosts known by a document at their client id."""

from uuid import uuid4

import pytest

from gateway.access.identity.attempts import MAX_BY_ADDRESS, Attempts
from gateway.access.oauth_server.hosts import Hosts, host_of
from gateway.access.oauth_server.store import AuthorizationStore
from gateway.errors import OAuthError, RateLimited
from tests.harness.applications import Applications

URL = "https://host.example/client.json"
DOCUMENT = {"client_id": URL, "client_name": "Host", "redirect_uris": ["http://127.0.0.1:1/callback"]}


@pytest.fixture
async def hosts(database, redis_url):
    attempts = Attempts.at(redis_url)
    yield Hosts(AuthorizationStore(database), attempts)
    await attempts.close()


@pytest.fixture
def address() -> str:
    """Of a stranger who has asked for nothing before."""
    return uuid4().hex


async def test_a_document_is_fetched_once_and_remembered(hosts, address):
    with Applications() as web:
        web.get(URL, payload=DOCUMENT)

        first, second = await hosts.host(URL, address), await hosts.host(URL, address)

    assert first is second
    assert first.name == "Host"


async def test_a_client_id_whose_host_cannot_be_is_refused(hosts, address):
    with pytest.raises(OAuthError) as refusal:
        await hosts.host("https://host..example/client.json", address)

    assert refusal.value.code == "invalid_client"


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 404},
        {"status": 302, "headers": {"Location": "https://other.example/"}},
        {"body": "{"},
        {"body": "[" * 9_000 + "]" * 9_000},
        {"body": b'{"client_id": "\xff"}'},
        {"body": "x" * 20_000},
        {"payload": {**DOCUMENT, "client_id": "https://other.example/client.json"}},
    ],
)
async def test_a_document_that_is_not_there_or_not_its_own_is_refused(hosts, address, answer):
    with Applications() as web:
        web.get(URL, **answer)

        with pytest.raises(OAuthError) as refusal:
            await hosts.host(URL, address)

    assert refusal.value.code == "invalid_client"


@pytest.mark.parametrize(
    "client_id",
    ["https://127.0.0.1/client.json", "https://host.example", "https://host.example:8443/c", "https://[x/c", "nobody"],
)
async def test_nothing_is_fetched_from_inside_or_for_what_is_no_document(hosts, address, client_id):
    with pytest.raises(OAuthError):
        await hosts.host(client_id, address)


async def test_a_host_that_registered_itself_is_known_by_its_id(hosts, address, database):
    registered = await AuthorizationStore(database).register("Host", ("https://host.example/",))

    assert await hosts.host(registered.id, address) == registered


async def test_a_stranger_makes_the_gateway_fetch_a_limited_number_of_documents(hosts, address):
    with Applications() as web:
        for number in range(MAX_BY_ADDRESS):
            web.get(f"{URL}/{number}", status=404)
            with pytest.raises(OAuthError):
                await hosts.host(f"{URL}/{number}", address)

        with pytest.raises(RateLimited) as refusal:
            await hosts.host(f"{URL}/one-too-many", address)

    assert refusal.value.retry_after


async def test_a_redirect_uri_has_a_bounded_length():
    long = {**DOCUMENT, "redirect_uris": ["https://host.example/" + "x" * 2000]}

    with pytest.raises(OAuthError) as refusal:
        host_of(URL, long)

    assert refusal.value.code == "invalid_redirect_uri"
