"""Sign-in at an OpenID Connect provider, to the console and to give a host access, and attacks on it."""

import base64
import json
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

import aiohttp
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from joserfc.jws import JWSRegistry

from gateway.access.identity.attempts import MAX_BY_ADDRESS
from gateway.access.identity.people import People, login_of
from gateway.access.identity.tokens import hashed
from gateway.contract.people import NewPerson
from tests.harness.caller import Answer
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIdProvider, Visitor, openid_provider
from tests.web.test_personal_connectors import connected
from tests.web.test_routes import noted

REDIRECT = "http://127.0.0.1:33333/callback"


@pytest.fixture(scope="module")
async def running() -> AsyncIterator[OpenIdProvider]:
    async with openid_provider() as provider:
        yield provider


@pytest.fixture
def provider(running: OpenIdProvider) -> OpenIdProvider:
    """The provider with its default state."""
    running.reset()
    return running


@pytest.fixture(scope="module")
async def front(
    tmp_path_factory: pytest.TempPathFactory, database_url: str, redis_url: str, running: OpenIdProvider
) -> AsyncIterator[FrontEnd]:
    """A front end whose people sign in at the provider."""
    folder = tmp_path_factory.mktemp("front-end")
    async with front_end(folder, database_url, redis_url, **running.settings) as opened:
        yield opened


@pytest.fixture
def people(front: FrontEnd) -> People:
    return People(front.services.database, front.services.identity)


async def test_a_person_signs_in_to_the_console_and_is_recorded(visitor: Visitor, provider: OpenIdProvider, login: str):
    landed = await visitor.sign_in(next="/console/jobs")
    page = await visitor.fetch("GET", "/console/settings")
    while b"console.sign_in" not in (audit := await visitor.fetch("GET", "/console/audit")).body:
        pass

    assert (landed.status, landed.headers["Location"]) == (303, "/console/jobs")
    assert login in page.body.decode()
    assert re.search(rf"<td[^>]*>{login}</td>\s*<td[^>]*>console\.sign_in</td>", audit.body.decode())


async def test_the_request_to_the_provider_has_state_nonce_and_pkce(
    visitor: Visitor, provider: OpenIdProvider, login: str, front: FrontEnd
):
    await visitor.sign_in()
    await visitor.sign_in()

    first, second = provider.asked
    assert (first["response_type"], first["scope"], first["client_id"]) == ("code", "openid email", CLIENT_ID)
    assert first["redirect_uri"] == f"{front.services.settings.base_url}/sign-in/callback"
    assert first["code_challenge_method"] == "S256"
    assert all(first[name] != second[name] for name in ("state", "nonce", "code_challenge"))
    assert provider.token_requests[0]["code_verifier"] not in str(provider.asked)


async def test_a_person_who_was_not_added_cannot_sign_in_and_is_not_added(
    visitor: Visitor, provider: OpenIdProvider, people: People, login: str
):
    provider.claims = {"email": "eve@example.com", "sub": "eve"}
    known = await people.all()

    answer = await visitor.sign_in()

    assert answer.status == 422
    assert await people.all() == known
    assert "eve@example.com is not known here" in answer.body.decode()
    assert (await visitor.fetch("GET", "/console")).status == 303


@pytest.mark.parametrize(("claim", "is_known"), [("oid", True), ("email", False)])
async def test_a_claim_other_than_the_address_may_be_the_subject_of_a_person_whom_others_added(
    running: OpenIdProvider, tmp_path: Path, database_url: str, redis_url: str, claim: str, is_known: bool
):
    running.reset()
    subject = f"{uuid4().hex}@example.com"
    settings = {**running.settings, "oidc_claim": claim}
    async with (
        front_end(tmp_path, database_url, redis_url, **settings) as opened,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
    ):
        people = People(opened.services.database, opened.services.identity)
        new = NewPerson(issuer=running.issuer, subject=subject, scopes=["read"])
        person = await people.create(await opened.organization(), new, lambda client: None)
        running.claims = {claim: subject, "sub": uuid4().hex}

        answer = await Visitor(opened, session).sign_in()

        assert answer.status == (303 if is_known else 422)
        assert ((await people.get(person.id)).last_seen_at is not None) is is_known


