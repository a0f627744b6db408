"""The keys with which the gateway proves itself as a client of authorization servers (RFC 7523 §2.2).

They are made of secrets that every process has, so that none is stored. joserfc and cryptography are imported when one
is used, because few processes do.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final
from uuid import uuid4

if TYPE_CHECKING:
    from joserfc.jwk import ECKey

#: client authentication by a JWT that the gateway signs (RFC 7523 §2.2), and how it signs (RFC 7518 §3.4)
SIGNED: Final = "private_key_jwt"
SIGNING_ALGORITHM = "ES256"
#: the order of the curve P-256 (FIPS 186-4 §D.1.2.3)
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
#: seconds for which an assertion is valid
_LIFETIME = 60


@dataclass(frozen=True)
class ClientKeys:
    """One key for each secret. The first signs; all are published, so that a server may verify what another signed."""

    secrets: Sequence[bytes] = field(repr=False)
    #: the URL of the metadata document that names them, the id of apps that are registered nowhere
    document: str

    @cached_property
    def _keys(self) -> "Sequence[ECKey]":
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key
        from joserfc.jwk import ECKey

        return [ECKey.import_key(derive_private_key(_scalar(each), SECP256R1())) for each in self.secrets]

    @property
    def public(self) -> Sequence[dict[str, str]]:
        """The public keys as JWKs (RFC 7517), the one that signs first."""
        use = {"use": "sig", "alg": SIGNING_ALGORITHM}
        return [{**_texts(key), "kid": key.thumbprint(), **use} for key in self._keys]

    def assertion(self, client_id: str, audience: str, now: datetime) -> str:
        """A new JWT that proves to an authorization server that the gateway is this client of it (RFC 7523 §3)."""
        from joserfc import jwt

        key, issued = self._keys[0], int(now.timestamp())
        header = {"alg": SIGNING_ALGORITHM, "typ": "JWT", "kid": key.thumbprint()}
        claims = {"iss": client_id, "sub": client_id, "aud": audience, "jti": str(uuid4())}
        return jwt.encode(
            header, {**claims, "iat": issued, "exp": issued + _LIFETIME}, key, algorithms=[SIGNING_ALGORITHM]
        )


def _scalar(secret: bytes) -> int:
    """A private key; of 64 bytes, so that all are as probable."""
    return int.from_bytes(hashlib.sha512(secret).digest()) % (_ORDER - 1) + 1


def _texts(key: "ECKey") -> dict[str, str]:
    members = key.as_dict(private=False)
    return {name: str(members[name]) for name in ("kty", "crv", "x", "y")}
