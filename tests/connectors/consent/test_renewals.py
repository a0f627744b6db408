"""Access tokens of stored connectors, renewed once and never lost."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from pydantic import SecretStr

from gateway.connectors.store import ConnectorStore
from gateway.errors import (
    ConnectorNotReady,
    ReauthorizationRequired,
    Unavailable,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamRateLimited,
)
from gateway.foundation.vault.vault import Vault
from tests.connectors.consent.conftest import KEY, Opening, World

KIND = "work-management"


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_a_token_with_a_while_left_is_used_as_it_is(world: World) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=600)

    headers = await world.oauth.authorizers.authorizer_of(record).headers()

    assert headers == _bearer("access-1")
    assert world.server.seen == []


@pytest.mark.parametrize("ends_in", [59, 0, -3600])
async def test_a_token_about_to_end_is_renewed_before_it_is_used(world: World, ends_in: float) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=ends_in)

    headers = await world.oauth.authorizers.authorizer_of(record).headers()

    assert headers == _bearer("access-2")
    stored = await world.connectors.secret(world.organization_id, record.id)
    assert stored.values == {"access_token": "access-2", "refresh_token": "refresh-2", "client_id": "app-1"}
    assert stored.expires_at is not None
    assert stored.expires_at > datetime.now(UTC) + timedelta(minutes=50)


async def test_fifty_callers_of_an_ended_token_make_one_request(world: World) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=0)
    authorizers = [world.oauth.authorizers.authorizer_of(record) for _ in range(50)]

    headers = await asyncio.gather(*(authorizer.headers() for authorizer in authorizers))

    assert headers == [_bearer("access-2")] * 50
    assert len(world.server.token_requests) == 1


async def test_fifty_callers_of_a_refused_token_make_one_request(world: World) -> None:
    record = await world.connector(KIND, world.server.pair())
    authorizers = [world.oauth.authorizers.authorizer_of(record) for _ in range(50)]

    headers = await asyncio.gather(*(authorizer.renewed(_bearer("access-1")) for authorizer in authorizers))

    assert headers == [_bearer("access-2")] * 50
    assert len(world.server.token_requests) == 1


async def test_one_that_comes_late_gets_what_another_has_renewed(world: World) -> None:
    record = await world.connector(KIND, world.server.pair())
    first, second = world.oauth.authorizers.authorizer_of(record), world.oauth.authorizers.authorizer_of(record)
    refused = await first.headers()
    await second.headers()

    await first.renewed(refused)
    late = await second.renewed(refused)

    assert late == _bearer("access-2")
    assert len(world.server.token_requests) == 1


async def test_a_bare_refresh_token_mints_the_first_access_token(world: World) -> None:
    refresh_token = world.server.pair()["refresh_token"]
    record = await world.connector(KIND, {"refresh_token": refresh_token}, ends_in=None)

    headers = await world.oauth.authorizers.authorizer_of(record).headers()

    assert headers == _bearer("access-2")


async def test_the_old_refresh_token_stays_when_no_new_one_comes(world: World) -> None:
    world.server.rotates = False
    record = await world.connector(KIND, world.server.pair(), ends_in=0)

    await world.oauth.authorizers.authorizer_of(record).headers()

    assert (await world.secrets(record.id))["refresh_token"] == "refresh-1"


async def test_variables_that_come_with_a_renewal_are_kept(world: World) -> None:
    world.server.extra = {"instance_url": str(world.origin)}
    record = await world.connector("crm-query", world.server.pair(), environment={"login_host": "test.salesforce.com"})

    completed = await world.oauth.authorizers.ensure_token_variables(record)

    assert completed.environment == {"login_host": "test.salesforce.com", "instance_url": str(world.origin)}


async def test_tokens_are_kept_even_when_what_came_with_them_is_refused(world: World) -> None:
    world.server.extra = {"instance_url": "https://evil.example"}
    environment = {"login_host": "test.salesforce.com", "instance_url": "https://acme.my.salesforce.com"}
    record = await world.connector("crm-query", world.server.pair(), environment=environment, ends_in=0)

    headers = await world.oauth.authorizers.authorizer_of(record).headers()

    assert headers == _bearer("access-2")
    assert (await world.again(record.id)).environment == environment


async def test_a_dead_grant_requests_a_new_consent(world: World) -> None:
    record = await world.connector(KIND, {"access_token": "a", "refresh_token": "dead"}, ends_in=0)

    with pytest.raises(ReauthorizationRequired) as refused:
        await world.oauth.authorizers.authorizer_of(record).headers()

    after = await world.again(record.id)
    assert (after.status, after.status_reason) == ("needs_reauth", refused.value.detail)
    assert "invalid_grant: the refresh token is not good" in refused.value.detail
    assert "start an OAuth flow with this connector_id" in refused.value.detail
    assert (await world.secrets(record.id))["refresh_token"] == "dead"


async def test_a_grant_that_was_replaced_meanwhile_is_not_given_up(world: World) -> None:
    record = await world.connector(KIND, {"access_token": "a", "refresh_token": "dead"}, ends_in=0)
    world.server.open.clear()
    renewing = asyncio.ensure_future(world.oauth.authorizers.authorizer_of(record).headers())
    await world.server.arrived.wait()

    await world.connectors.update(world.organization_id, record.id, credentials={"access_token": "patched"})
    world.server.open.set()

    assert await renewing == _bearer("patched")
    assert (await world.again(record.id)).status == "active"


async def test_new_tokens_do_not_replace_what_was_patched_meanwhile(world: World) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=0)
    world.server.open.clear()
    renewing = asyncio.ensure_future(world.oauth.authorizers.authorizer_of(record).headers())
    await world.server.arrived.wait()

    await world.connectors.update(world.organization_id, record.id, credentials={"access_token": "patched"})
    world.server.open.set()

    assert await renewing == _bearer("patched")
    assert await world.secrets(record.id) == {"access_token": "patched"}


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (500, {"error": "invalid_grant"}, UpstreamError),
        (502, "<html>", UpstreamError),
        (200, "<html>", UpstreamInvalidResponse),
        (400, {"error": "invalid_request"}, UpstreamError),
        (400, "", UpstreamInvalidResponse),
        (401, {"error": "invalid_client"}, ConnectorNotReady),
    ],
)
async def test_trouble_of_the_moment_never_kills_a_grant(
    world: World, status: int, body: object, error: type[Exception]
) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=0)
    world.server.say(status, body)

    with pytest.raises(error) as trouble:
        await world.oauth.authorizers.authorizer_of(record).headers()
    after = await world.oauth.authorizers.authorizer_of(record).headers()

    assert type(trouble.value) is error
    assert after == _bearer("access-2")
    assert (await world.again(record.id)).status == "active"


async def test_no_token_is_renewed_while_the_newest_key_is_forgotten(opening: Opening) -> None:
    vault = Vault([("k2", bytes(32)), KEY])
    async with opening(vault=vault) as world:
        older = replace(world, connectors=ConnectorStore(world.database, Vault([KEY])))
        record = await older.connector(KIND, world.server.pair(), ends_in=0)
        authorizer = world.oauth.authorizers.authorizer_of(record)

        vault.forget(["k2"])
        with pytest.raises(Unavailable, match="the service that unwraps the encryption keys does not respond"):
            await authorizer.headers()
        while_forgotten = list(world.server.token_requests)
        vault.hold({"k2": bytes(32)})
        headers = await authorizer.headers()

    assert while_forgotten == []
    assert headers == _bearer("access-2")


async def test_a_limit_of_the_token_endpoint_is_reported_as_one(world: World) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=0)
    for _ in range(3):
        world.server.say(429, "")

    with pytest.raises(UpstreamRateLimited):
        await world.oauth.authorizers.authorizer_of(record).headers()

    assert (await world.again(record.id)).status == "active"


async def test_trouble_does_not_take_away_a_token_that_has_a_while(world: World) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=30)
    world.server.say(500, "")

    headers = await world.oauth.authorizers.authorizer_of(record).headers()

    assert headers == _bearer("access-1")


async def test_an_answer_is_kept_also_when_its_caller_has_gone(world: World) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=0)
    world.server.open.clear()
    caller = asyncio.ensure_future(world.oauth.authorizers.authorizer_of(record).headers())
    await world.server.arrived.wait()

    caller.cancel()
    world.server.open.set()

    assert await world.oauth.authorizers.authorizer_of(record).headers() == _bearer("access-2")
    assert len(world.server.token_requests) == 1


async def test_closing_waits_for_an_answer_under_way(opening: Opening) -> None:
    async with opening() as world:
        record = await world.connector(KIND, world.server.pair(), ends_in=0)
        world.server.open.clear()
        caller = asyncio.ensure_future(world.oauth.authorizers.authorizer_of(record).headers())
        await world.server.arrived.wait()
        caller.cancel()
        asyncio.get_running_loop().call_soon(world.server.open.set)

    assert (await world.secrets(record.id))["refresh_token"] == "refresh-2"


async def test_a_lost_answer_is_reported_when_the_refresh_token_is_refused(world: World) -> None:
    record = await world.connector(KIND, {"access_token": "a", "refresh_token": "dead"}, ends_in=0)
    world.server.say(504, "")
    with pytest.raises(UpstreamError):
        await world.oauth.authorizers.authorizer_of(record).headers()

    with pytest.raises(ReauthorizationRequired, match="was interrupted before its response was stored"):
        await world.oauth.authorizers.authorizer_of(record).headers()

    assert "may have replaced" in str((await world.again(record.id)).status_reason)


async def test_the_note_of_a_lost_answer_goes_with_new_tokens(world: World) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=0)
    world.server.say(504, "")
    with pytest.raises(UpstreamError):
        await world.oauth.authorizers.authorizer_of(record).headers()

    await world.oauth.authorizers.authorizer_of(record).headers()

    noted = "SELECT refreshing_since IS NULL AND refreshing_by IS NULL FROM connector_secrets WHERE connector_id = $1"
    assert await world.sql(noted, record.id) is True


async def test_a_renewal_of_another_process_is_waited_for(world: World) -> None:
    record = await world.connector(KIND, {"access_token": "a", "refresh_token": "r"}, ends_in=0)
    await _lease(world, record.id, seconds=10)
    waiting = asyncio.ensure_future(world.oauth.authorizers.authorizer_of(record).headers())
    await asyncio.wait([waiting], timeout=0.3)

    assert not waiting.done()
    await world.connectors.update(world.organization_id, record.id, credentials={"access_token": "theirs"})
    assert await waiting == _bearer("theirs")
    assert world.server.seen == []


async def test_a_lease_without_a_sign_of_life_is_taken_over(world: World) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=0)
    await _lease(world, record.id, seconds=-1)

    assert await world.oauth.authorizers.authorizer_of(record).headers() == _bearer("access-2")


async def test_a_connector_that_was_given_up_comes_back_with_new_tokens(world: World) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=0)
    await world.sql("UPDATE connectors SET status = 'needs_reauth', status_reason = 'x' WHERE id = $1", record.id)

    await world.oauth.authorizers.authorizer_of(record).headers()

    after = await world.again(record.id)
    assert (after.status, after.status_reason) == ("active", None)


async def test_a_connector_that_is_switched_off_stays_off(world: World) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=0)
    await world.sql("UPDATE connectors SET status = 'disabled' WHERE id = $1", record.id)

    await world.oauth.authorizers.authorizer_of(record).headers()

    assert (await world.again(record.id)).status == "disabled"


async def test_a_refused_token_that_cannot_be_renewed_requests_a_new_consent(world: World) -> None:
    record = await world.connector("workspace-notes", {"access_token": "a"}, ends_in=None)

    authorizer = world.oauth.authorizers.authorizer_of(record)

    headers = await authorizer.renewed(_bearer("a"))
    await authorizer.refused(_bearer("a"), "the application answered 401")

    after = await world.again(record.id)
    assert headers is None
    assert after.status == "needs_reauth"
    assert "no refresh token" in str(after.status_reason)


async def test_an_own_app_renews_with_its_newest_secret(world: World) -> None:
    credentials = {**world.server.pair(), "client_id": "own", "client_secret": "old-secret"}
    record = await world.connector(KIND, credentials, ends_in=0)
    world.server.client_id, world.server.client_secret = "own", "new-secret"
    await world.oauth.apps.put(world.caller, KIND, "own", SecretStr("new-secret"))

    assert await world.oauth.authorizers.authorizer_of(record).headers() == _bearer("access-2")


async def test_an_own_app_that_was_taken_back_still_renews_what_it_made(world: World) -> None:
    credentials = {**world.server.pair(), "client_id": "own", "client_secret": "own-secret"}
    record = await world.connector(KIND, credentials, ends_in=0)
    world.server.client_id, world.server.client_secret = "own", "own-secret"
    await world.oauth.apps.delete(world.caller, KIND)

    assert await world.oauth.authorizers.authorizer_of(record).headers() == _bearer("access-2")


async def test_the_platforms_connectors_stay_with_the_platforms_app(world: World) -> None:
    record = await world.connector(KIND, {**world.server.pair(), "client_id": "app-1"}, ends_in=0)
    await world.oauth.apps.put(world.caller, KIND, "own", SecretStr("own-secret"))

    assert await world.oauth.authorizers.authorizer_of(record).headers() == _bearer("access-2")


async def test_credentials_that_are_no_tokens_are_never_renewed(world: World) -> None:
    record = await world.connector(KIND, {"token": "personal"}, method="token")
    authorizer = world.oauth.authorizers.authorizer_of(record)

    assert await authorizer.headers() == _bearer("personal")
    assert await authorizer.renewed(_bearer("personal")) is None


@pytest.mark.parametrize(
    ("kind", "method", "path"),
    [
        ("support-desk", "DELETE", "/api/v2/oauth/tokens/current.json"),
        ("crm-query", "POST", "/services/oauth2/revoke"),
        ("crm-records", "POST", "/oauth/2026-03/token/revoke"),
        ("team-chat", "POST", "/api/auth.revoke"),
        ("work-management", "POST", "/-/oauth_revoke"),
        ("workspace-notes", "POST", "/v1/oauth/revoke"),
    ],
)
async def test_a_grant_is_revoked_at_the_application(world: World, kind: str, method: str, path: str) -> None:
    environment = {"subdomain": "acme", "login_host": "login.salesforce.com"}
    record = await world.connector(kind, world.server.pair(), environment=environment)

    assert await world.oauth.authorizers.revoke(record) is True
    assert [(seen.method, seen.path) for seen in world.server.seen] == [(method, path)]


async def test_what_cannot_be_revoked_is_no_error(world: World) -> None:
    personal = await world.connector(KIND, {"token": "personal"}, method="token")

    assert await world.oauth.authorizers.revoke(personal) is False


async def test_the_tokens_of_the_record_application_come_from_its_successor_endpoint(world: World) -> None:
    record = await world.connector("crm-records", world.server.pair(), ends_in=0)

    await world.oauth.authorizers.authorizer_of(record).headers()

    assert [seen.path for seen in world.server.token_requests] == ["/oauth/2026-03/token"]


async def _lease(world: World, connector_id: object, *, seconds: int) -> None:
    """Another process holds, or held, the lease."""
    statement = """
        UPDATE connector_secrets
        SET refreshing_by = $2, refreshing_until = now() + make_interval(secs => $3), refreshing_since = now()
        WHERE connector_id = $1
    """
    await world.sql(statement, connector_id, uuid4(), seconds)


async def test_a_limit_of_one_connectors_token_requests_holds_back_no_other(world: World) -> None:
    limited = await world.connector("work-management", world.server.pair(), ends_in=-1)
    other = await world.connector("work-management", world.server.pair(), ends_in=-1)
    world.server.limit(retry_after=300)

    with pytest.raises(UpstreamRateLimited):
        await world.oauth.authorizers.authorizer_of(limited).headers()
    headers = await world.oauth.authorizers.authorizer_of(other).headers()

    assert headers["Authorization"].startswith("Bearer access-")
    with pytest.raises(UpstreamRateLimited):
        await world.oauth.authorizers.authorizer_of(limited).headers()
    assert len(world.server.token_requests) == 2