async def test_an_email_stays_bound_to_the_first_subject_of_the_provider(
    visitor: Visitor, provider: OpenIdProvider, login: str
):
    first = await visitor.sign_in()
    provider.claims = {"email": login, "sub": "somebody-who-got-the-address-later"}
    later = await visitor.sign_in()
    provider.claims = {"email": "married@example.com", "sub": login}
    renamed = await visitor.sign_in()

    assert [each.status for each in (first, later, renamed)] == [303, 422, 303]


async def test_a_removed_person_loses_the_session_and_cannot_sign_in(visitor: Visitor, people: People, login: str):
    await visitor.sign_in()

    await people.remove(login)

    assert (await visitor.fetch("GET", "/console")).headers["Location"].startswith("/console/sign-in")
    assert (await visitor.sign_in()).status == 422


async def test_a_person_of_several_organizations_chooses_one(
    visitor: Visitor, provider: OpenIdProvider, people: People, front: FrontEnd
):
    one, other = await front.organization(), await front.organization()
    provider.claims = {"email": "both@example.com", "sub": "both"}
    await people.add("both@example.com", [one, other], ["read"])

    asked = await visitor.sign_in()
    landed = await visitor.sign_in(organization_id=str(other))

    assert re.findall(rb'name="organization_id" value="([\w-]+)"', asked.body) == [
        str(one).encode(),
        str(other).encode(),
    ]
    assert landed.status == 303


async def test_a_person_of_two_organizations_sees_on_the_own_page_what_is_of_the_chosen_one(
    visitor: Visitor, provider: OpenIdProvider, people: People, front: FrontEnd
):
    subject = uuid4().hex
    provider.claims = {"email": f"{subject}@example.com", "sub": subject}
    organizations = [await front.organization() for _ in range(3)]
    for number, organization_id in enumerate(organizations[:2]):
        new = NewPerson(issuer=provider.issuer, subject=subject, scopes=["read", "write"], workspaces=None)
        person = await people.create(organization_id, new, lambda client: None)
        async with front.api(organization_id) as administrator:
            (await connected(administrator, str(person.id), name=f"Mail of {number}")).document(201)
    names = {each.id: each.name for each in await front.services.identity.organizations()}

    asked = await visitor.sign_in(next="/console/me")
    pages = []
    for chosen in organizations:
        landed = await visitor.sign_in(next="/console/me", organization_id=str(chosen))
        pages.append((landed.status, landed.headers.get("Location"), await visitor.fetch("GET", "/console/me")))

    offered = [names[each].encode() in asked.body for each in organizations]
    assert (asked.status, offered) == (200, [True, True, False])
    assert [(status, page) for status, page, _ in pages[:2]] == [(303, "/console/me")] * 2
    shown = [[f"Mail of {number}".encode() in page.body for number in range(2)] for _, _, page in pages]
    assert shown == [[True, False], [False, True], [False, True]]  # what is not the person's begins no session
    assert pages[2][0] == 422


def forged_with_the_client_secret(claims: dict[str, Any]) -> str:
    key = OctKey.import_key(CLIENT_SECRET)
    return jwt.encode({"alg": "HS256"}, claims, key, registry=JWSRegistry(algorithms=["HS256"]))


def unsigned(claims: dict[str, Any]) -> str:
    head, body = (urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in ({"alg": "none"}, claims))
    return f"{head.decode()}.{body.decode()}."


def signed_by_another(claims: dict[str, Any]) -> str:
    key = RSAKey.generate_key(2048, {"kid": "k1"})
    return jwt.encode({"alg": "RS256", "kid": "k1"}, claims, key)


