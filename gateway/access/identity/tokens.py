"""Bearer tokens: issued for a client's secret, stored as hashes, and cached for a few seconds once verified."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, replace
from uuid import UUID

from gateway.access.identity.attempts import Attempts
from gateway.access.identity.model import Client, Scope, id_of
from gateway.access.identity.store import IdentityStore, StoredToken
from gateway.errors import OAuthError, RateLimited, Unauthorized
from gateway.foundation.aio.clock import steady
from gateway.foundation.aio.single_flight import SingleFlight

#: seconds for which a verified token is cached; a notification of a change ends that at once
_TRUST = 5.0
#: maximum verified tokens that a process caches
_REMEMBERED = 10_000
#: compared with the secret if the client is unknown, so that the refusal takes as long as that of a wrong secret
_NOBODY = hashlib.sha256(b"nobody").digest()


def hashed(secret: str) -> bytes:
    """The stored hash of a secret. Secrets are random 256-bit values, so a plain hash cannot be guessed."""
    return hashlib.sha256(secret.encode()).digest()


def bearer_token(authorization: str | None) -> str:
    """The token of an `Authorization: Bearer` header (RFC 6750 §2.1); raises Unauthorized without one."""
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("a bearer token is needed: Authorization: Bearer <token>")
    if not token.isascii():
        raise Unauthorized("the token is unknown, expired or revoked; get a new one")
    return token.strip()


def new_secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token in the response to its client."""

    access_token: str
    expires_in: int
    #: the client, limited to the scopes of the token
    client: Client


@dataclass(frozen=True, slots=True)
class _Verified:
    client: Client
    #: by the steady clock; at most the expiry of the token
    trusted_until: float

    def is_of(self, client_id: str) -> bool:
        """Whether it is a token of the client, or of a session in which the client acts."""
        session = self.client.session
        return client_id == str(self.client.id) or (session is not None and client_id == str(session.client_id))


class Tokens:
    """Issues and verifies bearer tokens."""

    def __init__(self, store: IdentityStore, seconds: int, attempts: Attempts) -> None:
        self._store = store
        self._attempts = attempts
        self._seconds = seconds
        self._verified: dict[bytes, _Verified] = {}
        self._reading = SingleFlight(self._read)

    async def issue(
        self,
        client_id: str,
        client_secret: str,
        address: str = "",
        scopes: frozenset[str] = frozenset(),
        resource: str | None = None,
    ) -> IssuedToken:
        """Issue a token with the requested `scopes`; without any, with all scopes of the client.

        `resource` is the only URL that accepts the token (RFC 8707).

        Raises OAuthError for a scope that the client does not have, and the errors of `authenticated`.
        """
        client = await self.authenticated(client_id, client_secret, address)
        if not scopes <= client.scopes:
            raise OAuthError("invalid_scope", f"scope may contain {', '.join(sorted(client.scopes))}")
        token = new_secret()
        await self._store.save_token(hashed(token), client.id, self._seconds, scopes or None, resource)
        return IssuedToken(token, self._seconds, replace(client, scopes=scopes or client.scopes))

    async def revoke(self, client_id: str, client_secret: str, token: str, address: str = "") -> None:
        """End a token in all processes at once, unless it is another client's; raises the errors of `authenticated`."""
        client = await self.authenticated(client_id, client_secret, address)
        await self._store.revoke_token(hashed(token), client.id)
        # This process refuses the token from now on; the others are notified.
        self._reading.forget()
        self._verified.pop(hashed(token), None)

    async def authenticated(self, client_id: str, client_secret: str, address: str = "") -> Client:
        """The client with this secret; an unknown client and a wrong secret get the same refusal in the same time.

        Secrets cannot be guessed; wrong ones are limited because of their cost, by client id and by the caller's
        `address`. Raises Unauthorized, and RateLimited beyond that limit.
        """
        id_ = id_of(client_id)
        client = await self._with_secret(id_, client_secret)
        if client is None:
            seconds = await self._attempts.wrong_secret(str(id_), address)
            if seconds:
                raise RateLimited("too many wrong secrets", retry_after=seconds)
            raise Unauthorized("client_id or client_secret is wrong")
        return client

    async def _with_secret(self, client_id: UUID | None, client_secret: str) -> Client | None:
        stored = None if client_id is None else await self._store.client(client_id)
        digest = hashed(client_secret)
        matches = [hmac.compare_digest(digest, each) for each in (stored.secret_hashes if stored else (_NOBODY,))]
        if stored is None or stored.client.disabled_at is not None or not any(matches):
            return None
        return stored.client

    async def verify(self, token: str) -> Client:
        """The client of the token; the error is the same for unknown, expired and revoked tokens."""
        token_hash = hashed(token)
        verified = self._verified.get(token_hash)
        if verified is None or verified.trusted_until <= steady():
            verified = await self._reading(token_hash)
        return verified.client

    async def _read(self, token_hash: bytes) -> _Verified:
        now, generation = steady(), self._reading.generation
        token = await self._store.token(token_hash)
        client = await self._store.enabled_client(token.client_id) if token else None
        limited = None if token is None or client is None else await self._limited(token, client)
        if token is None or limited is None:
            self._verified.pop(token_hash, None)
            raise Unauthorized("the token is unknown, expired or revoked; get a new one")
        client = replace(limited, token_hash=token_hash)
        verified = _Verified(client, now + min(_TRUST, token.seconds_left))
        if generation == self._reading.generation:  # else the token may have been revoked after it was read
            if len(self._verified) >= _REMEMBERED:
                self._verified.clear()
            self._verified[token_hash] = verified
        return verified

    async def _limited(self, token: StoredToken, client: Client) -> Client | None:
        """The client with the permissions of the token; None if the client of its session may no longer act."""
        if token.session is None:
            return token.narrowed(client)
        acting = await self._store.enabled_client(token.session.client_id)
        if acting is None or token.organization_id is None or Scope.DELEGATE not in acting.scopes:
            return None
        is_from_issuer = token.session.issuer_id is not None  # it ends with the trust in the issuer
        if not is_from_issuer and not await self._store.may_act_for(token.organization_id, acting.id, client.id):
            return None
        return token.acting_for(client, acting)

    def on_notify(self, client_id: str) -> None:
        """Forget the tokens of a client that was changed, perhaps by another process; of all clients for `*`."""
        if client_id == "*":
            self.invalidate_all()
            return
        self._reading.forget()
        self._verified = {key: each for key, each in self._verified.items() if not each.is_of(client_id)}

    def invalidate_all(self) -> None:
        """Forget every token, because notifications may have been missed."""
        self._reading.forget()
        self._verified.clear()
