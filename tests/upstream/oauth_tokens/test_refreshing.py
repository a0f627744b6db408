"""Tokens in memory: no database, no server."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from yarl import URL

from gateway.errors import InvalidCredentials, ReauthorizationRequired, UpstreamError
from gateway.kinds.catalog import Catalog
from gateway.upstream.oauth_tokens.model import App
from gateway.upstream.oauth_tokens.refreshing import RefreshingAuthorizer
from gateway.upstream.upstreams import Upstreams
from tests.connectors.consent.conftest import opened_upstreams
from tests.connectors.consent.stand_in import StandIn

APP = {"client_id": "app-1", "client_secret": "app-secret-1"}


@pytest.fixture
async def upstreams(catalog: Catalog, server: tuple[StandIn, URL]) -> AsyncIterator[Upstreams]:
    async with opened_upstreams(catalog, server[1]) as opened:
        yield opened


async def test_a_bare_refresh_token_is_redeemed_once_for_all_callers(
    catalog: Catalog, server: tuple[StandIn, URL], upstreams: Upstreams
) -> None:
    stand_in, _ = server
    credentials = {"refresh_token": stand_in.pair()["refresh_token"], **APP}
    authorizer = RefreshingAuthorizer(catalog.kind("work-management").spec, credentials, {}, upstreams)

    headers = await asyncio.gather(*(authorizer.headers() for _ in range(20)))

    assert headers == [{"Authorization": "Bearer access-2"}] * 20
    assert len(stand_in.token_requests) == 1
    assert authorizer.credentials == {"access_token": "access-2", "refresh_token": "refresh-2", **APP}
    assert authorizer.expires_at is not None


async def test_a_refused_token_is_renewed_once_for_all_refused_calls(
    catalog: Catalog, server: tuple[StandIn, URL], upstreams: Upstreams
) -> None:
    stand_in, _ = server
    credentials = {**stand_in.pair(), **APP}
    authorizer = RefreshingAuthorizer(catalog.kind("work-management").spec, credentials, {}, upstreams)
    refused = await authorizer.headers()

    renewed = await asyncio.gather(*(authorizer.renewed(refused) for _ in range(20)))

    assert renewed == [{"Authorization": "Bearer access-2"}] * 20
    assert len(stand_in.token_requests) == 1


async def test_an_answer_is_kept_also_when_its_caller_has_gone(
    catalog: Catalog, server: tuple[StandIn, URL], upstreams: Upstreams
) -> None:
    stand_in, _ = server
    credentials = {"refresh_token": stand_in.pair()["refresh_token"], **APP}
    authorizer = RefreshingAuthorizer(catalog.kind("work-management").spec, credentials, {}, upstreams)
    stand_in.open.clear()
    caller = asyncio.ensure_future(authorizer.headers())
    await stand_in.arrived.wait()

    caller.cancel()
    stand_in.open.set()

    assert await authorizer.headers() == {"Authorization": "Bearer access-2"}
    assert len(stand_in.token_requests) == 1


async def test_variables_that_a_token_brings_are_there_before_the_first_call(
    catalog: Catalog, server: tuple[StandIn, URL], upstreams: Upstreams
) -> None:
    stand_in, origin = server
    stand_in.extra = {"instance_url": str(origin)}
    credentials = {"refresh_token": stand_in.pair()["refresh_token"], **APP}
    environment = {"login_host": "login.salesforce.com"}
    spec = catalog.kind("crm-query").spec
    authorizer = RefreshingAuthorizer(spec, credentials, environment, upstreams)

    completed = await authorizer.ensure_token_variables()

    assert completed == {"login_host": "login.salesforce.com", "instance_url": str(origin)}


async def test_the_platforms_app_can_stand_in_and_its_secret_is_not_kept(
    catalog: Catalog, server: tuple[StandIn, URL], upstreams: Upstreams
) -> None:
    stand_in, _ = server
    app = App("app-1", SecretStr("app-secret-1"))
    spec = catalog.kind("work-management").spec
    authorizer = RefreshingAuthorizer(spec, {"refresh_token": stand_in.pair()["refresh_token"]}, {}, upstreams, app)

    await authorizer.headers()

    assert authorizer.credentials["client_id"] == "app-1"
    assert "client_secret" not in authorizer.credentials


async def test_without_an_app_the_error_names_what_is_missing(catalog: Catalog, upstreams: Upstreams) -> None:
    spec = catalog.kind("work-management").spec
    authorizer = RefreshingAuthorizer(spec, {"refresh_token": "r"}, {}, upstreams)

    with pytest.raises(InvalidCredentials, match="client_id is missing"):
        await authorizer.headers()


async def test_a_token_that_cannot_be_renewed_stays_refused(catalog: Catalog, upstreams: Upstreams) -> None:
    authorizer = RefreshingAuthorizer(catalog.kind("workspace-notes").spec, {"access_token": "a"}, {}, upstreams)

    assert await authorizer.renewed({"Authorization": "Bearer a"}) is None


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [(400, {"error": "invalid_grant"}, ReauthorizationRequired), (503, "", UpstreamError)],
)
async def test_a_refusal_is_reported_and_the_next_call_asks_again(
    catalog: Catalog,
    server: tuple[StandIn, URL],
    upstreams: Upstreams,
    status: int,
    body: object,
    error: type[Exception],
) -> None:
    stand_in, _ = server
    credentials = {"refresh_token": stand_in.pair()["refresh_token"], **APP}
    authorizer = RefreshingAuthorizer(catalog.kind("work-management").spec, credentials, {}, upstreams)
    stand_in.say(status, body)

    with pytest.raises(error):
        await authorizer.headers()

    assert await authorizer.headers() == {"Authorization": "Bearer access-2"}


@pytest.mark.processes
def test_importing_it_loads_neither_a_database_nor_authlib() -> None:
    unwanted = ("asyncpg", "redis", "arq", "aiohttp.web", "authlib")
    program = (
        "import sys, gateway.upstream.oauth_tokens.refreshing; "
        f"print([name for name in {unwanted} if name in sys.modules])"
    )

    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )

    assert run.stdout == "[]\n"


async def test_the_app_and_the_token_are_in_the_credentials_that_the_spec_names(
    catalog: Catalog, server: tuple[StandIn, URL], upstreams: Upstreams
) -> None:
    stand_in, _ = server
    spec = catalog.kind("work-management").spec
    names = {"client_id": "lwa_app_id", "client_secret": "lwa_client_secret"}
    sent = {"scheme": "api_key", "token": None, "headers": {"X-Access-Token": "{access_token}"}}
    method = spec.authentication["oauth"].model_copy(update={**names, **sent})
    spec = spec.model_copy(update={"authentication": {"oauth": method}})
    credentials = {names[name]: value for name, value in APP.items()}
    credentials["refresh_token"] = stand_in.pair()["refresh_token"]
    authorizer = RefreshingAuthorizer(spec, credentials, {}, upstreams)

    headers = [await authorizer.headers() for _ in range(2)]

    assert headers == [{"X-Access-Token": "access-2"}] * 2
    assert len(stand_in.token_requests) == 1
    assert authorizer.credentials.keys() == {"access_token", "refresh_token", "lwa_app_id", "lwa_client_secret"}


async def test_the_error_for_a_missing_app_has_the_name_of_its_credential(
    catalog: Catalog, upstreams: Upstreams
) -> None:
    spec = catalog.kind("work-management").spec
    method = spec.authentication["oauth"].model_copy(update={"client_id": "lwa_app_id"})
    spec = spec.model_copy(update={"authentication": {"oauth": method}})
    authorizer = RefreshingAuthorizer(spec, {"refresh_token": "r"}, {}, upstreams)

    with pytest.raises(InvalidCredentials, match="lwa_app_id is missing"):
        await authorizer.headers()
