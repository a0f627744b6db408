"""ID tokens: signature, issuer, audience, time and nonce (OpenID Connect Core §3.1.3.7). Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jwk import JWKRegistry, Key
from joserfc.jws import JWSRegistry

from gateway.access.identity.people import SignInRefused, login_of

#: signatures with a private key of the provider; `none` and symmetric signatures prove nothing
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
#: seconds by which the clocks of the provider and the gateway may differ
LEEWAY = 60
#: maximum characters of `sub` (OpenID Connect Core §2 allows 255), and of the claim of `GATEWAY_OIDC_CLAIM`
_MAX_NAME = 320


class UnknownKey(SignInRefused):
    """The provider's cached keys do not contain the token's key, which may be new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedToken:
    """The claims that an ID token must have."""

    issuer: str
    client_id: str
    nonce: str
    algorithms: Collection[str] = ALGORITHMS
    #: the access token in the same response; if the ID token has `at_hash`, it must match
    access_token: str | None = field(default=None, repr=False)


def verified_claims(
    token: str, keys: Sequence[Mapping[str, Any]], expected: ExpectedToken, now: int
) -> Mapping[str, Any]:
    """The claims of a valid token; raises SignInRefused, and UnknownKey. `keys` are JWKs (RFC 7517)."""
    header, members = decoded(token, keys, expected.algorithms)
    try:
        claims = CodeIDToken(
            members,
            header,
            {
                "iss": {"essential": True, "value": expected.issuer},
                "aud": {"essential": True, "value": expected.client_id},
                "sub": {"essential": True},
            },
            {"nonce": expected.nonce, "client_id": expected.client_id, "access_token": expected.access_token},
        )
        claims.validate(now=now, leeway=LEEWAY)
    except ExpiredTokenError as error:
        raise SignInRefused("the provider's ID token has expired; the clocks of both sides may differ") from error
    except (JoseError, ValueError, TypeError) as error:
        description = error.description if isinstance(error, JoseError) else ""
        raise SignInRefused(f"the provider's ID token is not valid: {description or type(error).__name__}") from error
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_NAME or not subject.isprintable():
        raise SignInRefused(f"the provider's claim sub is not 1 to {_MAX_NAME} printable characters")
    return dict(claims)


def decoded(
    token: str, keys: Sequence[Mapping[str, Any]], algorithms: Collection[str] = ALGORITHMS
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the claims of a token whose signature is valid; raises SignInRefused, and UnknownKey."""
    registry = JWSRegistry(algorithms=[each for each in ALGORITHMS if each in algorithms])
    try:
        token_ = jwt.decode(token, lambda signed: _key(keys, signed.headers()), registry=registry)
    except (JoseError, ValueError, TypeError) as error:
        description = error.description if isinstance(error, JoseError) else ""
        raise SignInRefused(f"the provider's ID token is not valid: {description or type(error).__name__}") from error
    return dict(token_.header), dict(token_.claims)


def _key(keys: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> Key:
    """The key with the `kid` of the token's header, or the only one (OpenID Connect Core §10.1)."""
    fitting = [
        each
        for each in keys
        if each.get("kty") in ("RSA", "EC")
        and each.get("use", "sig") == "sig"
        and each.get("alg") in (None, header.get("alg"))
        and header.get("kid") in (None, each.get("kid"))
    ]
    if len(fitting) != 1:
        raise UnknownKey("the provider's ID token is signed by none of the keys that the provider publishes")
    return JWKRegistry.import_key(dict(fitting[0]))


def login_in(claims: Mapping[str, Any], claim: str) -> str:
    """The login in the claim of `GATEWAY_OIDC_CLAIM`; raises SignInRefused."""
    value = claims.get(claim)
    if not isinstance(value, str) or not value.strip():
        raise SignInRefused(
            f"the provider's ID token has no claim {claim}; the operator names another one with GATEWAY_OIDC_CLAIM, "
            "or asks for it with GATEWAY_OIDC_SCOPES"
        )
    if len(value) > _MAX_NAME or not value.isprintable():
        raise SignInRefused(f"the provider's claim {claim} is not 1 to {_MAX_NAME} printable characters")
    if claim == "email" and claims.get("email_verified") is not True:
        raise SignInRefused("the provider does not say that your email address is verified (email_verified)")
    return login_of(claim, value)
