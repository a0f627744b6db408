"""Tokens of trusted issuers: exchanged by clients for tokens of people, and every way to forge or misuse one."""

import asyncio
import base64
import hmac
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from gateway.access.identity.people import People
from gateway.access.sign_in.issuer_store import prune_used_assertions
from gateway.contract.issuers import ACCESS_TOKEN_TYPE, ID_JAG_PROFILE, ID_TOKEN_TYPE, JWT_BEARER, TOKEN_EXCHANGE
from tests.harness.caller import Answer, Api
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.openid_provider import OpenIdProvider, openid_provider
from tests.harness.waiting import eventually
from tests.web.test_personal_connectors import CONNECTORS, connected

ISSUERS, AUDIENCE = "/api/v1/issuers", "company-app"
LIST = {"entity": "tickets", "action": "list", "params": {"per_page": 1}}
JAG = {"typ": "oauth-id-jag+jwt"}


@pytest.fixture(scope="module")
async def provider() -> AsyncIterator[OpenIdProvider]:
    async with openid_provider() as running:
        yield running


@pytest.fixture(scope="module")
async def front(tmp_path_factory: pytest.TempPathFactory, database_url: str, redis_url: str) -> AsyncIterator[FrontEnd]:
    folder: Path = tmp_path_factory.mktemp("front-end")
    async with front_end(folder, database_url, redis_url, oidc_private=True) as opened:
        yield opened


@dataclass
class Company:
    """An organization that trusts a provider, an employee, and a host that acts for employees."""

    front: FrontEnd
    provider: OpenIdProvider
    admin: Api
    organization_id: UUID
    host_id: str
    host_secret: str
    person: dict
    issuer_id: str

    @property
    def base_url(self) -> str:
        return self.front.services.settings.base_url

    def claims(self, **members: Any) -> dict[str, Any]:
        """The claims of an ID-JAG, or with `aud` and others of an ID token."""
        now = int(time.time())
        good = {
            "iss": self.provider.issuer,
            "sub": self.person["subject"],
            "aud": self.base_url,
            "client_id": self.host_id,
            "resource": f"{self.base_url}/mcp",
            "jti": uuid4().hex,
            "iat": now,
            "exp": now + 300,
            **members,
        }
        return {name: value for name, value in good.items() if value is not None}

    def assertion(self, **members: Any) -> str:
        return self.provider.signed(self.claims(**members), **JAG)

    def id_token(self, **members: Any) -> str:
        return self.provider.signed(self.claims(**{"aud": AUDIENCE, "client_id": None, "resource": None, **members}))

    async def send(self, client: tuple[str, str] | None = None, **form: str) -> Answer:
        id_, secret = client or (self.host_id, self.host_secret)
        return await Api(self.admin.session, {}).call(
            "POST", "/oauth/token", data={"client_id": id_, "client_secret": secret, **form}
        )

    async def by_assertion(self, assertion: str | None = None, **form: str) -> Answer:
        return await self.send(**{"grant_type": JWT_BEARER, "assertion": assertion or self.assertion(), **form})

    async def by_id_token(self, token: str | None = None, **form: str) -> Answer:
        subject = {"subject_token": token or self.id_token(), "subject_token_type": ID_TOKEN_TYPE}
        return await self.send(**{"grant_type": TOKEN_EXCHANGE, **subject, **form})

    def of(self, answer: Answer) -> Api:
        return Api(self.admin.session, {"Authorization": f"Bearer {answer.document()['access_token']}"})

    async def trust(self, **members: object) -> dict:
        """Trust the provider again, with these members."""
        await self.admin.call("DELETE", f"{ISSUERS}/{self.issuer_id}")
        body = {"issuer": self.provider.issuer, "audience": AUDIENCE, **members}
        added = (await self.admin.post(ISSUERS, body)).document(201)
        self.issuer_id = added["id"]
        return added


