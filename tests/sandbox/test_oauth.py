"""The authorization servers of the sandbox over HTTP: consent, exchange, refresh and revocation."""

import re

import aiohttp
import pytest
from yarl import URL

from gateway.errors import ReauthorizationRequired
from gateway.sandbox.grants import s256
from tests.harness.catalog import shipped_catalog

RETURN = "http://127.0.0.1:1/callback?kept=1"
VERIFIER = "a-verifier-that-is-long-enough-to-be-one-of-rfc-7636"
KINDS = sorted(kind.name for kind in shipped_catalog() if kind.spec.oauth and kind.spec.oauth.authorization_url)
WITH_PKCE = sorted(kind.name for kind in shipped_catalog() if kind.spec.oauth and kind.spec.oauth.pkce)
ROTATING = ["support-desk", "team-chat", "workspace-notes"]


class Browser:
    """Acts as a person at the consent page, and as the OAuth client."""

    def __init__(self, catalog, http, kind):
        self.kind, self.http, self.endpoints = kind, http, catalog.kind(kind).spec.oauth

    def path(self, address):
        own = URL(re.sub(r"{\w+}", "acme", address)).path
        return f"/_kinds/{self.kind}{own}"

    async def consent(self, button="allow", **asked):
        """Submit a decision; returns the query of the redirect."""
        query = {
            "client_id": "app",
            "redirect_uri": RETURN,
            "response_type": "code",
            "scope": "read",
            "state": "s-1",
            **asked,
        }
        path = self.path(self.endpoints.authorization_url)
        async with self.http.get(path, params=query) as page:
            shown = await page.text()
            assert page.status == 200, shown
        action = re.search(r'action="([^"]+)"', shown)[1].replace("&amp;", "&")
        form = {"decision": button}
        async with self.http.post(URL(action, encoded=True), data=form, allow_redirects=False) as answer:
            assert answer.status == 302
            return URL(answer.headers["Location"]).query

    async def token(self, secret="secret", **body):
        """Status and body of a token response; the request has the kind's encoding and client authentication."""
        headers = {}
        if self.endpoints.client_authentication == "basic":
            headers["Authorization"] = aiohttp.encode_basic_auth("app", secret)
        else:
            body |= {"client_id": "app", "client_secret": secret}
        encoded = {"json": body} if self.endpoints.encoding == "json" else {"data": body}
        async with self.http.post(self.path(self.endpoints.token_url), headers=headers, **encoded) as answer:
            return answer.status, await answer.json()

    async def exchanged(self, code, **more):
        return await self.token(grant_type="authorization_code", code=code, redirect_uri=RETURN, **more)

    async def granted(self):
        status, tokens = await self.exchanged((await self.consent())["code"])
        assert (status, "access_token" in tokens) == (200, True), tokens
        return tokens

    async def refreshed(self, token):
        return await self.token(grant_type="refresh_token", refresh_token=token)

    def is_refused(self, answer):
        status, said = answer
        return said.get("ok") is False if self.kind == "team-chat" else status in (400, 401)


@pytest.fixture
def browser(catalog, http):
    return lambda kind: Browser(catalog, http, kind)


@pytest.mark.parametrize("kind", KINDS)
async def test_consent_redirects_with_code_and_state(browser, kind):
    query = await browser(kind).consent()

    assert (query["kept"], query["state"]) == ("1", "s-1")
    assert query["code"]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_tokens_of_a_code_are_accepted_by_the_application(browser, connect, kind):
    tokens = await browser(kind).granted()

    await connect(kind, token=tokens["access_token"]).check()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_denied_consent_redirects_without_a_code(browser, kind):
    query = await browser(kind).consent("deny")

    assert (query["error"], query["state"]) == ("access_denied", "s-1")
    assert "code" not in query