@pytest.mark.parametrize("forge", [forged_with_the_client_secret, unsigned, signed_by_another, lambda claims: "a.b"])
async def test_a_token_that_the_provider_did_not_sign_is_refused(
    visitor: Visitor, provider: OpenIdProvider, login: str, forge: Any
):
    provider.forge = forge

    answer = await visitor.sign_in()

    assert answer.status == 422
    assert "ID token" in answer.body.decode()
    assert (await visitor.fetch("GET", "/console")).status == 303


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.example"},
        {"aud": "another-client"},
        {"aud": ["another-client"]},
        {"aud": [CLIENT_ID, "another-client"]},
        {"aud": [CLIENT_ID, "another-client"], "azp": "another-client"},
        {"exp": 1_700_000_000},
        {"iat": 4_000_000_000},
        {"nonce": "of-another-sign-in"},
        {"nonce": None},
        {"sub": None},
        {"exp": None},
        {"at_hash": "b3RoZXI"},
        {"email_verified": False},
        {"email_verified": None},
        {"email": None},
        {"email": ["ada@example.com"]},
    ],
    ids=str,
)
async def test_a_token_for_another_request_is_refused(
    visitor: Visitor, provider: OpenIdProvider, login: str, claims: dict[str, Any]
):
    provider.claims |= claims

    answer = await visitor.sign_in()

    assert answer.status == 422
    assert (await visitor.fetch("GET", "/console")).status == 303


async def test_a_token_within_the_allowed_clock_skew_is_accepted(
    visitor: Visitor, provider: OpenIdProvider, login: str
):
    provider.claims |= {"aud": [CLIENT_ID], "exp": int(time.time()) - 5}

    assert (await visitor.sign_in()).status == 303


async def test_the_providers_words_show_no_secret_to_a_person_who_is_not_signed_in(
    visitor: Visitor, provider: OpenIdProvider
):
    provider.echoes = True

    refused = await visitor.sign_in()

    proof = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode())
    assert refused.status == 422
    assert b"the provider refuses the code: invalid_grant: Basic *** *** ***" in refused.body
    assert [each for each in (proof, CLIENT_SECRET.encode()) if each in refused.body] == []


@pytest.mark.parametrize(
    "answer", [{"iss": "https://other.example"}, {"iss": None}, {"code": None}, {"error": "access_denied"}], ids=str
)
async def test_a_callback_of_another_issuer_or_without_a_code_requests_no_token(
    visitor: Visitor, provider: OpenIdProvider, login: str, answer: dict[str, Any]
):
    provider.answer = answer

    assert (await visitor.sign_in()).status == 422
    assert provider.token_requests == []


async def test_a_callback_works_once(visitor: Visitor, provider: OpenIdProvider, login: str):
    back = await visitor.leave()
    first = await visitor.fetch("GET", back)
    session = {each.key: each.value for each in visitor.session.cookie_jar}

    again = await visitor.fetch("GET", back)

    assert (first.status, again.status) == (303, 403)
    assert b"was used already" in again.body
    assert len(provider.token_requests) == 1
    assert session["gateway-console"]


async def test_a_callback_works_only_in_the_browser_that_began_the_sign_in(
    visitor: Visitor, front: FrontEnd, provider: OpenIdProvider, login: str
):
    back = await visitor.leave()

    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        victim = Visitor(front, session)
        without_cookie = await victim.fetch("GET", back)
        await victim.leave()
        with_another_cookie = await victim.fetch("GET", await visitor.leave())

    assert (without_cookie.status, with_another_cookie.status) == (403, 403)
    assert "gateway-console" not in str(without_cookie.headers) + str(with_another_cookie.headers)
    assert provider.token_requests == []


async def test_an_unknown_state_is_refused(visitor: Visitor, provider: OpenIdProvider, login: str):
    back = await visitor.leave()

    answer = await visitor.fetch("GET", re.sub(r"state=[^&]+", "state=made-up", back))

    assert answer.status == 403
    assert provider.token_requests == []