@pytest.fixture
async def company(front: FrontEnd, provider: OpenIdProvider) -> AsyncIterator[Company]:
    organization_id = await front.organization()
    host_id, secret = await front.client(organization_id, ["read", "write", "delegate"])
    async with front.api(organization_id, ["read", "write", "admin"]) as admin:
        body = {"issuer": provider.issuer, "audience": AUDIENCE}
        trusted = (await admin.post(ISSUERS, body)).document(201)
        rights = {"scopes": ["read", "write"], "workspaces": None, "name": "Ada"}
        # The API takes issuers with TLS only; the provider of the tests has none.
        person = (await admin.post("/api/v1/people", rights)).document(201)
        subject = uuid4().hex
        async with front.services.database.system() as connection:
            query = "UPDATE people SET issuer = $2, subject = $3 WHERE client_id = $1"
            await connection.execute(query, UUID(person["id"]), provider.issuer, subject)
        person = {**person, "subject": subject}
        yield Company(front, provider, admin, organization_id, host_id, secret, person, trusted["id"])


def refused(answer: Answer, code: str = "invalid_grant") -> str:
    """The description of a refusal with this code."""
    document = answer.document(400)
    assert document["error"] == code, document
    return document["error_description"]


async def test_an_id_jag_becomes_a_token_of_the_person_for_its_resource_alone(company: Company):
    answer = await company.by_assertion()
    granted = answer.document()
    session = (await company.admin.get("/api/v1/sessions")).document()["data"][0]

    async with company.of(answer).session.post(
        "/mcp", json={}, headers={"Authorization": f"Bearer {granted['access_token']}"}
    ) as at_mcp:
        assert at_mcp.status != 401
    assert (await company.of(answer).get(CONNECTORS)).status == 401
    assert granted["token_type"] == "bearer"
    assert granted["expires_in"] <= 3600
    assert granted["scope"] == "read write"
    assert "refresh_token" not in granted
    assert (session["person"]["id"], session["client"]["id"]) == (company.person["id"], company.host_id)
    assert answer.headers["Cache-Control"] == "no-store"


async def test_an_id_token_becomes_a_token_with_which_the_client_acts_for_the_person(company: Company):
    own = (await connected(company.admin, company.person["id"])).document(201)
    answer = await company.by_id_token()
    execute = f"{CONNECTORS}/{own['id']}/execute"

    assert answer.document()["issued_token_type"] == ACCESS_TOKEN_TYPE
    assert (await company.of(answer).post(execute, LIST)).status == 200

    async def recorded() -> list[dict]:
        return (await company.admin.get("/api/v1/audit?operation=tickets.list")).document()["data"]

    await eventually(recorded)
    (entry,) = await recorded()
    assert entry["actor"]["person"]["id"] == company.person["id"]
    assert entry["actor"]["client"]["id"] == company.host_id
    assert entry["actor"]["session"]


async def test_the_metadata_name_the_grants_and_the_profile(company: Company):
    metadata = (await company.admin.get("/.well-known/oauth-authorization-server")).document()

    assert {TOKEN_EXCHANGE, JWT_BEARER} <= set(metadata["grant_types_supported"])
    assert metadata["authorization_grant_profiles_supported"] == [ID_JAG_PROFILE]


FAULTY_JAGS = [
    ({"aud": "https://other.example"}, "aud"),
    ({"aud": None}, "aud"),
    ({"aud": ["{base}", "https://other.example"]}, "aud"),
    ({"client_id": "another"}, "client_id"),
    ({"client_id": None}, "client_id"),
    ({"exp": 1}, "expired"),
    ({"exp": None}, "exp"),
    ({"exp": "tomorrow"}, "exp"),
    ({"exp": True}, "exp"),
    ({"iat": None}, "iat"),
    ({"iat": 4_000_000_000, "exp": 4_000_000_100}, "not valid yet"),
    ({"nbf": 4_000_000_000}, "not valid yet"),
    ({"exp": "life"}, "3600"),
    ({"jti": None}, "jti"),
    ({"jti": ""}, "jti"),
    ({"jti": 7}, "jti"),
    ({"jti": "a\x00b"}, "jti"),
    ({"sub": None}, "sub"),
    ({"sub": "somebody else"}, "not known"),
    ({"sub": ["{sub}"]}, "sub"),
]


@pytest.mark.parametrize(("members", "named"), FAULTY_JAGS, ids=str)
async def test_a_faulty_id_jag_is_refused(company: Company, members: dict[str, Any], named: str):
    if members.get("exp") == "life":
        members = {"exp": int(time.time()) + 3700}
    if isinstance(members.get("aud"), list):
        members = {"aud": [company.base_url, "https://other.example"]}
    if isinstance(members.get("sub"), list):
        members = {"sub": [company.person["subject"]]}

    assert named in refused(await company.by_assertion(company.assertion(**members)))