@pytest.mark.parametrize("kind", KINDS)
async def test_a_code_works_once(browser, kind):
    client = browser(kind)
    code = (await client.consent())["code"]
    await client.exchanged(code)

    assert client.is_refused(await client.exchanged(code))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "wrong", [{"secret": "bad-secret"}, {"redirect_uri": "http://127.0.0.1:1/other"}, {"code": "code-other"}]
)
async def test_a_code_is_bound_to_client_and_redirect_uri(browser, kind, wrong):
    client = browser(kind)
    code = (await client.consent())["code"]
    asked = {"grant_type": "authorization_code", "code": code, "redirect_uri": RETURN, **wrong}

    assert client.is_refused(await client.token(**asked))


@pytest.mark.parametrize("kind", WITH_PKCE)
async def test_a_challenge_requires_its_verifier(browser, kind):
    client = browser(kind)
    asked = {"code_challenge": s256(VERIFIER), "code_challenge_method": "S256"}

    right = await client.exchanged((await client.consent(**asked))["code"], code_verifier=VERIFIER)
    wrong = await client.exchanged((await client.consent(**asked))["code"], code_verifier=VERIFIER + "x")
    none = await client.exchanged((await client.consent(**asked))["code"])

    assert not client.is_refused(right)
    assert client.is_refused(wrong)
    assert client.is_refused(none)


@pytest.mark.parametrize("kind", ROTATING)
async def test_a_rotating_kind_makes_the_old_tokens_invalid(browser, connect, kind):
    client = browser(kind)
    old = await client.granted()

    _, new = await client.refreshed(old["refresh_token"])

    assert new["refresh_token"] != old["refresh_token"]
    assert client.is_refused(await client.refreshed(old["refresh_token"]))
    await connect(kind, token=new["access_token"]).check()
    with pytest.raises(ReauthorizationRequired):
        await connect(kind, token=old["access_token"]).check()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ROTATING])
async def test_a_kind_that_does_not_rotate_keeps_its_refresh_token(browser, kind):
    client = browser(kind)
    old = await client.granted()

    again = [await client.refreshed(old["refresh_token"]) for _ in range(2)]

    assert all(status == 200 for status, _ in again)
    assert all(said.get("refresh_token", old["refresh_token"]) == old["refresh_token"] for _, said in again)


async def test_tokens_have_the_lifetime_that_was_set(browser, connect, http):
    await (await http.put("/_sandbox/tokens", json={"kind": "crm-records", "expires_in": 0.000_001})).release()

    tokens = await browser("crm-records").granted()

    with pytest.raises(ReauthorizationRequired):
        await connect("crm-records", token=tokens["access_token"]).check()


async def test_the_token_response_of_the_crm_by_query_has_its_instance_url(browser):
    tokens = await browser("crm-query").granted()

    assert tokens["instance_url"] == "https://sandbox.my.salesforce.com"
    assert "expires_in" not in tokens


@pytest.mark.parametrize("kind", [kind for kind in KINDS if shipped_catalog().kind(kind).spec.oauth.revocation_url])
async def test_a_revoked_token_is_refused(browser, connect, http, kind):
    client = browser(kind)
    token = (await client.granted())["access_token"]

    path = client.path(client.endpoints.revocation_url)
    headers = {"Authorization": f"Bearer {token}"}
    async with http.request(client.endpoints.revocation_method, path, headers=headers) as answer:
        status = answer.status

    assert status == 200
    with pytest.raises(ReauthorizationRequired):
        await connect(kind, token=token).check()


@pytest.mark.parametrize("missing", ["client_id", "redirect_uri"])
async def test_a_request_without_client_or_redirect_uri_is_not_redirected(http, missing):
    asked = {"client_id": "app", "redirect_uri": RETURN, missing: ""}

    async with http.get("/oauth/authorizations/new", params=asked, allow_redirects=False) as answer:
        status = answer.status

    assert status == 400


@pytest.mark.parametrize(("kind", "status"), [("support-desk", 200), ("work-management", 400)])
async def test_a_client_gets_a_token_for_itself_if_the_kind_supports_it(browser, connect, kind, status):
    answered, tokens = await browser(kind).token(grant_type="client_credentials", scope="read")

    assert answered == status
    assert ("access_token" in tokens, "refresh_token" in tokens) == (status == 200, False)
