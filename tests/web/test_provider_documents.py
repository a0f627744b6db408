"""The provider's discovery document and keys: changes are loaded, URLs of other hosts are refused."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from tests.harness.in_process import FrontEnd, front_end
from tests.harness.openid_provider import CLIENT_ID, OpenIdProvider, Visitor, openid_provider


@pytest.fixture
async def provider() -> AsyncIterator[OpenIdProvider]:
    async with openid_provider() as running:
        yield running


@pytest.fixture
async def front(tmp_path: Path, database_url: str, redis_url: str, provider: OpenIdProvider) -> AsyncIterator[FrontEnd]:
    """A front end that has not loaded the provider's documents yet."""
    async with front_end(tmp_path, database_url, redis_url, **provider.settings) as running:
        yield running


async def test_new_keys_of_the_provider_are_loaded_and_replace_the_old_ones(
    visitor: Visitor, provider: OpenIdProvider, login: str
):
    assert (await visitor.sign_in()).status == 303

    provider.rotate("k2")

    assert (await visitor.sign_in()).status == 303
    assert provider.key_requests == 2


async def test_unknown_key_ids_do_not_cause_repeated_requests_to_the_provider(
    visitor: Visitor, provider: OpenIdProvider, login: str
):
    provider.forge = lambda claims: provider.signed(claims, kid=uuid4().hex)

    for _ in range(4):
        assert (await visitor.sign_in()).status == 422

    assert provider.key_requests == 2


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://other.example"},
        {"token_endpoint": "http://169.254.169.254/token"},
        {"jwks_uri": "http://127.0.0.1:1/keys"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": None},
    ],
    ids=str,
)
async def test_a_discovery_document_with_foreign_urls_is_an_error_on_the_page(
    visitor: Visitor, provider: OpenIdProvider, metadata: dict[str, Any]
):
    provider.metadata = metadata

    answer = await visitor.fetch("POST", "/console/sign-in/provider", data={"next": ""})

    assert answer.status == 422
    assert re.search(r'role="alert">[^<]*the provider', answer.body.decode())


async def test_a_private_host_that_the_operator_did_not_name_is_never_connected_to(
    visitor: Visitor, provider: OpenIdProvider, login: str
):
    """The https URL is valid, but the connection to the private address is refused."""
    provider.metadata = {"token_endpoint": provider.issuer.replace("http:", "https:") + "/token"}

    answer = await visitor.sign_in()

    assert answer.status == 422
    assert "does not respond" in answer.body.decode()


async def test_an_unavailable_provider_is_an_error_on_the_page(tmp_path: Path, database_url: str, redis_url: str):
    settings = {"oidc_private": True, "oidc_issuer": "http://127.0.0.1:1", "oidc_client_id": CLIENT_ID}
    async with (
        front_end(tmp_path, database_url, redis_url, **settings) as front,
        aiohttp.ClientSession(front.base_url) as session,
        session.post("/console/sign-in/provider", data={"next": ""}) as response,
    ):
        page = await response.text()

    assert response.status == 422
    assert "does not respond" in page