FAULTY_ID_TOKENS = [
    ({"aud": "another-app"}, "aud"),
    ({"aud": ["another-app"]}, "aud"),
    ({"aud": [AUDIENCE, "another-app"]}, "azp"),
    ({"aud": [AUDIENCE, "another-app"], "azp": "another-app"}, "azp"),
    ({"exp": 1}, "expired"),
    ({"iat": None}, "iat"),
    ({"sub": "somebody else"}, "not known"),
]


@pytest.mark.parametrize(("members", "named"), FAULTY_ID_TOKENS, ids=str)
async def test_a_faulty_id_token_is_refused(company: Company, members: dict[str, Any], named: str):
    assert named in refused(await company.by_id_token(company.id_token(**members)))


async def test_an_audience_among_others_is_accepted_with_its_authorized_party(company: Company):
    token = company.id_token(aud=[AUDIENCE, "another-app"], azp=AUDIENCE)

    assert (await company.by_id_token(token)).status == 200


async def test_a_token_of_one_type_is_not_taken_for_the_other(company: Company):
    as_id_token = company.provider.signed(company.claims(aud=AUDIENCE), **JAG)
    as_assertion = company.provider.signed(company.claims())
    as_access_token = company.provider.signed(company.claims(aud=AUDIENCE), typ="at+jwt")

    assert "typ" in refused(await company.by_id_token(as_id_token))
    assert "typ" in refused(await company.by_assertion(as_assertion))
    assert "typ" in refused(await company.by_id_token(as_access_token))


async def test_an_id_jag_is_used_once_also_by_requests_at_the_same_time(company: Company):
    assertion = company.assertion()

    answers = await asyncio.gather(*(company.by_assertion(assertion) for _ in range(6)))

    assert sorted(each.status for each in answers) == [200, *[400] * 5]
    assert "jti" in refused(await company.by_assertion(assertion))
    await prune_used_assertions(company.front.services.database)
    assert "jti" in refused(await company.by_assertion(assertion))


async def test_a_refused_id_jag_is_not_used_up(company: Company):
    jti = uuid4().hex
    refused(await company.by_assertion(company.assertion(jti=jti, client_id="another")))

    assert (await company.by_assertion(company.assertion(jti=jti))).status == 200


