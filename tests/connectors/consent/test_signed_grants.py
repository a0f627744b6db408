"""Tokens for a JWT that a private key signs: fetched once, kept sealed, and renewed with a new JWT."""

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from gateway.connectors.model import ConnectorRecord
from gateway.errors import ReauthorizationRequired, UpstreamError
from gateway.upstream.auth import checked_credentials
from tests.connectors.consent.conftest import World
from tests.harness.signing_keys import ACCOUNT, claims_in, key_file, parts_of, pem

KIND, METHOD = "google-analytics-data-api", "service_account"
ANSWER = {"access_token": "fresh", "token_type": "Bearer", "expires_in": 3599}
BEARER = {"Authorization": "Bearer fresh"}
REVOKED = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
TOO_LATE = {"error": "invalid_grant", "error_description": "Invalid JWT: check your iat and exp values."}


async def connector(world: World, file: str | None = None, **credentials: str) -> ConnectorRecord:
    given = {"credentials_json": file or key_file(), **credentials}
    return await world.connector(KIND, given, ends_in=None, method=METHOD)


async def headers_of(world: World, record: ConnectorRecord) -> object:
    return await world.oauth.authorizers.authorizer_of(record).headers()


def test_a_key_file_alone_is_taken_for_this_method(world: World) -> None:
    spec = world.catalog.kind(KIND).spec

    assert checked_credentials(spec, {"credentials_json": key_file()})[0] == METHOD
    assert checked_credentials(spec, {"refresh_token": "r"})[0] == "oauth"
    assert spec.oauth_method == "oauth"


