"""Consent, own apps, renewal and revocation, over HTTP with the sandbox as the application."""

import asyncio
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

import aiohttp
import asyncpg
import pytest
from yarl import URL

from tests.harness.caller import ConnectorApi
from tests.harness.waiting import eventually

OAUTH = "/api/v1/integrations/connectors/oauth"
APPS = "/api/v1/oauth/credentials"
LANDING = "http://127.0.0.1:5999/redirected?tab=1"
#: kind → its variables, and a call that shows that the connector works
KINDS = {
    "Support-Desk": ({"subdomain": "acme"}, "tickets"),
    "Crm-Records": ({}, "contacts"),
    "Crm-Query": ({}, "sobjects"),
    "Workspace-Notes": ({}, "users"),
    "Team-Chat": ({}, "users"),
    "Work-Management": ({}, "workspaces"),
}


@pytest.fixture
async def apps(api):
    """Own apps for every kind: the sandbox takes any."""
    for kind in KINDS:
        configuration = {"client_id": f"{kind.lower()}-app", "client_secret": "own-secret"}
        await api.call("PUT", APPS, json={"connector_type": kind, "configuration": configuration})
    yield KINDS
    for kind in KINDS:
        await api.call("DELETE", f"{APPS}/connector_type/{kind.lower()}")


@pytest.fixture
async def browser():
    """A client that follows no redirect by itself."""
    async with _new_browser() as session:
        yield session


def _new_browser():
    """A browser without cookies; they count for addresses too, as in every browser."""
    return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))


async def _initiate(api, kind="Work-Management", **members):
    body = {
        "workspace_name": f"w-{uuid4().hex[:8]}",
        "connector_type": kind,
        "redirect_url": LANDING,
        "environment": KINDS[kind][0],
        **members,
    }
    return await api.post(f"{OAUTH}/initiate", body)


async def _decided(browser, consent_url, decision="allow"):
    """The user is led on and clicks; the address that the application sends the browser to."""
    _, page = await _visited(browser, consent_url)
    async with browser.post(page, data={"decision": decision}, allow_redirects=False) as answer:
        assert answer.status == 302
        return answer.headers["Location"]


async def _visited(browser, url):
    """Status and Location of a page."""
    async with browser.get(url, allow_redirects=False) as answer:
        return answer.status, answer.headers.get("Location")


def _query(url):
    return dict(parse_qsl(urlsplit(url).query))


async def _connected(api, browser, kind="Work-Management", **members):
    """A connector that came of a consent."""
    started = (await _initiate(api, kind, **members)).json()
    _, location = await _visited(browser, await _decided(browser, started["consent_url"]))
    record = (await api.get(f"/api/v1/integrations/connectors/{_query(location)['connector_id']}")).json()
    return ConnectorApi(api, record)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_consent_becomes_a_connector_that_works(api, apps, browser, kind):
    started = (await _initiate(api, kind)).json()
    callback = await _decided(browser, started["consent_url"])

    status, location = await _visited(browser, callback)

    flow = (await api.get(f"{OAUTH}/flows/{started['flow_id']}")).json()
    assert status == 303
    assert location == f"{LANDING}&connector_id={flow['connector_id']}"
    assert flow["status"] == "completed"
    record = (await api.get(f"/api/v1/integrations/connectors/{flow['connector_id']}")).json()
    assert (record["connector_type"], record["status"], record["auth_method"]) == (kind, "active", "oauth")
    answer = await ConnectorApi(api, record).execute(KINDS[kind][1], "list")
    assert answer["status"] == "success"


async def test_a_user_who_says_no_makes_no_connector(api, apps, browser):
    started = (await _initiate(api)).json()
    callback = await _decided(browser, started["consent_url"], "deny")

    status, location = await _visited(browser, callback)

    flow = (await api.get(f"{OAUTH}/flows/{started['flow_id']}")).json()
    assert status == 303
    assert _query(location) == {"tab": "1", "error": "access_denied", "error_description": "the user denied access"}
    assert (flow["status"], flow["error"]) == ("failed", "access_denied")
    assert "connector_id" not in flow


async def test_a_callback_that_comes_again_is_refused(api, apps, browser):
    started = (await _initiate(api)).json()
    callback = await _decided(browser, started["consent_url"])

    first, second = await _visited(browser, callback), await _visited(browser, callback)

    flow = (await api.get(f"{OAUTH}/flows/{started['flow_id']}")).json()
    assert (first[0], second) == (303, (400, None))
    assert flow["connector_id"] == _query(first[1])["connector_id"]
    async with browser.get(callback) as again, _new_browser() as another, another.get(callback) as foreign:
        assert "was given already, and the application is connected" in await again.text()
        assert "Nothing was connected" in await foreign.text()


