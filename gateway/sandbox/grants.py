"""The tokens that an application of the sandbox has given out, and which of them still count."""

import base64
import hashlib
import secrets
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Consent:
    """A user's yes, waiting under its code to be exchanged."""

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


#: seconds that a code lives
_CODE_LIFETIME = 600


class Grants:
    """Codes and tokens of one application; tokens that it never gave out count too, as callers bring their own."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """As if nothing was ever given out."""
        #: seconds that tokens given out from now on live; None leaves it to the kind
        self.lifetime: float | None = None
        self._consents: dict[str, Consent] = {}
        self._pairs: dict[str, Pair] = {}
        self._expiries: dict[str, float] = {}
        self._dead: set[str] = set()

    def is_good(self, token: str, now: float) -> bool:
        """Whether an access token counts: revoked, replaced and expired ones do not, unknown ones do."""
        return token not in self._dead and self._expiries.get(token, now + 1) > now

    def consent(self, client_id: str, redirect_uri: str, scope: str, challenge: str, now: float) -> str:
        """A new code, valid once and for ten minutes."""
        code = f"code-{secrets.token_urlsafe(16)}"
        self._consents[code] = Consent(client_id, redirect_uri, scope, challenge, now + _CODE_LIFETIME)
        return code

    def redeem(self, code: str, client_id: str, redirect_uri: str, verifier: str, now: float) -> Consent | None:
        """The granted consent; None if code, client, redirect or verifier (RFC 7636 S256) do not match."""
        consent = self._consents.pop(code, None)
        if consent is None or consent.expires < now:
            return None
        if (consent.client_id, consent.redirect_uri) != (client_id, redirect_uri):
            return None
        if consent.challenge and consent.challenge != s256(verifier):
            return None
        return consent

    def issue(self, client_id: str, scope: str, lifetime: float, now: float, refresh: str | None = None) -> Pair:
        """A new access token; the refresh token is the old one where the kind keeps it."""
        token = refresh or f"refresh-{secrets.token_urlsafe(24)}"
        pair = Pair(f"access-{secrets.token_urlsafe(24)}", token, client_id, scope)
        self._pairs[pair.refresh] = pair
        self._expiries[pair.access] = now + lifetime
        return pair

    def pair_of(self, refresh: str, client_id: str) -> Pair | None:
        """The pair that a refresh token renews, unknown ones being brought along; None for dead ones and `bad…`."""
        if not refresh or refresh in self._dead or refresh.startswith("bad"):
            return None
        pair = self._pairs.get(refresh)
        if pair is not None and pair.client_id != client_id:
            return None
        return pair or Pair("", refresh, client_id, "")

    def end(self, pair: Pair) -> None:
        """Neither token of the pair counts from now on."""
        self._pairs.pop(pair.refresh, None)
        self._dead |= {pair.access, pair.refresh}

    def revoke(self, token: str) -> None:
        """The token, and the pair that it is half of, count no more."""
        for pair in list(self._pairs.values()):
            if token in (pair.access, pair.refresh):
                self.end(pair)
        self._dead.add(token)


def s256(verifier: str) -> str:
    """The challenge that a verifier answers (RFC 7636 §4.2)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
