"""JWTs at the token endpoints of the sandbox, which verifies them with the registered key of their issuer."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from yarl import URL

from gateway.errors import ReauthorizationRequired
from gateway.in_process.connect import connect as connect_in_process
from gateway.upstream.oauth_tokens.assertions import AssertionSigner
from tests.harness.signing_keys import ACCOUNT, claims_in, key_file, pem, public_pem

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
GOOGLE = {"credentials_json": key_file()}
SALESFORCE = {"client_id": "my-app", "username": "agent@acme.example", "private_key": pem()}
METHODS = [("google-analytics-data-api", ACCOUNT, GOOGLE), ("crm-query", "my-app", SALESFORCE)]


async def register(http, kind, issuer, number=1):
    async with http.put(f"/_sandbox/keys/{kind}/{issuer}", json={"public_key": public_pem(number)}) as answer:
        assert answer.status == 204, await answer.text()


def signed(catalog, kind, credentials, at=None):
    spec = catalog.kind(kind).spec
    method = next(each for each in spec.authentication.values() if each.assertion)
    environment = {"login_host": "login.salesforce.com"}
    signer = AssertionSigner(spec=spec, method=method, credentials=credentials, environment=environment)
    return signer.signed(at or datetime.now(UTC))


async def token(catalog, http, kind, assertion):
    path = URL(re.sub(r"{\w+}", "acme", catalog.kind(kind).spec.oauth.token_url)).path
    form = {"grant_type": JWT_BEARER, "assertion": assertion}
    async with http.post(f"/_kinds/{kind}{path}", data=form) as answer:
        return answer.status, await answer.json()


@pytest.mark.parametrize(("kind", "issuer", "credentials"), METHODS, ids=lambda value: str(value)[:12])
async def test_a_jwt_that_a_registered_key_has_signed_gets_a_token_that_the_application_accepts(
    catalog, connect, http, kind, issuer, credentials
):
    await register(http, kind, issuer)

    status, tokens = await token(catalog, http, kind, signed(catalog, kind, credentials))

    assert (status, "refresh_token" in tokens) == (200, False), tokens
    await connect(kind, token=tokens["access_token"]).check()


@pytest.mark.parametrize(("kind", "issuer", "credentials"), METHODS, ids=lambda value: str(value)[:12])
async def test_a_program_without_a_server_connects_with_a_key(origin, http, kind, issuer, credentials):
    await register(http, kind, issuer)

    async with connect_in_process(kind, credentials, upstream=f"{origin}/_kinds/{kind}") as connector:
        await connector.check()


def changed(claims=None, number=1, algorithm="RS256", **times):
    """An assertion of Google's with other claims, with times some seconds from now, or signed otherwise."""

    def assertion(catalog):
        original = claims_in(signed(catalog, "google-analytics-data-api", GOOGLE))
        now, key = datetime.now(UTC), RSAKey.import_key(pem(number))
        moments = {name: int((now + timedelta(seconds=seconds)).timestamp()) for name, seconds in times.items()}
        return jwt.encode({"alg": algorithm}, {**original, **(claims or {}), **moments}, key, algorithms=[algorithm])

    return assertion


@pytest.mark.parametrize(
    ("assertion", "said"),
    [
        (changed(number=2), "Invalid JWT Signature."),
        (changed(algorithm="RS512"), "Invalid JWT Signature."),
        (changed({"aud": "https://evil.example/token"}), "the audience is not this server"),
        (changed({"iss": "nobody"}), "no key is registered for nobody"),
        (changed(iat=-7200, exp=-3700), "check iat and exp"),
        (changed(iat=600, exp=1200), "check iat and exp"),
        (changed(exp=7200), "short-lived (60 minutes)"),
        (changed({"exp": "tomorrow"}), "iat and exp must be numbers"),
        (lambda catalog: "not.a.jwt", "no signed JWT with an issuer"),
        (lambda catalog: "", "no signed JWT with an issuer"),
    ],
)
async def test_a_jwt_that_is_not_valid_gets_no_token(catalog, http, assertion, said):
    await register(http, "google-analytics-data-api", ACCOUNT)

    status, refused = await token(catalog, http, "google-analytics-data-api", assertion(catalog))

    assert (status, refused["error"]) == (400, "invalid_grant")
    assert said in refused["error_description"]


async def test_a_revoked_key_gets_no_more_tokens(catalog, origin, http):
    kind = "google-analytics-data-api"
    await register(http, kind, ACCOUNT)
    await (await http.delete(f"/_sandbox/keys/{kind}/{ACCOUNT}")).release()

    with pytest.raises(ReauthorizationRequired, match="no key is registered"):
        async with connect_in_process(kind, GOOGLE, upstream=f"{origin}/_kinds/{kind}") as connector:
            await connector.check()


async def test_a_kind_without_service_accounts_takes_no_jwt(catalog, http):
    status, refused = await token(catalog, http, "gmail", "a.b.c")

    assert (status, refused["error"]) == (400, "unsupported_grant_type")


async def test_a_text_that_is_no_public_key_is_not_registered(http):
    async with http.put("/_sandbox/keys/crm-query/my-app", json={"public_key": "hello"}) as answer:
        said = await answer.json()

    assert (answer.status, said["error"]) == (400, "public_key: must be an RSA public key as PEM")
