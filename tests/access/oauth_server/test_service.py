"""Grants, codes and tokens on a real PostgreSQL."""

import asyncio
from contextlib import suppress
from uuid import uuid4

import pytest
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from yarl import URL

from gateway.access.audit.log import Audit
from gateway.access.identity.attempts import Attempts
from gateway.access.identity.store import IdentityStore
from gateway.access.identity.tokens import Tokens, hashed
from gateway.access.oauth_server.hosts import Hosts
from gateway.access.oauth_server.service import AuthorizationServer
from gateway.access.oauth_server.store import AuthorizationStore, prune_grants
from gateway.contract.oauth import AuthorizationRequest, NewGrant
from gateway.errors import NotFound, OAuthError
from gateway.kinds.loading import load_catalog
from tests.harness.clients import caller_of
from tests.harness.databases import waits_for_lock
from tests.harness.waiting import eventually

VERIFIER, RESOURCE, REDIRECT = "v" * 50, "https://gateway.example/mcp", "https://host.example/callback?x=1"
ASKED = AuthorizationRequest(
    host_id="host",
    host_name="Host",
    redirect_uri=REDIRECT,
    scopes=("read",),
    challenge=create_s256_code_challenge(VERIFIER),
    resource=RESOURCE,
    state="state",
)


@pytest.fixture
async def server(database, redis_url):
    store = AuthorizationStore(database)
    attempts = Attempts.at(redis_url)
    tokens = Tokens(IdentityStore(database), 900, attempts, lambda: True)
    yield AuthorizationServer(
        Audit(database), load_catalog(), store, Hosts(store, attempts), tokens, "https://gateway.example", 900
    )
    await attempts.close()


@pytest.fixture
async def given(database):
    """Where the browser goes on after a consent for one workspace: the code is in the query."""
    identity = IdentityStore(database)
    organization = await identity.create_organization(f"o-{uuid4().hex}")
    client_id = await identity.create_client("client", [organization.id], hashed("secret"), ["read", "write"])
    return caller_of(organization.id, client_id), NewGrant(("read",), ("acme",))


@pytest.fixture
async def code(server, given):
    return URL(await server.granted(ASKED, *given)).query


def form(landed, /, **change):
    return {
        "grant_type": "authorization_code",
        "client_id": "host",
        "code": landed["code"],
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
        "resource": RESOURCE,
        **change,
    }


def refreshed(token, **change):
    return {"grant_type": "refresh_token", "client_id": "host", "refresh_token": token, **change}


async def test_a_code_comes_back_with_the_state_and_the_issuer(code):
    assert (code["x"], code["state"], code["iss"]) == ("1", "state", "https://gateway.example")


async def test_a_token_proves_no_more_than_was_granted(server, database, code, given):
    pair = await server.exchange(form(code))
    identity = IdentityStore(database)

    client = (await identity.token(hashed(pair.access_token))).client
    assert client.id == given[0].client_id
    assert client.scopes == {"read"}
    assert (client.workspaces, client.resource) == ({"acme"}, RESOURCE)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"code": "other"}, "invalid_grant"),
        ({"client_id": "other"}, "invalid_grant"),
        ({"redirect_uri": "https://host.example/"}, "invalid_grant"),
        ({"code_verifier": "w" * 50}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_grant"),
        ({"resource": "https://gateway.example/mcp/team-chat"}, "invalid_target"),
    ],
)
async def test_a_code_is_for_one_host_one_verifier_and_one_resource(server, code, change, error):
    with pytest.raises(OAuthError) as refusal:
        await server.exchange(form(code, **change))

    assert refusal.value.code == error


async def test_a_code_that_comes_twice_ends_what_was_given_for_it(server, database, code):
    pair = await server.exchange(form(code))

    with pytest.raises(OAuthError):
        await server.exchange(form(code))

    assert await IdentityStore(database).token(hashed(pair.access_token)) is None


async def test_of_two_who_come_with_one_code_at_once_neither_keeps_tokens(server, database, code):
    outcomes = await asyncio.gather(*(server.exchange(form(code)) for _ in range(5)), return_exceptions=True)

    pairs = [each for each in outcomes if not isinstance(each, BaseException)]
    assert len(pairs) <= 1
    for pair in pairs:
        assert await IdentityStore(database).token(hashed(pair.access_token)) is None