async def test_the_first_token_is_fetched_once_for_all_who_ask_and_kept(world: World) -> None:
    record = await connector(world)
    world.server.say(200, ANSWER)
    authorizers = [world.oauth.authorizers.authorizer_of(record) for _ in range(20)]

    headers = await asyncio.gather(*(authorizer.headers() for authorizer in authorizers))

    assert headers == [BEARER] * 20
    [asked] = world.server.token_requests
    assert (asked.path, asked.content_type) == ("/token", "application/x-www-form-urlencoded")
    assert asked.members.keys() == {"grant_type", "assertion"}
    assert asked.members["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert claims_in(asked.members["assertion"])["iss"] == ACCOUNT
    assert asked.authorization == ""
    stored = await world.connectors.secret(world.organization_id, record.id)
    assert stored.values == {"credentials_json": key_file(), "access_token": "fresh"}
    assert stored.expires_at is not None
    assert timedelta(minutes=58) < stored.expires_at - datetime.now(UTC) <= timedelta(minutes=60)


async def test_a_token_that_the_application_refuses_is_renewed_with_a_new_jwt(world: World) -> None:
    record = await connector(world)
    world.server.say(200, {**ANSWER, "access_token": "first"})
    world.server.say(200, ANSWER)
    authorizer = world.oauth.authorizers.authorizer_of(record)

    renewed = await authorizer.renewed(await authorizer.headers())

    assert renewed == BEARER
    assert len(world.server.token_requests) == 2


async def test_the_url_in_a_key_file_gets_no_jwt(world: World) -> None:
    record = await connector(world, key_file(token_uri="https://evil.example/steal", universe_domain="evil.example"))
    world.server.say(200, ANSWER)

    await headers_of(world, record)

    # Every request that leaves goes to the stand-in, by the address of the spec.
    assert [asked.path for asked in world.server.seen] == ["/token"]
    assert claims_in(world.server.seen[0].members["assertion"])["aud"] == "https://oauth2.googleapis.com/token"


async def test_salesforces_token_response_has_the_address_of_the_account(world: World) -> None:
    credentials = {"client_id": "app", "username": "agent@acme.example", "private_key": pem()}
    host = {"login_host": "test.salesforce.com"}
    record = await world.connector("crm-query", credentials, environment=host, ends_in=None, method="jwt_bearer")
    world.server.say(200, {"access_token": "fresh", "instance_url": str(world.origin)})

    completed = await world.oauth.authorizers.ensure_token_variables(record)

    [asked] = world.server.token_requests
    assert asked.path == "/services/oauth2/token"
    assert claims_in(asked.members["assertion"])["aud"] == "https://test.salesforce.com"
    assert completed.environment["instance_url"] == str(world.origin)
    assert await world.secrets(record.id) == {**credentials, "access_token": "fresh"}


async def test_a_revoked_key_needs_new_credentials(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    record = await connector(world)
    world.server.say(400, REVOKED)

    with pytest.raises(ReauthorizationRequired, match="refused the JWT that the private key signed") as refused:
        await headers_of(world, record)

    stored = await world.again(record.id)
    assert (stored.status, stored.status_reason) == ("needs_reauth", refused.value.detail)
    assert "Invalid JWT Signature" in refused.value.detail
    assert refused.value.detail.endswith("PATCH credentials")
    said = f"{caplog.text} {refused.value!r} {stored!r}"
    assert [line for line in parts_of(pem()) if line in said] == []
    assert world.server.token_requests[0].members["assertion"] not in said


@pytest.mark.parametrize("code", ["unauthorized_client", "invalid_client"])
async def test_an_account_that_the_application_does_not_know_needs_new_credentials(world: World, code: str) -> None:
    record = await connector(world)
    world.server.say(401, {"error": code, "error_description": "no such account"})

    with pytest.raises(ReauthorizationRequired, match="no such account"):
        await headers_of(world, record)

    assert (await world.again(record.id)).status == "needs_reauth"


@pytest.mark.parametrize(("seconds", "words"), [(-120, "s ahead of the application's"), (120, "s behind the app")])
async def test_a_wrong_clock_does_not_cost_the_connector(world: World, seconds: int, words: str) -> None:
    record = await connector(world)
    there = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
    world.server.say(400, TOO_LATE, Date=there)
    world.server.say(200, ANSWER)

    with pytest.raises(UpstreamError, match=words) as refused:
        await headers_of(world, record)
    status = (await world.again(record.id)).status
    afterwards = await headers_of(world, record)

    assert "check your iat and exp values" in refused.value.detail
    assert (status, afterwards) == ("active", BEARER)


async def test_a_refusal_with_a_clock_that_agrees_is_one_of_the_key(world: World) -> None:
    record = await connector(world)
    world.server.say(400, TOO_LATE, Date=format_datetime(datetime.now(UTC) - timedelta(seconds=5), usegmt=True))

    with pytest.raises(ReauthorizationRequired):
        await headers_of(world, record)


async def test_a_key_that_was_replaced_during_a_renewal_is_not_given_up(world: World) -> None:
    record = await connector(world)
    world.server.say(400, REVOKED)
    world.server.open.clear()
    renewing = asyncio.ensure_future(headers_of(world, record))
    await world.server.arrived.wait()

    replaced = {"credentials_json": key_file(2), "access_token": "of the new key"}
    await world.connectors.update(world.organization_id, record.id, credentials=replaced)
    world.server.open.set()

    assert await renewing == {"Authorization": "Bearer of the new key"}
    assert (await world.again(record.id)).status == "active"


async def test_a_renewal_after_new_credentials_is_signed_with_the_new_key(world: World) -> None:
    record = await connector(world)
    world.server.say(200, ANSWER)
    await headers_of(world, record)
    await world.connectors.update(world.organization_id, record.id, credentials={"credentials_json": key_file(2)})
    world.server.say(200, ANSWER)

    await headers_of(world, await world.again(record.id))

    assert claims_in(world.server.token_requests[-1].members["assertion"], 2)["iss"] == ACCOUNT


async def test_a_stored_key_that_cannot_sign_needs_new_credentials_and_nothing_is_sent(world: World) -> None:
    record = await connector(world, json.dumps({"private_key": "no key", "client_email": ACCOUNT}))

    with pytest.raises(ReauthorizationRequired, match="cannot be used: private_key of credentials_json is not PEM"):
        await headers_of(world, record)

    assert (await world.again(record.id)).status == "needs_reauth"
    assert world.server.seen == []


async def test_passing_trouble_of_the_token_endpoint_leaves_the_connector_as_it_is(world: World) -> None:
    record = await connector(world, access_token="stale")
    for _ in range(3):
        world.server.say(503, "<html>maintenance</html>")

    with pytest.raises(UpstreamError, match="renewed"):
        await world.oauth.authorizers.authorizer_of(record).renewed({"Authorization": "Bearer stale"})

    assert (await world.again(record.id)).status == "active"