async def test_a_callback_in_another_browser_is_refused(api, apps, browser):
    started = (await _initiate(api)).json()
    callback = await _decided(browser, started["consent_url"])

    async with _new_browser() as another:
        foreign = await _visited(another, callback)
    own = await _visited(browser, callback)

    assert foreign == (400, None)
    assert (own[0], "connector_id" in _query(own[1])) == (303, True)


async def test_the_consents_cookie_is_for_the_gateway_alone(api, apps, browser):
    started = (await _initiate(api)).json()

    async with browser.get(started["consent_url"], allow_redirects=False) as answer:
        cookie = answer.headers["Set-Cookie"]

    name, _, attributes = cookie.partition("=")
    assert name == "gateway-consent"  # __Host- where the gateway is reached by https
    assert set(attributes.split("; ")[1:]) == {"HttpOnly", "Max-Age=600", "Path=/", "SameSite=Lax"}
    assert answer.status == 303


@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_the_callers_own_state_comes_back_as_it_was(api, apps, browser, decision):
    started = (await _initiate(api, state="a b&c=/ü")).json()

    _, location = await _visited(browser, await _decided(browser, started["consent_url"], decision))

    assert _query(location)["state"] == "a b&c=/ü"


@pytest.mark.parametrize("state", ["", "x" * 43, "a&state=b"])
async def test_an_unknown_consent_is_not_led_on(running, browser, state):
    answer = await _visited(browser, URL(f"{running.base_url}{OAUTH}/consent?state={state}", encoded=True))

    assert answer == (400, None)


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        pytest.param({"state": "x" * 43}, 400, None, id="an unknown state"),
        pytest.param({"state": ""}, 400, None, id="an empty state"),
        pytest.param({"state": "a&state=b"}, 400, None, id="two states"),
        pytest.param({"code": ""}, 303, "invalid_request", id="no code"),
        pytest.param({"code": "forged"}, 303, "invalid_grant", id="another's code"),
        pytest.param({"iss": "https://evil.example"}, 303, "invalid_request", id="another issuer"),
        pytest.param({"error": "server_error"}, 303, "server_error", id="an error beside the code"),
    ],
)
async def test_a_callback_that_was_tampered_with_connects_nothing(api, apps, browser, changes, status, error):
    workspace = f"w-{uuid4().hex[:8]}"
    started = (await _initiate(api, workspace_name=workspace)).json()
    page, _, query = (await _decided(browser, started["consent_url"])).partition("?")
    tampered = "&".join(f"{name}={value}" for name, value in {**dict(parse_qsl(query)), **changes}.items())

    answer = await _visited(browser, URL(f"{page}?{tampered}", encoded=True))

    connectors = (await api.get(f"/api/v1/integrations/connectors?workspace_name={workspace}")).json()["data"]
    assert (answer[0], answer[1] and _query(answer[1])["error"]) == (status, error)
    assert connectors == []


@pytest.mark.parametrize(
    ("members", "status", "code", "said"),
    [
        ({"redirect_url": "https://evil.example/"}, 422, "invalid_params", "redirect_url"),
        ({"redirect_url": "http://127.0.0.1:5999/x#y"}, 422, "invalid_params", "fragment"),
        ({"redirect_url": "http://u:p@127.0.0.1/x"}, 422, "invalid_params", "user or password"),
        ({"connector_type": "Incident-Management", "environment": {}}, 422, "invalid_params", "has no OAuth"),
        ({"connector_type": "Work-Managment"}, 422, "unknown_connector_type", "Work-Management"),
        ({"connector_id": str(uuid4())}, 404, "not_found", "no such connector"),
        ({"scope": "x"}, 422, "invalid_params", "did you mean scopes?"),
        ({"environment": {"region": "eu"}}, 422, "invalid_params", "no variable region"),
    ],
)
async def test_a_request_that_cannot_be_granted_says_why(api, apps, members, status, code, said):
    answer = await _initiate(api, **members)

    assert (answer.status, answer.json()["code"]) == (status, code)
    assert said in answer.json()["detail"]


