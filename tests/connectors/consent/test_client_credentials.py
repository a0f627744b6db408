"""Tokens for an app's own id and secret: fetched when they are first needed, kept sealed, renewed once."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from yarl import URL

from gateway.errors import ReauthorizationRequired, UpstreamError
from gateway.kinds.catalog import Catalog
from gateway.upstream.auth import checked_credentials
from gateway.upstream.oauth_tokens.refreshing import RefreshingAuthorizer
from tests.connectors.consent.conftest import World, opened_upstreams
from tests.connectors.consent.stand_in import StandIn

KIND, METHOD = "support-desk", "client_credentials"
APP = {"client_id": "desk_client", "client_secret": "desk-secret"}
ANSWER = {"access_token": "fresh", "token_type": "bearer", "scope": "read write", "expires_in": 1800}
BEARER = {"Authorization": "Bearer fresh"}


async def connector(world: World, **credentials: str):
    return await world.connector(
        KIND, {**APP, **credentials}, environment={"subdomain": "acme"}, ends_in=None, method=METHOD
    )


def test_id_and_secret_alone_are_taken_for_this_method(world: World) -> None:
    spec = world.catalog.kind(KIND).spec

    assert checked_credentials(spec, APP)[0] == METHOD
    assert checked_credentials(spec, {**APP, "access_token": "a"})[0] == "oauth"
    assert spec.oauth_method == "oauth"


async def test_the_first_token_is_fetched_once_for_all_who_ask_and_kept(world: World) -> None:
    record = await connector(world)
    world.server.say(200, ANSWER)
    authorizers = [world.oauth.authorizers.authorizer_of(record) for _ in range(20)]

    headers = await asyncio.gather(*(authorizer.headers() for authorizer in authorizers))

    assert headers == [BEARER] * 20
    [asked] = world.server.token_requests
    assert (asked.path, asked.content_type) == ("/oauth/tokens", "application/json")
    assert asked.members == {"grant_type": "client_credentials", "scope": "read write", **APP}
    stored = await world.connectors.secret(world.organization_id, record.id)
    assert stored.values == {**APP, "access_token": "fresh"}
    assert stored.expires_at is not None
    assert timedelta(minutes=28) < stored.expires_at - datetime.now(UTC) <= timedelta(minutes=30)


async def test_a_token_that_the_application_refuses_is_fetched_anew(world: World) -> None:
    record = await connector(world, access_token="stale")
    world.server.say(200, ANSWER)
    authorizer = world.oauth.authorizers.authorizer_of(record)
    refused = await authorizer.headers()

    renewed = await authorizer.renewed(refused)

    assert (refused, renewed) == ({"Authorization": "Bearer stale"}, BEARER)


async def test_an_app_that_is_refused_needs_new_credentials(world: World) -> None:
    record = await connector(world)
    world.server.say(401, {"error": "invalid_client", "error_description": "Client authentication failed"})

    with pytest.raises(ReauthorizationRequired, match="refused the client credentials"):
        await world.oauth.authorizers.authorizer_of(record).headers()

    stored = await world.again(record.id)
    assert stored.status == "needs_reauth"
    assert "PATCH credentials" in (stored.status_reason or "")


async def test_the_passing_trouble_of_a_token_endpoint_leaves_the_connector_as_it_is(world: World) -> None:
    record = await connector(world, access_token="stale")
    for _ in range(3):
        world.server.say(503, "<html>maintenance</html>")

    with pytest.raises(UpstreamError, match="renewed"):
        await world.oauth.authorizers.authorizer_of(record).renewed({"Authorization": "Bearer stale"})

    assert (await world.again(record.id)).status == "active"


async def test_in_a_callers_own_process_the_token_is_fetched_once_too(
    catalog: Catalog, server: tuple[StandIn, URL]
) -> None:
    stand_in, origin = server
    stand_in.say(200, ANSWER)
    async with opened_upstreams(catalog, origin) as upstreams:
        spec = catalog.kind(KIND).spec
        authorizer = RefreshingAuthorizer(spec, APP, {"subdomain": "acme"}, upstreams, method=METHOD)

        headers = await asyncio.gather(*(authorizer.headers() for _ in range(20)))

    assert headers == [BEARER] * 20
    assert len(stand_in.token_requests) == 1
    assert authorizer.credentials == {**APP, "access_token": "fresh"}
