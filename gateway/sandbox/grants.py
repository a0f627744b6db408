"""The authorization codes and tokens of an application of the sandbox."""

import base64
import hashlib
import secrets
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Consent:
    """A person's consent, whose code is not exchanged yet."""

    client_id: str
    redirect_uri: str
    scope: str
    challenge: str
    expires: float


@dataclass(frozen=True, slots=True)
class Pair:
    """An access token and the refresh token that renews it."""

    access: str
    refresh: str
    client_id: str
    scope: str


#: lifetime of a code in seconds
_CODE_LIFETIME = 600


class Grants:
    """The codes and tokens of one application; unknown tokens are valid too, so that callers may use any token."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Discard all codes and tokens."""
        #: lifetime in seconds of tokens issued from now on; None for the kind's own
        self.lifetime: float | None = None
        self._consents: dict[str, Consent] = {}
        self._pairs: dict[str, Pair] = {}
        self._expiries: dict[str, float] = {}
        self._invalid: set[str] = set()
        #: issuer of assertions → its public key as PEM
        self.keys: dict[str, str] = {}

    def is_valid(self, token: str, now: float) -> bool:
        """Whether an access token is not revoked, replaced or expired; unknown tokens are valid."""
        return token not in self._invalid and self._expiries.get(token, now + 1) > now

    def consent(self, client_id: str, redirect_uri: str, scope: str, challenge: str, now: float) -> str:
        """A new code, which can be redeemed once within ten minutes."""
        code = f"code-{secrets.token_urlsafe(16)}"
        self._consents[code] = Consent(client_id, redirect_uri, scope, challenge, now + _CODE_LIFETIME)
        return code

    def redeem(self, code: str, client_id: str, redirect_uri: str, verifier: str, now: float) -> Consent | None:
        """The consent of a code; None if code, client, redirect URI or verifier (RFC 7636 S256) do not match."""
        consent = self._consents.pop(code, None)
        if consent is None or consent.expires < now:
            return None
        if (consent.client_id, consent.redirect_uri) != (client_id, redirect_uri):
            return None
        if consent.challenge and consent.challenge != s256(verifier):
            return None
        return consent

    def issue(self, client_id: str, scope: str, lifetime: float, now: float, refresh: str | None = None) -> Pair:
        """A new access token; with the given refresh token, or a new one."""
        token = refresh or f"refresh-{secrets.token_urlsafe(24)}"
        pair = Pair(f"access-{secrets.token_urlsafe(24)}", token, client_id, scope)
        self._pairs[pair.refresh] = pair
        self._expiries[pair.access] = now + lifetime
        return pair

    def pair_of(self, refresh: str, client_id: str) -> Pair | None:
        """The pair of a refresh token, a new one for an unknown token; None if it is invalid or another client's."""
        if not refresh or refresh in self._invalid or refresh.startswith("bad"):
            return None
        pair = self._pairs.get(refresh)
        if pair is not None and pair.client_id != client_id:
            return None
        return pair or Pair("", refresh, client_id, "")

    def invalidate(self, pair: Pair) -> None:
        """Make both tokens of the pair invalid."""
        self._pairs.pop(pair.refresh, None)
        self._invalid |= {pair.access, pair.refresh}

    def revoke(self, token: str) -> None:
        """Make the token invalid, and its pair if it belongs to one."""
        for pair in list(self._pairs.values()):
            if token in (pair.access, pair.refresh):
                self.invalidate(pair)
        self._invalid.add(token)


def s256(verifier: str) -> str:
    """The challenge of a verifier (RFC 7636 §4.2)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
