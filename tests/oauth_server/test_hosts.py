"""Hosts known by a document at their client id."""

import pytest

from gateway.oauth_server.hosts import Hosts
from gateway.oauth_server.model import OAuthError
from gateway.oauth_server.store import AuthorizationStore
from tests.harness.applications import Applications

URL = "https://host.example/client.json"
DOCUMENT = {"client_id": URL, "client_name": "Host", "redirect_uris": ["http://127.0.0.1:1/callback"]}


@pytest.fixture
def hosts(database) -> Hosts:
    return Hosts(AuthorizationStore(database))


async def test_a_document_is_fetched_once_and_remembered(hosts):
    with Applications() as web:
        web.get(URL, payload=DOCUMENT)

        first, second = await hosts.host(URL), await hosts.host(URL)

    assert first is second
    assert first.name == "Host"


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 404},
        {"status": 302, "headers": {"Location": "https://other.example/"}},
        {"body": "{"},
        {"body": "x" * 20_000},
        {"payload": {**DOCUMENT, "client_id": "https://other.example/client.json"}},
    ],
)
async def test_a_document_that_is_not_there_or_not_its_own_is_refused(hosts, answer):
    with Applications() as web:
        web.get(URL, **answer)

        with pytest.raises(OAuthError) as refusal:
            await hosts.host(URL)

    assert refusal.value.code == "invalid_client"


@pytest.mark.parametrize(
    "client_id",
    ["https://127.0.0.1/client.json", "https://host.example", "https://host.example:8443/c", "https://[x/c", "nobody"],
)
async def test_nothing_is_fetched_from_inside_or_for_what_is_no_document(hosts, client_id):
    with pytest.raises(OAuthError):
        await hosts.host(client_id)


async def test_a_host_that_registered_itself_is_known_by_its_id(hosts, database):
    registered = await AuthorizationStore(database).register("Host", ("https://host.example/",))

    assert await hosts.host(registered.id) == registered
