"""Assertions: the signed JWTs that are exchanged for access tokens (RFC 7523).

joserfc is imported when one is signed, because few processes do.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from cryptography.exceptions import InternalError as CryptographyError
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from gateway.errors import InternalError
from gateway.kinds.authentication import Assertion, AuthMethod
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.private_keys import BadKey, PrivateKey, read_private_key

#: bits of a key: RFC 7518 §3.3 demands the minimum; signing with a larger one takes longer than a request may
_MIN_BITS, _MAX_BITS = 2048, 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionSigner:
    """What an assertion is made of, for `in_thread`: signing is a computation."""

    spec: ConnectorSpec
    method: AuthMethod
    credentials: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str]

    def signed(self, now: datetime) -> str:
        """The assertion; raises BadKey if the key cannot sign it, or lacks a claim."""
        assertion = self._assertion
        key = read_private_key(assertion, self.credentials.get(assertion.key, ""))
        header, claims = self._header(key), self._claims(key, now)
        name = assertion.key if assertion.key_member is None else f"{assertion.key_member} of {assertion.key}"
        return _signed(name, assertion.algorithm, _rsa_key(name, assertion, key.pem), header, claims)

    @property
    def _assertion(self) -> Assertion:
        if self.method.assertion is None:
            raise InternalError
        return self.method.assertion

    def _header(self, key: PrivateKey) -> dict[str, Any]:
        assertion, values = self._assertion, self._values(key)
        filled = {
            name: _filled(text, values)
            for name, text in assertion.header.items()
            if all(values.get(each) for each in assertion.names(text))
        }
        return {**filled, "alg": assertion.algorithm, "typ": "JWT"}

    def _claims(self, key: PrivateKey, now: datetime) -> dict[str, Any]:
        assertion, values = self._assertion, self._values(key)
        claims: dict[str, Any] = {}
        for name, text in assertion.claims.items():
            missing = {each for each in assertion.names(text) if not values.get(each)}
            of_file = missing - {*self.method.credentials, *self.spec.environment}
            if of_file:
                raise BadKey(f"{assertion.key} has no {min(of_file)}: give the whole text of the key file")
            if not missing:
                claims[name] = _filled(text, values)
        oauth, issued = self.spec.oauth_endpoints, int(now.timestamp())
        claims["aud"] = _filled(assertion.audience or oauth.token_url, self.environment)
        claims |= {"iat": issued, "exp": issued + assertion.lifetime}
        scopes = oauth.scopes if assertion.scopes is None else assertion.scopes
        if scopes:
            claims["scope"] = oauth.scope_separator.join(scopes)
        if assertion.has_id:
            claims["jti"] = str(uuid4())
        return claims

    def _values(self, key: PrivateKey) -> Mapping[str, str]:
        """The values by name: a key file gives no credential or variable, also none that the connector lacks."""
        own = {*self.method.credentials, *self.spec.environment}
        of_file = {name: value for name, value in key.members.items() if name not in own}
        return {**of_file, **self.environment, **self.credentials}


def _filled(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"{(\w+)}", lambda found: values[found[1]], text)


def _rsa_key(name: str, assertion: Assertion, pem: str) -> RSAPrivateKey:
    """The key, after the checks that need no proof of its primes.

    OpenSSL's proof takes 50 to 400 ms, in which no other thread of the process runs. Without it, a key with false parts
    signs wrongly, so the signature is verified.
    """
    try:
        loaded = load_pem_private_key(pem.encode(), None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadKey(f"{name} is damaged: its PEM holds no private key") from None
    if not isinstance(loaded, RSAPrivateKey):
        raise BadKey(f"{name} is not an RSA key: {assertion.algorithm} signs with RSA")
    if not _MIN_BITS <= loaded.key_size <= _MAX_BITS:
        raise BadKey(f"{name} has {loaded.key_size} bits: give an RSA key of {_MIN_BITS} to {_MAX_BITS} bits")
    try:
        return loaded.private_numbers().private_key(unsafe_skip_rsa_key_validation=True)
    except ValueError:
        raise _damaged(name) from None


def _signed(
    name: str, algorithm: str, private_key: RSAPrivateKey, header: dict[str, Any], claims: dict[str, Any]
) -> str:
    """The JWT, whose signature has been verified."""
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import RSAKey

    try:
        key = RSAKey.import_key(private_key)
        signed = jwt.encode(header, claims, key, algorithms=[algorithm])
        jwt.decode(signed, key, algorithms=[algorithm])
    except (JoseError, ValueError, CryptographyError):
        raise _damaged(name) from None
    return signed


def _damaged(name: str) -> BadKey:
    return BadKey(f"{name} is damaged: its parts do not belong together")