async def test_an_own_app_is_shown_listed_and_taken_back(api, stranger, browser):
    configuration = {"client_id": "mine", "client_secret": "canary-secret"}
    put = await api.call("PUT", APPS, json={"connector_type": "team-chat", "configuration": configuration})
    started = await _initiate(api, "Team-Chat")
    _, page = await _visited(browser, started.json()["consent_url"])
    listed = await api.get(APPS)
    foreign = await stranger.get(APPS)
    deleted = await api.call("DELETE", f"{APPS}/connector_type/team-chat")
    after = await api.get(APPS)

    assert put.status == 200
    assert put.json()["configuration"] == {"client_id": "mine"}
    assert set(put.json()) == {"connector_type", "configuration", "created_at", "updated_at"}
    assert _query(page)["client_id"] == "mine"
    assert put.json() in listed.json()["data"]
    assert foreign.json()["data"] == []
    assert (deleted.status, deleted.body) == (204, b"")
    assert after.json()["data"] == []
    assert b"canary-secret" not in put.body + started.body + listed.body


@pytest.mark.parametrize(
    ("kind", "configuration", "said"),
    [
        ("incident-management", {"client_id": "a", "client_secret": "canary"}, "no OAuth"),
        ("team-chat", {"client_id": "a"}, "configuration.client_secret is missing"),
        ("team-chat", {"client_id": "", "client_secret": "canary"}, "configuration.client_id"),
        ("team-chat", {"client_id": "a", "client_secret": "ca\ncanary"}, "configuration.client_secret"),
        ("team-chat", {"client_id": "a", "client_secret": ""}, "configuration.client_secret"),
    ],
)
async def test_an_app_that_is_not_whole_is_refused_by_name(api, kind, configuration, said):
    answer = await api.call("PUT", APPS, json={"connector_type": kind, "configuration": configuration})

    assert answer.status == 422
    assert said in answer.json()["detail"]
    assert b"canary" not in answer.body


async def test_a_flow_of_another_organization_is_not_there(api, apps, stranger):
    started = (await _initiate(api)).json()

    foreign = await stranger.get(f"{OAUTH}/flows/{started['flow_id']}")
    unknown = await stranger.get(f"{OAUTH}/flows/{uuid4()}")

    assert foreign.status == unknown.status == 404
    assert foreign.json()["detail"] == unknown.json()["detail"]


async def test_fifty_calls_on_an_ended_token_renew_it_once(api, apps, browser, running, upstream_requests):
    connector = await _connected(api, browser, "Support-Desk")
    await _end_tokens(running, connector)
    before = await _renewals(upstream_requests)

    answers = await asyncio.gather(*(connector.send("tickets", "list", {"per_page": 1}) for _ in range(50)))

    assert {answer.status for answer in answers} == {200}
    assert await _renewals(upstream_requests) - before == 1


async def test_authorizing_again_keeps_the_connectors_id(api, apps, browser):
    connector = await _connected(api, browser, "Support-Desk")
    again = {"connector_id": connector.record["id"], "workspace_name": connector.record["workspace_name"]}

    renewed = await _connected(api, browser, "Support-Desk", **again)

    assert renewed.record["id"] == connector.record["id"]
    assert (await renewed.execute("tickets", "list"))["status"] == "success"


async def test_deleting_a_connector_revokes_its_grant(api, apps, browser, upstream_requests):
    connector = await _connected(api, browser)

    job = (await api.call("DELETE", connector.path)).json()["job_id"]
    await api.get(f"/api/v1/jobs/{job}/result?wait=20")

    paths = [request["path"] for request in await upstream_requests()]
    assert "/-/oauth_revoke" in paths


async def test_consents_are_in_the_audit_log_without_their_secrets(api, apps, browser):
    connector = await _connected(api, browser)

    entries = await _audited(api, connector.record["id"])

    assert [(entry["what"], entry["outcome"]) for entry in entries] == [("connector.create", "succeeded")]


async def _audited(api, connector_id):
    """The audit entries of a connector, once they are written."""

    async def entries():
        return (await api.get(f"/api/v1/audit?connector_id={connector_id}")).json()["data"]

    return await eventually(entries)


async def _renewals(upstream_requests):
    return sum(request["path"] == "/oauth/tokens" for request in await upstream_requests())


async def _end_tokens(running, connector):
    """The access token ends now; a new sealing would be told to every process, and so is this."""
    connection = await asyncpg.connect(running.database_url)
    statement = "UPDATE connector_secrets SET expires_at = now(), sealed = sealed WHERE connector_id = $1"
    await connection.execute(statement, connector.record["id"])
    await connection.close()