async def test_a_refresh_token_is_good_once_and_gives_the_next(server, database, code):
    first = await server.exchange(form(code))
    second = await server.exchange(refreshed(first.refresh_token))
    third = await server.exchange(refreshed(second.refresh_token))

    assert await IdentityStore(database).token(hashed(third.access_token)) is not None


async def test_a_refresh_token_that_was_replaced_ends_the_grant(server, database, code):
    first = await server.exchange(form(code))
    second = await server.exchange(refreshed(first.refresh_token))

    with pytest.raises(OAuthError):
        await server.exchange(refreshed(first.refresh_token))
    with pytest.raises(OAuthError):
        await server.exchange(refreshed(second.refresh_token))

    assert await IdentityStore(database).token(hashed(second.access_token)) is None


async def test_a_grant_at_the_moment_at_which_its_person_is_suspended_is_none(server, database, given):
    """Nor does it come back with the person."""
    identity, caller = IdentityStore(database), given[0]
    async with database.system() as connection, connection.transaction():
        await identity.disable_client_within(connection, caller.client_id)
        granting = asyncio.create_task(server.granted(ASKED, *given))

        async def is_over() -> bool:
            return granting.done() or await waits_for_lock(database)

        await eventually(is_over)
    with suppress(NotFound):
        await granting

    assert await server.own_grants(caller, 10) == []


async def test_a_refresh_token_of_another_host_is_refused(server, code):
    pair = await server.exchange(form(code))

    with pytest.raises(OAuthError):
        await server.exchange(refreshed(pair.refresh_token, client_id="other"))


AGED = "UPDATE agent_grants SET created_at = now() - interval '2 days'"
ENDED = "UPDATE agent_refresh_tokens SET expires_at = now() - interval '1 minute'"
LEFT = "SELECT (SELECT count(*) FROM agent_grants) + (SELECT count(*) FROM agent_refresh_tokens)"


async def test_what_can_be_renewed_stays_and_what_cannot_goes(server, database, code):
    pair = await server.exchange(form(code))
    async with database.system() as connection:
        await connection.execute("DELETE FROM agent_grants WHERE id <> ALL (SELECT grant_id FROM agent_refresh_tokens)")
        await connection.execute(AGED)
    await prune_grants(database)
    assert await IdentityStore(database).token(hashed(pair.access_token)) is not None

    async with database.system() as connection:
        await connection.execute(ENDED)
    await prune_grants(database)

    async with database.system() as connection:
        assert await connection.fetchval(LEFT) == 0
    assert await IdentityStore(database).token(hashed(pair.access_token)) is None


async def test_a_refresh_token_ends_with_its_grant_however_often_it_is_used(server, database, code):
    pair = await server.exchange(form(code))
    async with database.system() as connection:
        await connection.execute(
            "UPDATE agent_grants SET created_at = now() - interval '181 days' WHERE id = "
            "(SELECT grant_id FROM agent_refresh_tokens WHERE hash = $1)",
            hashed(pair.refresh_token),
        )

    last = await server.exchange(refreshed(pair.refresh_token))

    with pytest.raises(OAuthError) as refusal:
        await server.exchange(refreshed(last.refresh_token))
    assert refusal.value.code == "invalid_grant"


async def test_a_host_ends_its_own_tokens_and_no_others(server, database, code):
    identity, pair = IdentityStore(database), await server.exchange(form(code))

    await server.revoke_token("another host", pair.refresh_token)
    await server.revoke_token("another host", pair.access_token)
    kept = await identity.token(hashed(pair.access_token))
    await server.revoke_token("host", pair.access_token)
    after_access = await identity.token(hashed(pair.access_token))
    renewed = await server.exchange(refreshed(pair.refresh_token))
    await server.revoke_token("host", renewed.refresh_token)

    assert kept is not None
    assert after_access is None
    assert await identity.token(hashed(renewed.access_token)) is None
    with pytest.raises(OAuthError):
        await server.exchange(refreshed(renewed.refresh_token))