def part(document: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


async def test_only_a_signature_by_a_key_of_the_issuer_counts(company: Company):
    provider, claims = company.provider, company.claims()
    head = {"kid": provider.key.kid, **JAG}
    # The public key as the secret of a symmetric signature: what a confused verifier would accept.
    confused = f"{part({'alg': 'HS256', **head})}.{part(claims)}"
    mac = hmac.new(provider.key.as_pem(private=False), confused.encode(), "sha256").digest()
    stranger = RSAKey.generate_key(2048, {"kid": provider.key.kid})
    embedded = stranger.as_dict(private=False)
    good = company.assertion()
    forged = [
        f"{part({'alg': 'none', **head})}.{part(claims)}.",
        f"{confused}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}",
        jwt.encode({"alg": "RS256", **head}, claims, stranger),
        jwt.encode({"alg": "RS256", **head, "jwk": embedded}, claims, stranger),
        ".".join((good.split(".")[0], part({**claims, "sub": "root"}), good.split(".")[2])),
        good[:-4],
        "x.y.z",
        "not a token",
        "é.é.é",
    ]

    for each in forged:
        refused(await company.by_assertion(each))


async def test_new_keys_of_the_issuer_are_loaded_and_replace_the_old_ones(
    company: Company, tmp_path: Path, database_url: str, redis_url: str
):
    async def status(front: FrontEnd, assertion: str) -> int:
        form = {"client_id": company.host_id, "client_secret": company.host_secret, "grant_type": JWT_BEARER}
        url = f"{front.base_url}/oauth/token"
        async with company.admin.session.post(url, data={**form, "assertion": assertion}) as response:
            return response.status

    provider = company.provider
    old, stale = (provider.key, provider.algorithm), company.assertion()
    try:
        async with front_end(tmp_path / "1", database_url, redis_url, oidc_private=True) as before:
            assert await status(before, company.assertion()) == 200
            provider.rotate(uuid4().hex)
            assert await status(before, company.assertion()) == 200
            requests = provider.key_requests
            for _ in range(4):
                unknown = provider.signed(company.claims(), **JAG, kid=uuid4().hex)
                assert await status(before, unknown) == 400
            assert provider.key_requests == requests
        async with front_end(tmp_path / "2", database_url, redis_url, oidc_private=True) as after:
            assert await status(after, stale) == 400
    finally:
        provider.key, provider.algorithm = old


async def test_a_token_of_one_issuer_is_not_taken_for_that_of_another(company: Company):
    async with openid_provider() as other:
        body = {"issuer": other.issuer, "audience": AUDIENCE}
        (await company.admin.post(ISSUERS, body)).document(201)
        mixed = other.signed(company.claims(), **JAG)
        honest = other.signed(company.claims(iss=other.issuer), **JAG)

        assert (await company.by_assertion(mixed)).status == 400
        assert "not known" in refused(await company.by_assertion(honest))


async def test_an_issuer_is_trusted_by_its_own_organization_only(company: Company):
    other = await company.front.client(None, ["read", "delegate"])
    assertion = company.assertion(client_id=other[0])
    form = {"grant_type": JWT_BEARER, "assertion": assertion}

    assert "not trusted" in refused(await company.send(other, **form))
    async with company.front.api() as admin:
        rival = await company.front.services.identity.enabled_client(UUID(other[0]))
        assert rival is not None
        body = {"issuer": company.provider.issuer, "audience": AUDIENCE}
        assert (await admin.post(ISSUERS, body)).status == 201


async def test_a_person_of_another_organization_is_not_acted_for(company: Company):
    """Another organization that trusts the same provider, and adds nobody, reaches nobody of this one."""
    organization_id = await company.front.organization()
    rival = await company.front.client(organization_id, ["read", "delegate"])
    async with company.front.api(organization_id) as admin:
        body = {"issuer": company.provider.issuer, "audience": AUDIENCE}
        (await admin.post(ISSUERS, body)).document(201)
        form = {"grant_type": JWT_BEARER, "assertion": company.assertion(client_id=rival[0])}

        assert "not known" in refused(await company.send(rival, **form))
        assert (await admin.get("/api/v1/people")).document()["data"] == []


async def test_a_subject_in_two_organizations_is_two_people(company: Company):
    """Both trust the provider; neither learns of the other's person, nor keeps the other from adding one."""
    organization_id = await company.front.organization()
    rival = await company.front.client(organization_id, ["read", "write", "delegate"])
    async with company.front.api(organization_id) as admin:
        rights = {"workspaces": None, "scopes": ["read"]}
        await admin.call("PUT", "/api/v1/groups/support", json=rights)
        new = {"issuer": company.provider.issuer, "audience": AUDIENCE, "create_people": True}
        (await admin.post(ISSUERS, {**new, "groups_claim": "groups"})).document(201)
        own = (await connected(company.admin, company.person["id"])).document(201)
        token = company.id_token(groups=["support"])
        form = {"grant_type": TOKEN_EXCHANGE, "subject_token": token, "subject_token_type": ID_TOKEN_TYPE}

        theirs = company.of(await company.send(rival, **form))
        ours = company.of(await company.by_id_token())
        [person] = (await admin.get("/api/v1/people")).document()["data"]

        assert person["id"] != company.person["id"]
        assert (await theirs.get(CONNECTORS)).document()["data"] == []
        assert (await theirs.post(f"{CONNECTORS}/{own['id']}/execute", LIST)).status == 404
        assert [each["id"] for each in (await ours.get(CONNECTORS)).document()["data"]] == [own["id"]]
        await admin.call("PATCH", f"/api/v1/people/{person['id']}", json={"status": "suspended"})
        assert (await ours.get(CONNECTORS)).status == 200
        assert (await company.by_id_token()).status == 200


async def test_an_issuer_names_people_by_the_claim_that_is_the_same_in_all_applications(company: Company):
    tenant = company.provider.issuer.split("/")[2]  # the issuer of a tenant has its id as a part
    await company.trust(subject_claim="oid")
    # Of another application of the company: another `sub`, the same `oid`.
    same = {"sub": uuid4().hex, "oid": company.person["subject"], "tid": tenant}

    assert (await company.by_id_token(company.id_token(**same))).status == 200
    assert (await company.by_assertion(company.assertion(**same))).status == 200
    assert "tid" in refused(await company.by_id_token(company.id_token(**{**same, "tid": "other"})))
    assert "tid" in refused(await company.by_id_token(company.id_token(**{**same, "tid": None})))
    assert "oid" in refused(await company.by_id_token(company.id_token(**{**same, "oid": None})))
    assert "oid" in refused(await company.by_id_token(company.id_token(sub=company.person["subject"])))
    assert "not known" in refused(await company.by_id_token(company.id_token(**{**same, "oid": uuid4().hex})))


async def test_which_clients_may_exchange(company: Company):
    without = await company.front.client(company.organization_id, ["read", "write", "admin"])
    other = await company.front.client(company.organization_id, ["read", "delegate"])
    form = {"grant_type": TOKEN_EXCHANGE, "subject_token": company.id_token(), "subject_token_type": ID_TOKEN_TYPE}

    refused(await company.send(without, **form), "unauthorized_client")
    assert (await company.send(other, **form)).status == 200
    await company.trust(client_ids=[company.host_id])
    refused(await company.send(other, **form), "unauthorized_client")
    assert (await company.by_id_token()).status == 200
    wrong = await company.send((company.host_id, "wrong"), **form)
    assert (wrong.status, wrong.json()["error"]) == (401, "invalid_client")


async def test_the_token_is_bound_to_the_resource_and_the_scope_that_the_assertion_names(company: Company):
    api, tools = f"{company.base_url}/api", f"{company.base_url}/mcp"
    bound = await company.by_assertion(company.assertion(resource=api, scope="read other"))

    assert bound.document()["scope"] == "read"
    assert (await company.of(bound).get(CONNECTORS)).status == 200
    refused(await company.by_assertion(company.assertion(resource=None)), "invalid_target")
    refused(await company.by_assertion(company.assertion(resource="https://other.example/mcp")), "invalid_target")
    refused(await company.by_assertion(company.assertion(resource=[tools])), "invalid_target")
    refused(await company.by_assertion(company.assertion(resource=tools), resource=api), "invalid_target")
    refused(await company.by_assertion(company.assertion(scope="other")), "invalid_scope")
    refused(await company.by_assertion(company.assertion(scope="read"), scope="read write"), "invalid_scope")
    refused(await company.by_assertion(scope="admin"), "invalid_scope")


async def test_a_session_within_is_bound_to_the_resource_too(company: Company):
    outer = company.of(await company.by_assertion(company.assertion(resource=f"{company.base_url}/api")))
    inner = (await outer.post("/api/v1/sessions", {})).document(201)

    async with company.admin.session.post(
        "/mcp", json={}, headers={"Authorization": f"Bearer {inner['token']}"}
    ) as response:
        assert response.status == 401
    within = Api(company.admin.session, {"Authorization": f"Bearer {inner['token']}"})
    assert (await within.get(CONNECTORS)).status == 200


async def test_the_rights_are_those_that_person_and_client_both_have(company: Company):
    reader = await company.front.client(company.organization_id, ["read", "delegate"])
    form = {"grant_type": TOKEN_EXCHANGE, "subject_token": company.id_token(), "subject_token_type": ID_TOKEN_TYPE}

    assert (await company.send(reader, **form)).document()["scope"] == "read"


MISSING = [
    ({"grant_type": JWT_BEARER}, "assertion"),
    ({"grant_type": TOKEN_EXCHANGE}, "subject_token"),
    ({"grant_type": TOKEN_EXCHANGE, "subject_token": "x"}, "subject_token_type"),
    (
        {"grant_type": TOKEN_EXCHANGE, "subject_token": "x", "subject_token_type": ID_TOKEN_TYPE, "actor_token": "x"},
        "actor_token",
    ),
    (
        {
            "grant_type": TOKEN_EXCHANGE,
            "subject_token": "x",
            "subject_token_type": ID_TOKEN_TYPE,
            "requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token",
        },
        "requested_token_type",
    ),
]


@pytest.mark.parametrize(("form", "named"), MISSING)
async def test_an_incomplete_form_is_refused(company: Company, form: dict[str, str], named: str):
    assert named in refused(await company.send(**form), "invalid_request")


async def test_people_are_added_with_the_groups_of_the_token_if_the_issuer_may_add_them(company: Company):
    rights = {"workspaces": None, "scopes": ["read"]}
    await company.admin.call("PUT", "/api/v1/groups/support", json=rights)
    new = {"sub": uuid4().hex, "groups": ["support", "unknown"], "name": "Grace", "email": "grace@example.com"}

    assert "not known" in refused(await company.by_id_token(company.id_token(**new)))
    await company.trust(create_people=True, groups_claim="groups")
    answers = await asyncio.gather(*(company.by_id_token(company.id_token(**new)) for _ in range(3)))
    found = (await company.admin.get(f"/api/v1/people?subject={new['sub']}")).document()["data"]

    assert [each.document()["scope"] for each in answers] == ["read"] * 3
    assert [(each["name"], each["email"], each["groups"]) for each in found] == [
        ("Grace", "grace@example.com", ["support"])
    ]


async def test_the_groups_of_a_person_follow_the_token(company: Company):
    for name in ("leads", "support"):
        rights = {"workspaces": None, "scopes": []}
        await company.admin.call("PUT", f"/api/v1/groups/{name}", json=rights)
    await company.trust(groups_claim="groups")

    async def groups() -> list[str]:
        return (await company.admin.get(f"/api/v1/people/{company.person['id']}")).document()["groups"]

    await company.by_id_token(company.id_token(groups=["leads"]))
    assert await groups() == ["leads"]
    await company.by_id_token()
    assert await groups() == ["leads"]
    await company.by_id_token(company.id_token(groups=["support"]))
    assert await groups() == ["support"]
    await company.by_id_token(company.id_token(groups=[]))
    assert await groups() == []


async def test_an_id_jag_that_was_used_changes_no_groups_and_adds_nobody(company: Company):
    for name in ("leads", "support"):
        await company.admin.call("PUT", f"/api/v1/groups/{name}", json={"workspaces": None, "scopes": []})
    await company.trust(groups_claim="groups", create_people=True)
    people, added = "/api/v1/people", uuid4().hex
    used = company.assertion(groups=["leads"])
    used_of_another = company.assertion(sub=added, groups=["support"], scope="read")
    await company.admin.call("PUT", "/api/v1/groups/support", json={"workspaces": None, "scopes": ["read"]})
    assert [(await company.by_assertion(each)).status for each in (used, used_of_another)] == [200, 200]
    (other,) = (await company.admin.get(f"{people}?subject={added}")).document()["data"]
    await company.admin.call("PATCH", f"{people}/{company.person['id']}", json={"groups": []})
    await company.admin.call("DELETE", f"{people}/{other['id']}")

    assert "jti" in refused(await company.by_assertion(used))
    assert "jti" in refused(await company.by_assertion(used_of_another))

    assert (await company.admin.get(f"{people}/{company.person['id']}")).document()["groups"] == []
    assert (await company.admin.get(f"{people}?subject={added}")).document()["data"] == []


async def test_the_groups_of_one_organization_give_a_person_of_several_nothing(company: Company):
    """A group would give its scopes in the other organizations too."""
    people = People(company.front.services.database, company.front.services.identity)
    subject, elsewhere = uuid4().hex, await company.front.organization()
    person = await people.add(f"{subject}@example.com", [company.organization_id, elsewhere], ["read"])
    await people.signed_in(company.provider.issuer, subject, f"{subject}@example.com")
    rights = {"workspaces": None, "scopes": ["read", "write", "admin"]}
    await company.admin.call("PUT", "/api/v1/groups/everybody", json=rights)
    await company.trust(groups_claim="groups")

    answer = await company.by_id_token(company.id_token(sub=subject, groups=["everybody"]))

    there = await company.front.services.identity.caller(person.id, elsewhere)
    assert answer.document()["scope"] == "read"
    assert there is not None
    assert there.client.scopes == {"read"}


async def test_a_suspended_person_gets_no_token(company: Company):
    path = f"/api/v1/people/{company.person['id']}"
    (await company.admin.call("PATCH", path, json={"status": "suspended"})).document()

    refused(await company.by_assertion())


async def test_a_client_revokes_what_it_has_exchanged(company: Company):
    answer = await company.by_id_token()
    form = {"client_id": company.host_id, "client_secret": company.host_secret}

    async def revoke(token: str) -> int:
        return (await company.admin.call("POST", "/oauth/revoke", data={"token": token, **form})).status

    assert (await company.of(answer).get(CONNECTORS)).status == 200
    assert await revoke(answer.document()["access_token"]) == 200
    assert (await company.of(answer).get(CONNECTORS)).status == 401
    assert (await company.admin.get("/api/v1/sessions")).document()["data"] == []


async def test_an_issuer_adds_nobody_unless_an_administrator_says_so(company: Company):
    trusted = (await company.admin.get(ISSUERS)).document()["data"]
    people = (await company.admin.get("/api/v1/people")).document()["data"]

    assert [each["create_people"] for each in trusted] == [False]
    assert "not known" in refused(await company.by_id_token(company.id_token(sub=uuid4().hex)))
    assert (await company.admin.get("/api/v1/people")).document()["data"] == people


async def test_tokens_end_with_the_trust_in_the_issuer(company: Company):
    api = company.of(await company.by_id_token())
    assert (await api.get(CONNECTORS)).status == 200

    assert (await company.admin.call("DELETE", f"{ISSUERS}/{company.issuer_id}")).status == 204

    async def is_refused() -> bool:
        return (await api.get(CONNECTORS)).status == 401

    await eventually(is_refused, within=5)
    assert "not trusted" in refused(await company.by_id_token())
    assert (await company.admin.call("DELETE", f"{ISSUERS}/{company.issuer_id}")).status == 404


FAULTY_ISSUERS = [
    ({"issuer": "ftp://login.example.com"}, ["issuer"]),
    ({"issuer": "https://login.example.com?a=b"}, ["issuer"]),
    ({"issuer": "https://user@login.example.com"}, ["issuer"]),
    ({"issuer": "login"}, ["issuer"]),
    ({"audience": ""}, ["audience"]),
    ({"subject_claim": "email"}, ["subject_claim"]),
    ({"subject_claim": ""}, ["subject_claim"]),
    ({"issuer": "x", "audience": "", "groups_claim": ""}, ["issuer", "audience", "groups_claim"]),
]


@pytest.mark.parametrize(("members", "named"), FAULTY_ISSUERS)
async def test_a_faulty_issuer_is_refused_with_all_faults(company: Company, members: dict, named: list[str]):
    body = {"issuer": "https://login.example.com", "audience": AUDIENCE, **members}
    answer = await company.admin.post(ISSUERS, body)

    assert [each["field"] for each in answer.document(422)["errors"]] == named


async def test_issuers_are_the_administrators_of_their_organization(company: Company):
    body = {"issuer": company.provider.issuer, "audience": AUDIENCE}
    async with company.front.api(scopes=["read", "write", "delegate"]) as other, company.front.api() as stranger:
        assert (await other.get(ISSUERS)).status == (await other.post(ISSUERS, body)).status == 403
        assert (await stranger.call("DELETE", f"{ISSUERS}/{company.issuer_id}")).status == 404
        assert (await stranger.get(ISSUERS)).document()["data"] == []
        foreign = {"issuer": "https://login.example.com", "audience": AUDIENCE, "client_ids": [company.host_id]}
        assert (await stranger.post(ISSUERS, foreign)).status == 422
    listed = (await company.admin.get(ISSUERS)).document()["data"]
    assert [each["id"] for each in listed] == [company.issuer_id]
    assert (await company.admin.post(ISSUERS, body)).document(409)["code"] == "conflict"


async def test_an_issuer_at_a_private_address_is_never_connected_to_unless_the_operator_allows_it(
    company: Company, tmp_path: Path, database_url: str, redis_url: str
):
    before = company.provider.key_requests
    async with front_end(tmp_path, database_url, redis_url) as strict:
        async with strict.api(company.organization_id) as admin:
            plain = {"issuer": "http://login.example.com", "audience": AUDIENCE}
            assert (await admin.post(ISSUERS, plain)).status == 422
        form = {
            "grant_type": JWT_BEARER,
            "assertion": company.assertion(aud=strict.services.settings.base_url),
            "client_id": company.host_id,
            "client_secret": company.host_secret,
        }
        async with company.admin.session.post(f"{strict.base_url}/oauth/token", data=form) as response:
            assert response.status == 503, await response.text()

    assert company.provider.key_requests == before
