"""Assertions that clients exchange for tokens (RFC 7523): what an application of the sandbox checks in them.

joserfc is imported when the first one comes; it belongs to the extra `server`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.kinds.authentication import Assertion, OAuthEndpoints

#: the value of `grant_type`
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
#: seconds that the clocks of both sides may differ, and maximum seconds that an assertion is valid
_LEEWAY, _MAX_LIFE = 60, 3600


class AssertionRefused(Exception):
    """The assertion is not valid, and why."""


@dataclass(frozen=True, slots=True)
class SignedGrant:
    """What the assertions of a kind must say."""

    assertion: Assertion
    oauth: OAuthEndpoints

    def verified(self, token: str, keys: Mapping[str, str], now: float) -> Mapping[str, Any]:
        """The claims of an assertion that the registered key of its issuer has signed; raises AssertionRefused."""
        from joserfc import jws
        from joserfc.errors import JoseError
        from joserfc.jwk import RSAKey

        try:
            issuer = str(msgspec.json.decode(jws.extract_compact(token.encode()).payload)["iss"])
        except (JoseError, ValueError, KeyError, TypeError):
            raise AssertionRefused("the assertion is no signed JWT with an issuer") from None
        if issuer not in keys:
            raise AssertionRefused(f"no key is registered for {issuer}: PUT /_sandbox/keys/KIND/{issuer}")
        try:
            verified = jws.deserialize_compact(
                token, RSAKey.import_key(keys[issuer]), algorithms=[self.assertion.algorithm]
            )
            claims: dict[str, Any] = msgspec.json.decode(verified.payload)
        except (JoseError, ValueError):
            raise AssertionRefused("Invalid JWT Signature.") from None
        fault = next(self._faults(claims, now), None)
        if fault is not None:
            raise AssertionRefused(fault)
        return claims

    def _faults(self, claims: Mapping[str, Any], now: float) -> Iterator[str]:
        audience = self.assertion.audience or self.oauth.token_url
        pattern = "[^/]+".join(re.escape(part) for part in re.split(r"{\w+}", audience))
        if not re.fullmatch(pattern, str(claims.get("aud"))):
            yield "the audience is not this server"
        issued, ends = claims.get("iat"), claims.get("exp")
        if not isinstance(issued, int) or not isinstance(ends, int):
            yield "iat and exp must be numbers"
        elif not issued - _LEEWAY <= now < ends + _LEEWAY or ends - issued > _MAX_LIFE:
            yield "the JWT must be short-lived (60 minutes) and in a reasonable timeframe: check iat and exp"
        for name in self.assertion.claims:
            if not claims.get(name):
                yield f"the claim {name} is missing"


def public_key_of(text: str) -> str:
    """The public key as PEM; raises ValueError."""
    from joserfc.errors import JoseError
    from joserfc.jwk import RSAKey

    try:
        return RSAKey.import_key(text).as_pem(private=False).decode()
    except (JoseError, ValueError, TypeError):
        raise ValueError("public_key: must be an RSA public key as PEM") from None
