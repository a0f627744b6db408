"""The JWTs that are exchanged for access tokens: what they say, and keys that cannot sign them."""

from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc import jws

from gateway.kinds.catalog import Catalog
from gateway.upstream.oauth_tokens.assertions import AssertionSigner
from gateway.upstream.private_keys import BadKey
from tests.harness.signing_keys import ACCOUNT, claims_in, key_file, parts_of, pem, rsa_key

GOOGLE, SALESFORCE = ("google-analytics-data-api", "service_account"), ("crm-query", "jwt_bearer")
# Unverified times would be refused if they were long ago.
NOW = datetime.now(UTC).replace(microsecond=0)
ISSUED = int(NOW.timestamp())
HERE = {"client_id": "app-1", "username": "agent@acme.example", "private_key": pem()}


def signer(catalog: Catalog, method: tuple[str, str], credentials, environment=None, **changes) -> AssertionSigner:
    spec = catalog.kind(method[0]).spec
    declared = spec.authentication[method[1]]
    assertion = declared.assertion.model_copy(update=changes)
    declared = declared.model_copy(update={"assertion": assertion})
    return AssertionSigner(spec=spec, method=declared, credentials=credentials, environment=environment or {})


def test_googles_names_the_account_the_scope_and_the_token_url(catalog: Catalog) -> None:
    signed = signer(catalog, GOOGLE, {"credentials_json": key_file()}).signed(NOW)

    assert jws.extract_compact(signed.encode()).headers() == {"alg": "RS256", "typ": "JWT", "kid": "kid-1"}
    assert claims_in(signed) == {
        "iss": ACCOUNT,
        "scope": "https://www.googleapis.com/auth/analytics.readonly",
        "aud": "https://oauth2.googleapis.com/token",
        "iat": ISSUED,
        "exp": ISSUED + 3600,
    }


def test_salesforces_names_the_app_the_user_and_the_login_host(catalog: Catalog) -> None:
    signed = signer(catalog, SALESFORCE, HERE, {"login_host": "test.salesforce.com"}).signed(NOW)

    assert claims_in(signed) == {
        "iss": "app-1",
        "sub": "agent@acme.example",
        "aud": "https://test.salesforce.com",
        "iat": ISSUED,
        "exp": ISSUED + 180,
    }


def test_a_key_file_names_neither_the_audience_nor_a_credential(catalog: Catalog) -> None:
    evil = {"token_uri": "https://evil.example/token", "aud": "https://evil.example", "access_token": "mallory"}
    claims = {"iss": "{client_email}", "sub": "{access_token}"}
    file = {"credentials_json": key_file(**evil)}

    without, given = [
        claims_in(signer(catalog, GOOGLE, credentials, claims=claims).signed(NOW))
        for credentials in (file, {**file, "access_token": "ada"})
    ]

    assert {without["aud"], given["aud"]} == {"https://oauth2.googleapis.com/token"}
    assert (without.get("sub"), given["sub"]) == (None, "ada")


def test_what_has_no_value_is_left_out_unless_the_key_file_must_have_it(catalog: Catalog) -> None:
    optional = {"claims": {"iss": "{client_id}", "sub": "{access_token}"}}
    without_user = claims_in(signer(catalog, SALESFORCE, HERE, {"login_host": "a"}, **optional).signed(NOW))
    without_kid = signer(catalog, GOOGLE, {"credentials_json": key_file(private_key_id=None)}).signed(NOW)
    nobodys = signer(catalog, GOOGLE, {"credentials_json": key_file(client_email=None)})

    assert "sub" not in without_user
    assert jws.extract_compact(without_kid.encode()).headers() == {"alg": "RS256", "typ": "JWT"}
    with pytest.raises(BadKey, match="credentials_json has no client_email: give the whole text"):
        nobodys.signed(NOW)


def test_one_that_is_accepted_once_has_an_id_of_its_own(catalog: Catalog) -> None:
    once = signer(catalog, SALESFORCE, HERE, {"login_host": "a"}, has_id=True, algorithm="RS512")

    ids = {claims_in(once.signed(NOW), algorithm="RS512")["jti"] for _ in range(2)}

    assert len(ids) == 2


def _damaged() -> str:
    numbers = rsa_key().private_numbers()
    # OpenSSL repairs a false exponent of one prime by the whole one, so that is false too.
    false = rsa.RSAPrivateNumbers(
        p=numbers.p,
        q=numbers.q,
        d=numbers.d + 2,
        dmp1=numbers.dmp1 + 2,
        dmq1=numbers.dmq1,
        iqmp=numbers.iqmp,
        public_numbers=numbers.public_numbers,
    )
    key = false.private_key(unsafe_skip_rsa_key_validation=True)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _elliptic() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (_elliptic, "is not an RSA key: RS256 signs with RSA"),
        (lambda: pem(bits=1024), "has 1024 bits: give an RSA key of 2048 to 8192 bits"),
        (_damaged, "is damaged: its parts do not belong together"),
        (
            lambda: "\n".join([*pem().splitlines()[:6], "-----END PRIVATE KEY-----"]),
            "is damaged: its PEM holds no private key",
        ),
    ],
    ids=["elliptic curve", "short", "false parts", "cut off"],
)
def test_a_key_that_cannot_sign_says_why_and_repeats_no_part_of_it(catalog: Catalog, key, reason) -> None:
    text = key()
    unable = signer(catalog, SALESFORCE, {**HERE, "private_key": text}, {"login_host": "a"})

    with pytest.raises(BadKey, match=f"^private_key {reason}") as refused:
        unable.signed(NOW)

    assert [line for line in parts_of(text) if line[:16] in f"{refused.value!r} {unable!r}"] == []
