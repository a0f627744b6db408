"""From the wish for a connector to the connector, over a real PostgreSQL and an authorization server."""

import asyncio
from dataclasses import replace
from urllib.parse import parse_qs, parse_qsl, urlsplit
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr

from gateway.access.identity.tokens import hashed
from gateway.connectors.consent.flows import RedirectResult
from gateway.connectors.consent.store import PRUNE, Flow
from gateway.connectors.model import NewConnector
from gateway.contract.oauth import ConsentRequest, FlowStatus
from gateway.errors import Conflict, InvalidParams, NotFound
from gateway.foundation.db.pruning import prune
from tests.connectors.consent.conftest import BASE_URL, BROWSER, REDIRECT, Opening, World
from tests.harness.databases import waits_for_lock
from tests.harness.waiting import eventually

WISH = ConsentRequest(workspace_name="w", connector_type="work-management", redirect_url=REDIRECT)
KINDS = {
    "support-desk": {"subdomain": "acme"},
    "crm-records": {},
    "crm-query": {},
    "workspace-notes": {},
    "team-chat": {},
    "work-management": {},
}


def _query(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_consent_ends_in_a_connector_for_every_kind(world: World, kind: str) -> None:
    world.server.extra = {"instance_url": str(world.origin)} if kind == "crm-query" else {}
    requested = replace(WISH, connector_type=kind, name="Mine", environment=KINDS[kind])

    started = await world.oauth.flows.initiate(world.caller, requested)
    redirected = await world.came_back(started.consent_url)

    assert redirected is not None
    assert redirected.connector is not None
    assert redirected.url == f"{REDIRECT}&connector_id={redirected.connector.id}"
    record = await world.again(redirected.connector.id)
    assert (record.kind, record.name, record.workspace_name, record.status) == (kind, "Mine", "w", "active")
    secrets = await world.secrets(redirected.connector.id)
    assert set(secrets) == {"access_token", "refresh_token", "client_id"}
    assert secrets["access_token"] in world.server.good


async def test_a_flow_says_what_came_of_it(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)

    before = await world.oauth.flows.state(world.caller, started.flow_id)
    redirected = await world.came_back(started.consent_url)
    after = await world.oauth.flows.state(world.caller, started.flow_id)

    assert (before.status, before.connector_id) == (FlowStatus.PENDING, None)
    assert redirected is not None
    assert (after.status, after.connector_id, after.error) == (FlowStatus.COMPLETED, redirected.connector.id, None)


async def test_what_comes_with_the_token_becomes_the_connectors_own(world: World) -> None:
    world.server.extra = {"instance_url": f"{world.origin}/"}

    started = await world.oauth.flows.initiate(world.caller, replace(WISH, connector_type="CRM query"))
    redirected = await world.came_back(started.consent_url)

    assert redirected is not None
    assert redirected.connector is not None
    record = await world.again(redirected.connector.id)
    assert record.environment == {"instance_url": str(world.origin), "login_host": "login.salesforce.com"}


@pytest.mark.parametrize("address", ["https://evil.example", "http://169.254.169.254", "", 7])
async def test_an_address_of_another_that_comes_with_the_token_makes_no_connector(
    world: World, address: object
) -> None:
    world.server.extra = {"instance_url": address}

    started = await world.oauth.flows.initiate(world.caller, replace(WISH, connector_type="crm-query"))
    redirected = await world.came_back(started.consent_url)

    assert redirected is not None
    assert redirected.connector is None
    assert _query(redirected.url)["error"] == "server_error"
    assert "instance_url" in _query(redirected.url)["error_description"]
    assert await _connectors(world) == 0


async def test_a_users_token_within_the_answer_is_the_connectors(world: World) -> None:
    world.server.nests = True

    started = await world.oauth.flows.initiate(world.caller, replace(WISH, connector_type="team-chat"))
    redirected = await world.came_back(started.consent_url)

    assert redirected is not None
    assert redirected.connector is not None
    assert (await world.secrets(redirected.connector.id))["access_token"] in world.server.good


async def test_the_state_is_new_each_time_and_kept_only_as_a_hash(world: World) -> None:
    urls = [(await world.oauth.flows.initiate(world.caller, WISH)).consent_url for _ in range(2)]

    states = [_query(url)["state"] for url in urls]
    assert states[0] != states[1]
    assert all(len(state) == 43 for state in states)
    rows = await world.sql("SELECT string_agg(oauth_flows::text, '') FROM oauth_flows")
    assert isinstance(rows, str)
    assert not any(state in rows for state in states)


async def test_the_challenge_goes_out_and_its_verifier_stays_sealed(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    asked = await world.asked(started.consent_url)
    await world.came_back(started.consent_url)

    assert len(_query(asked)["code_challenge"]) == 43
    verifier = world.server.token_requests[0].members["code_verifier"]
    assert verifier not in started.consent_url + asked
    rows = await world.sql("SELECT string_agg(oauth_flows::text, '') FROM oauth_flows")
    assert isinstance(rows, str)
    assert verifier not in rows


async def test_a_state_used_again_is_refused(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    query = list(world.server.consent(await world.asked(started.consent_url)).items())

    first, second = await world.oauth.flows.finish(query, BROWSER), await world.oauth.flows.finish(query, BROWSER)

    assert first is not None
    assert second is None
    assert await _connectors(world) == 1


async def test_of_callbacks_at_the_same_moment_one_makes_the_connector(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    query = list(world.server.consent(await world.asked(started.consent_url)).items())

    landings = await asyncio.gather(*(world.oauth.flows.finish(query, BROWSER) for _ in range(10)))

    assert sum(redirected is not None for redirected in landings) == 1
    assert await _connectors(world) == 1
    assert len(world.server.token_requests) == 1


async def test_a_consent_ends_in_the_browser_that_began_it_only(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    query = list(world.server.consent(await world.asked(started.consent_url)).items())

    others = [await world.oauth.flows.finish(query, browser) for browser in (None, "", "x" * 43)]
    own = await world.oauth.flows.finish(query, BROWSER)

    assert others == [None, None, None]
    assert own is not None
    assert own.connector is not None


async def test_a_callback_without_the_beginning_is_refused(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    state = _query(started.consent_url)["state"]

    redirected = await world.oauth.flows.finish([("code", "c"), ("state", state)], BROWSER)

    assert redirected is None
    assert world.server.token_requests == []


async def test_a_link_preview_takes_no_consent_from_its_user(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    await world.asked(started.consent_url, browser="p" * 43)

    redirected = await world.came_back(started.consent_url)

    assert redirected is not None
    assert redirected.connector is not None


async def test_the_callers_state_comes_back_with_the_browser_and_is_nowhere_in_clear(world: World) -> None:
    requested = replace(WISH, state="CANARY of the caller")
    accepted = await world.came_back((await world.oauth.flows.initiate(world.caller, requested)).consent_url)
    refused = await world.came_back(
        (await world.oauth.flows.initiate(world.caller, requested)).consent_url, error="access_denied"
    )

    assert accepted is not None
    assert refused is not None
    assert _query(accepted.url)["state"] == _query(refused.url)["state"] == "CANARY of the caller"
    assert "CANARY" not in str(await world.sql("SELECT string_agg(oauth_flows::text, '') FROM oauth_flows"))


async def test_a_grant_for_a_workspace_that_was_deleted_meanwhile_is_ended(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    await world.sql(
        "UPDATE workspaces SET deletion_began_at = now() WHERE organization_id = $1 RETURNING id", world.organization_id
    )

    redirected = await world.came_back(started.consent_url)

    assert redirected is not None
    assert "deleted" in _query(redirected.url)["error_description"]
    assert world.server.seen[-1].path == "/-/oauth_revoke"
    assert await _connectors(world) == 0


@pytest.mark.parametrize("state", ["", "x" * 43, "' OR 1=1 --", "\x00"])
async def test_an_unknown_state_leads_nowhere(world: World, state: str) -> None:
    assert await world.oauth.flows.finish([("code", "c"), ("state", state)], BROWSER) is None
    assert await world.oauth.flows.finish([("code", "c")], BROWSER) is None


async def test_an_expired_state_is_refused_and_the_flow_says_so(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    query = world.server.consent(await world.asked(started.consent_url))
    await world.sql("UPDATE oauth_flows SET expires_at = now() - interval '1 second' WHERE id = $1", started.flow_id)

    page = await world.oauth.flows.bind_browser([("state", query["state"])], BROWSER)
    redirected = await world.oauth.flows.finish(list(query.items()), BROWSER)

    assert (page, redirected) == (None, None)
    state = await world.oauth.flows.state(world.caller, started.flow_id)
    assert (state.status, state.error) == (FlowStatus.EXPIRED, "expired")


async def test_an_answer_that_was_cut_off_ends_as_failed(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    await world.sql(
        "UPDATE oauth_flows SET used_at = now(), expires_at = now() - interval '1 second' WHERE id = $1",
        started.flow_id,
    )

    state = await world.oauth.flows.state(world.caller, started.flow_id)

    assert (state.status, state.error) == (FlowStatus.FAILED, "server_error")


async def test_a_consent_whose_process_died_ends_as_failed_before_it_expires_and_stays_so(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    world.server.open.clear()
    exchanging = asyncio.create_task(world.came_back(started.consent_url))
    await eventually(lambda: world.server.token_requests)
    under_way = await world.oauth.flows.state(world.caller, started.flow_id)
    await world.sql("UPDATE oauth_flows SET used_at = now() - interval '61 seconds' WHERE id = $1", started.flow_id)

    failed = await world.oauth.flows.state(world.caller, started.flow_id)
    world.server.open.set()
    redirected = await exchanging
    after = await world.oauth.flows.state(world.caller, started.flow_id)

    assert (under_way.status, failed.status, failed.error) == (FlowStatus.PENDING, FlowStatus.FAILED, "server_error")
    assert redirected is not None
    assert redirected.connector is None
    assert (after.status, await _connectors(world)) == (FlowStatus.FAILED, 0)


async def test_a_consent_for_a_kind_that_is_not_served_any_more_ends_with_the_reason(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    async with world.database.system() as connection:
        await connection.execute("UPDATE oauth_flows SET kind = 'gone' WHERE id = $1", started.flow_id)

    redirected = await world.came_back(started.consent_url)

    assert redirected is not None
    answer = _query(redirected.url)
    assert answer["error"] == "server_error"
    assert answer["error_description"].startswith("the kind gone is not served")


async def test_a_state_of_a_disabled_client_is_refused(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    answer = world.server.consent(await world.asked(started.consent_url))
    await world.identity.disable_client(world.caller.client_id)

    assert await world.oauth.flows.finish(list(answer.items()), BROWSER) is None
    assert await world.oauth.flows.bind_browser(parse_qsl(urlsplit(started.consent_url).query), BROWSER) is None
    assert world.server.token_requests == []


@pytest.mark.parametrize("lost", ["scopes = '{read}'", "workspaces = '{other}'"])
async def test_a_state_of_a_client_that_may_no_longer_connect_is_refused(world: World, lost: str) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    answer = world.server.consent(await world.asked(started.consent_url))
    await world.sql(f"UPDATE clients SET {lost} WHERE id = $1", world.caller.client_id)

    assert await world.oauth.flows.finish(list(answer.items()), BROWSER) is None
    assert world.server.token_requests == []


async def test_a_withdrawn_redirect_url_is_not_landed_on(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    await world.sql("UPDATE clients SET redirect_urls = '{}' WHERE id = $1", world.caller.client_id)

    assert await world.came_back(started.consent_url) is None


@pytest.mark.parametrize(
    ("query", "error", "description"),
    [
        ({"error": "access_denied", "error_description": "the user said no"}, "access_denied", "the user said no"),
        ({"code": ""}, "invalid_request", "the application sent no code"),
        ({"code": "c", "iss": "https://evil.example"}, "invalid_request", None),
        ({"code": "forged"}, "invalid_grant", "the code is not good"),
    ],
)
async def test_a_refused_consent_lands_with_the_reason_and_makes_no_connector(
    world: World, query: dict[str, str], error: str, description: str | None
) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    state = _query(await world.asked(started.consent_url))["state"]

    redirected = await world.oauth.flows.finish(list({**query, "state": state}.items()), BROWSER)

    assert redirected is not None
    assert redirected.url.startswith(f"{REDIRECT}&error={error}&error_description=")
    said = _query(redirected.url)["error_description"]
    assert description in (None, said)
    flow = await world.oauth.flows.state(world.caller, started.flow_id)
    assert (flow.status, flow.error, flow.error_description) == (FlowStatus.FAILED, error, said)
    assert await _connectors(world) == 0


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, {"error": "invalid_grant"}, "invalid_grant"),
        (401, {"error": "invalid_client"}, "invalid_client"),
        (500, {"error": "x"}, "temporarily_unavailable"),
        (200, "<html>", "server_error"),
        (200, {"ok": False, "error": "bad_code"}, "bad_code"),
    ],
)
async def test_a_token_endpoint_that_gives_no_tokens_makes_no_connector(
    world: World, status: int, body: object, error: str
) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)
    world.server.say(status, body)

    redirected = await world.came_back(started.consent_url)

    assert redirected is not None
    assert (redirected.connector, _query(redirected.url)["error"]) == (None, error)
    assert len(world.server.token_requests) == 1
    assert await _connectors(world) == 0


async def test_only_the_clients_redirect_urls_are_taken(world: World) -> None:
    with pytest.raises(InvalidParams) as refused:
        await world.oauth.flows.initiate(world.caller, replace(WISH, redirect_url="https://evil.example/"))

    assert [fault.pointer for fault in refused.value.faults] == ["/redirect_url"]
    assert REDIRECT in refused.value.detail


async def test_embedded_any_loopback_port_is_taken(opening: Opening) -> None:
    async with opening(is_embedded=True) as world:
        requested = replace(WISH, redirect_url="http://127.0.0.1:45678/cb")

        started = await world.oauth.flows.initiate(world.caller, requested)
        redirected = await world.came_back(started.consent_url)

    assert redirected is not None
    assert redirected.url == f"http://127.0.0.1:45678/cb?connector_id={redirected.connector.id}"


async def test_every_fault_of_a_request_is_reported_at_once(world: World) -> None:
    requested = replace(
        WISH,
        connector_type="support-desk",
        redirect_url="https://evil.example/",
        environment={"subdomain": "evil.example/", "region": "eu"},
        scopes=["read", "two scopes"],
    )

    with pytest.raises(InvalidParams) as refused:
        await world.oauth.flows.initiate(world.caller, requested)

    pointers = {fault.pointer for fault in refused.value.faults}
    assert pointers == {"/redirect_url", "/scopes/1", "/environment/subdomain", "/environment/region"}


async def test_scopes_of_a_request_take_the_place_of_the_usual_ones(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, replace(WISH, scopes=["tasks:read", "users:read"]))

    assert _query(await world.asked(started.consent_url))["scope"] == "tasks:read users:read"


async def test_a_kind_without_scopes_says_so(world: World) -> None:
    with pytest.raises(InvalidParams, match="has no scopes"):
        await world.oauth.flows.initiate(world.caller, replace(WISH, connector_type="workspace-notes", scopes=["a"]))


async def test_a_kind_without_oauth_says_what_to_do_instead(world: World) -> None:
    with pytest.raises(InvalidParams, match=r"no OAuth: create the connector with its credentials \(api_key\)"):
        await world.oauth.flows.initiate(world.caller, replace(WISH, connector_type="Incident-Management"))


async def test_without_an_app_the_error_names_both_ways_to_set_one(opening: Opening) -> None:
    async with opening(has_platform_app=False) as world:
        with pytest.raises(Conflict) as refused:
            await world.oauth.flows.initiate(world.caller, WISH)

    assert "PUT /api/v1/oauth/credentials" in refused.value.detail
    assert "GATEWAY_OAUTH_WORK_MANAGEMENT_CLIENT_ID" in refused.value.detail
    assert "GATEWAY_OAUTH_WORK_MANAGEMENT_CLIENT_SECRET" in refused.value.detail


async def test_a_flow_of_another_organization_is_not_there(world: World, opening: Opening) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)

    async with opening() as other:
        with pytest.raises(NotFound) as foreign:
            await other.oauth.flows.state(other.caller, started.flow_id)
        with pytest.raises(NotFound) as unknown:
            await other.oauth.flows.state(other.caller, uuid4())

    assert foreign.value.detail == unknown.value.detail


async def test_authorizing_again_keeps_the_id_and_replaces_the_credentials(world: World) -> None:
    old = await world.connector("work-management", {"access_token": "dead", "refresh_token": "dead"})
    await world.sql("UPDATE connectors SET status = 'needs_reauth', status_reason = 'x' WHERE id = $1", old.id)

    started = await world.oauth.flows.initiate(world.caller, replace(WISH, connector_id=old.id))
    redirected = await world.came_back(started.consent_url)

    assert redirected is not None
    assert redirected.connector.id == old.id
    record = await world.again(old.id)
    assert (record.status, record.status_reason, record.name) == ("active", None, "c")
    assert (await world.secrets(old.id))["access_token"] in world.server.good
    assert await _connectors(world) == 1


async def test_authorizing_again_takes_the_variables_that_the_first_token_brought(world: World) -> None:
    world.server.extra = {"instance_url": str(world.origin)}
    environment = {"login_host": "test.salesforce.com", "instance_url": str(world.origin)}
    old = await world.connector("crm-query", {"access_token": "dead"}, environment=environment)
    requested = replace(WISH, connector_type="crm-query", connector_id=old.id)

    redirected = await world.came_back((await world.oauth.flows.initiate(world.caller, requested)).consent_url)

    assert redirected is not None
    assert redirected.connector.id == old.id
    assert (await world.again(old.id)).environment == environment


async def test_credentials_that_are_refused_do_not_replace_the_old_ones(world: World) -> None:
    old = await world.connector("work-management", {"access_token": "old", "refresh_token": "old"})
    started = await world.oauth.flows.initiate(world.caller, replace(WISH, connector_id=old.id))
    world.server.say(200, {"access_token": "refused-at-once"})

    redirected = await world.came_back(started.consent_url)

    assert redirected is not None
    assert (redirected.connector, _query(redirected.url)["error"]) == (None, "server_error")
    assert (await world.secrets(old.id))["access_token"] == "old"


async def test_a_connector_that_was_deleted_meanwhile_does_not_come_back(world: World) -> None:
    old = await world.connector("work-management", {"access_token": "old"})
    started = await world.oauth.flows.initiate(world.caller, replace(WISH, connector_id=old.id))
    async with world.database.tenant(world.organization_id) as connection:
        await world.connectors.mark_deleted(connection, world.organization_id, old.id, uuid4())

    redirected = await world.came_back(started.consent_url)

    assert redirected is not None
    assert redirected.connector is None
    assert "deleted" in _query(redirected.url)["error_description"]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [({"connector_type": "crm-records"}, "/connector_type"), ({"workspace_name": "other"}, "/workspace_name")],
)
async def test_authorizing_again_is_about_the_same_kind_and_workspace(
    world: World, change: dict[str, str], pointer: str
) -> None:
    old = await world.connector("work-management", {"access_token": "old"})

    with pytest.raises(InvalidParams) as refused:
        await world.oauth.flows.initiate(world.caller, replace(WISH, connector_id=old.id, **change))

    assert [fault.pointer for fault in refused.value.faults] == [pointer]


async def test_another_organizations_connector_cannot_be_authorized(world: World, opening: Opening) -> None:
    theirs = await world.connector("work-management", {"access_token": "old"})

    async with opening() as other:
        with pytest.raises(NotFound):
            await other.oauth.flows.initiate(other.caller, replace(WISH, connector_id=theirs.id))


async def test_an_own_app_is_used_from_the_next_flow_on(world: World) -> None:
    platform = await world.oauth.flows.initiate(world.caller, WISH)
    await world.oauth.apps.put(world.caller, "work-management", "own", SecretStr("own-secret"))
    own = await world.oauth.flows.initiate(world.caller, WISH)
    await world.oauth.apps.delete(world.caller, "work-management")
    again = await world.oauth.flows.initiate(world.caller, WISH)

    shown = [_query(await world.asked(each.consent_url))["client_id"] for each in (platform, own, again)]
    assert shown == ["app-1", "own", "app-1"]


async def test_an_own_apps_connector_keeps_the_apps_secret_and_the_platforms_does_not(world: World) -> None:
    platform = await world.came_back((await world.oauth.flows.initiate(world.caller, WISH)).consent_url)
    world.server.client_id, world.server.client_secret = "own", "own-secret"
    await world.oauth.apps.put(world.caller, "work-management", "own", SecretStr("own-secret"))
    own = await world.came_back((await world.oauth.flows.initiate(world.caller, WISH)).consent_url)

    assert await _app_in(world, platform) == ("app-1", None)
    assert await _app_in(world, own) == ("own", "own-secret")


async def test_own_apps_come_back_without_their_secrets(world: World, opening: Opening) -> None:
    put = await world.oauth.apps.put(world.caller, "team-chat", "own", SecretStr("canary"))

    async with opening() as other:
        assert await other.oauth.apps.find(other.organization_id) == []
    assert await world.oauth.apps.find(world.organization_id) == [put]
    rows = await world.sql("SELECT string_agg(oauth_apps::text, '') FROM oauth_apps")
    assert "canary" not in str(rows) + repr(put)


async def test_a_connection_without_a_tenant_sees_no_flows_and_no_apps(world: World) -> None:
    await world.oauth.flows.initiate(world.caller, WISH)
    await world.oauth.apps.put(world.caller, "team-chat", "own", SecretStr("s"))

    async with world.database.tenant("") as connection:
        seen = await connection.fetchval(
            "SELECT (SELECT count(*) FROM oauth_flows) + (SELECT count(*) FROM oauth_apps)"
        )

    assert seen == 0


async def test_consents_are_forgotten_a_week_after_their_end(world: World) -> None:
    old = await world.oauth.flows.initiate(world.caller, WISH)
    young = await world.oauth.flows.initiate(world.caller, WISH)
    await world.sql("UPDATE oauth_flows SET expires_at = now() - interval '8 days' WHERE id = $1", old.flow_id)

    await prune(world.database, PRUNE)

    assert (await world.oauth.flows.state(world.caller, young.flow_id)).status is FlowStatus.PENDING
    with pytest.raises(NotFound):
        await world.oauth.flows.state(world.caller, old.flow_id)


async def test_the_callback_is_the_gateways_own(world: World) -> None:
    started = await world.oauth.flows.initiate(world.caller, WISH)

    query = parse_qs(urlsplit(await world.asked(started.consent_url)).query)
    assert query["redirect_uri"] == [f"{BASE_URL}/api/v1/integrations/connectors/oauth/callback"]


async def _connectors(world: World) -> int:
    found = await world.sql("SELECT count(*) FROM connectors WHERE organization_id = $1", world.organization_id)
    assert isinstance(found, int)
    return found


async def _app_in(world: World, redirected: RedirectResult | None) -> tuple[str, str | None]:
    """The app that a connector's credentials name, and its secret where they hold it."""
    assert redirected is not None
    assert isinstance(redirected.connector.id, UUID)
    secrets = await world.secrets(redirected.connector.id)
    return secrets["client_id"], secrets.get("client_secret")


async def _used(world: World) -> tuple[Flow, NewConnector]:
    """A consent to which the user has said yes, and its connector."""
    started = await world.oauth.flows.initiate(world.caller, WISH)
    query = world.server.consent(await world.asked(started.consent_url))
    flow = await world.oauth.flows.store.use(hashed(query["state"]), hashed(BROWSER))
    assert flow is not None
    return flow, NewConnector(
        workspace_id=flow.workspace_id,
        kind=flow.kind,
        settings={"name": "c"},
        auth_method="oauth",
        environment=flow.environment,
        credentials={"access_token": "a"},
    )


async def test_a_save_that_is_repeated_after_its_commit_makes_one_connector(world: World) -> None:
    flow, new = await _used(world)

    first = await world.oauth.flows.store.complete(flow, new)
    again = await world.oauth.flows.store.complete(flow, new)

    assert (again.id, await _connectors(world)) == (first.id, 1)


async def test_a_save_that_is_repeated_before_its_commit_makes_one_connector(world: World) -> None:
    """The connection was lost, and PostgreSQL still commits: the tokens of a consent that fails would be revoked."""
    flow, new = await _used(world)
    async with world.database.tenant(flow.organization_id) as connection, connection.transaction():
        first = await world.connectors.create_within(connection, flow.organization_id, new)
        completed = "UPDATE oauth_flows SET status = 'completed', connector_id = $2 WHERE id = $1"
        await connection.execute(completed, flow.id, first.id)
        repeating = asyncio.create_task(world.oauth.flows.store.complete(flow, new))
        await eventually(lambda: waits_for_lock(world.database))
    again = await repeating

    assert (again.id, await _connectors(world)) == (first.id, 1)