async def test_a_session_cookie_from_before_the_sign_in_is_not_used(visitor: Visitor, login: str, front: FrontEnd):
    planted = "a" * 43
    visitor.session.cookie_jar.update_cookies({"gateway-console": planted}, aiohttp.client.URL(front.base_url))

    await visitor.sign_in()

    cookie = next(each.value for each in visitor.session.cookie_jar if each.key == "gateway-console")
    assert cookie != planted
    async with aiohttp.ClientSession(cookies={"gateway-console": planted}) as session:
        assert (await Visitor(front, session).fetch("GET", "/console")).status == 303


async def authorization_page(visitor: Visitor) -> str:
    """The sealed request in the page of a host's authorization request."""
    query = await visitor.front.authorization_query(REDIRECT)
    page = await visitor.fetch("GET", "/oauth/authorize", params=query)
    return sealed_in(page)


def sealed_in(page: Answer) -> str:
    found = re.search(rb'name="request" value="([^"]+)"', page.body)
    assert found is not None, page.body
    return found[1].decode()


async def test_a_person_gives_an_agents_host_access(visitor: Visitor, front: FrontEnd, people: People, login: str):
    back = await visitor.leave("/oauth/authorize/provider", request=await authorization_page(visitor))
    consent = await visitor.fetch("GET", back)

    form = {"request": sealed_in(consent), "scope": "read", "all_workspaces": "yes", "decision": "allow"}
    landed = await visitor.fetch("POST", "/oauth/authorize/consent", data=form)

    code = dict(parse_qsl(urlsplit(landed.headers["Location"]).query))["code"]
    row = await front.access.authorization.store.use_code(hashed(code))
    assert f"<strong>{login}</strong>" in consent.body.decode()
    assert row is not None
    assert row.grant.client_id == next(each.id for each in await people.all() if each.login == login)


async def test_only_the_chosen_workspaces_are_granted(visitor: Visitor, front: FrontEnd, login: str):
    """The page opens with the box for all workspaces ticked."""
    back = await visitor.leave("/oauth/authorize/provider", request=await authorization_page(visitor))
    consent = await visitor.fetch("GET", back)

    form = {"request": sealed_in(consent), "scope": "read", "all_workspaces": "yes", "workspace": "acme"}
    landed = await visitor.fetch("POST", "/oauth/authorize/consent", data={**form, "decision": "allow"})

    code = dict(parse_qsl(urlsplit(landed.headers["Location"]).query))["code"]
    row = await front.access.authorization.store.use_code(hashed(code))
    assert row is not None
    async with front.services.database.system() as connection:
        granted = await connection.fetchval("SELECT workspaces FROM agent_grants WHERE id = $1", row.grant.id)
    assert granted == ["acme"]


async def test_a_wrong_secret_on_the_page_of_a_host_is_recorded(visitor: Visitor, front: FrontEnd):
    organization_id = await front.organization()
    client_id, _ = await front.client(organization_id)
    form = {"request": await authorization_page(visitor), "client_id": client_id, "client_secret": "wrong"}

    refused = await visitor.fetch("POST", "/oauth/authorize/sign-in", data=form)

    async with front.api(organization_id) as api:
        entry = await noted(api, "agent.sign_in")
    assert refused.status == 403
    assert (entry["outcome"], entry["actor"]["id"]) == ("unauthorized", client_id)


async def test_a_person_who_was_not_added_cannot_give_a_host_access(
    visitor: Visitor, provider: OpenIdProvider, login: str
):
    provider.claims = {"email": "eve@example.com", "sub": "eve"}

    back = await visitor.leave("/oauth/authorize/provider", request=await authorization_page(visitor))
    page = await visitor.fetch("GET", back)

    assert page.status == 403
    assert "is not known here" in page.body.decode()
    assert sealed_in(page)  # from here they may try again


async def test_a_consent_continues_only_in_the_browser_that_began_it(visitor: Visitor, front: FrontEnd, login: str):
    """An attacker cannot get a person's consent by luring them to the callback of the attacker's own request."""
    back = await visitor.leave("/oauth/authorize/provider", request=await authorization_page(visitor))

    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        victim = Visitor(front, session)
        await victim.leave()
        answer = await victim.fetch("GET", back)

    assert answer.status == 403
    assert b"/oauth/authorize/consent" not in answer.body


async def test_sign_in_with_a_secret_can_be_turned_off(
    tmp_path: Path, database_url: str, redis_url: str, provider: OpenIdProvider
):
    async with (
        front_end(tmp_path, database_url, redis_url, **provider.settings, secret_sign_in=False) as front,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
    ):
        visitor = Visitor(front, session)
        client_id, secret = await front.client(await front.organization())
        form = {"client_id": client_id, "client_secret": secret}
        console = await visitor.fetch("GET", "/console/sign-in")
        refused = await visitor.fetch("POST", "/console/sign-in", data=form)
        form["request"] = await authorization_page(visitor)
        refused_too = await visitor.fetch("POST", "/oauth/authorize/sign-in", data=form)
        program = await visitor.fetch("POST", "/oauth/token", data={"grant_type": "client_credentials", **form})

    assert b"client_secret" not in console.body
    assert (refused.status, refused_too.status) == (404, 404)
    assert program.status == 200


async def test_without_a_provider_the_sign_in_pages_do_not_offer_it(tmp_path: Path, database_url: str, redis_url: str):
    async with front_end(tmp_path, database_url, redis_url) as front, aiohttp.ClientSession() as session:
        visitor = Visitor(front, session)
        page = await visitor.fetch("GET", "/console/sign-in")
        left = await visitor.fetch("POST", "/console/sign-in/provider", data={"next": ""})
        back = await visitor.fetch("GET", "/sign-in/callback?code=c&state=s")

    assert b"/console/sign-in/provider" not in page.body
    assert (left.status, back.status) == (404, 404)


async def test_letters_that_only_unicode_case_folding_equates_are_different_people(
    visitor: Visitor, provider: OpenIdProvider, people: People, front: FrontEnd
):
    unbound = f"kate-{uuid4().hex}@example.com"
    await people.add(unbound, [await front.organization()], ["read"])
    provider.claims = {"email": "\N{KELVIN SIGN}" + unbound[1:], "sub": "eve"}

    answer = await visitor.sign_in()

    assert answer.status == 422
    assert [person.subject for person in await people.all() if person.login == unbound] == [None]


@pytest.mark.parametrize("claims", [{"sub": "u\x00"}, {"email": "a\x00@example.com"}, {"sub": ""}, {"sub": "x" * 321}])
async def test_a_claim_that_postgresql_cannot_store_is_refused(
    visitor: Visitor, provider: OpenIdProvider, login: str, claims: dict[str, str]
):
    provider.claims = {"email": login, "sub": login, **claims}

    assert (await visitor.sign_in()).status == 422


async def test_pending_sign_ins_are_small_and_limited_per_address(visitor: Visitor, front: FrontEnd):
    async def stored() -> tuple[int, int]:
        async with front.services.database.system() as connection:
            return await connection.fetchval(
                "SELECT (count(*), coalesce(max(length(sealed)), 0)) FROM provider_sign_ins"
            )

    before, _ = await stored()
    fields = {"next": "/console/" + "x" * 30_000, "organization_id": "y" * 30_000}
    answers = [await visitor.fetch("POST", "/console/sign-in/provider", data=fields) for _ in range(MAX_BY_ADDRESS + 5)]

    after, longest = await stored()
    assert [answer.status for answer in answers] == [200] * MAX_BY_ADDRESS + [422] * 5
    assert after - before == MAX_BY_ADDRESS
    assert longest < 4000


@pytest.mark.parametrize(
    ("claim", "value", "login"),
    [
        ("email", " Ada@Example.COM ", "ada@example.com"),
        ("email", "\N{KELVIN SIGN}ate@example.com", "\N{KELVIN SIGN}ate@example.com"),
        ("email", "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}@example.com",
         "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}@example.com"),
        ("preferred_username", "Ada", "Ada"),
    ],
)  # fmt: skip
def test_only_ascii_letters_are_compared_without_case(claim: str, value: str, login: str):
    assert login_of(claim, value) == login
