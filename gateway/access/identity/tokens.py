"""Bearer tokens: issued for a client's secret, stored as hashes, and cached once verified until something changes."""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from uuid import UUID

from gateway.access.identity.attempts import Attempts
from gateway.access.identity.model import Client, id_of
from gateway.access.identity.store import IdentityStore, StoredToken
from gateway.errors import OAuthError, RateLimited, Unauthorized
from gateway.foundation.aio.notified_cache import NotifiedCache

#: seconds for which a verified token is trusted while notifications of changes may be missed
_UNNOTIFIED = 5.0
#: maximum verified tokens that a process caches
_MAX_CACHED = 20_000
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


class Tokens:
    """Issues and verifies bearer tokens."""

    def __init__(self, store: IdentityStore, seconds: int, attempts: Attempts, is_current: Callable[[], bool]) -> None:
        self._store = store
        self._attempts = attempts
        self._seconds = seconds
        #: by hash
        self._verified: NotifiedCache[bytes, StoredToken] = NotifiedCache(
            self._read,
            is_current,
            unnotified=_UNNOTIFIED,
            max_cached=_MAX_CACHED,
            subjects=_clients_of,
            seconds=lambda token: token.seconds_left,
            holder=lambda token: token.client.organization_ids,
        )
        self.on_notify, self.invalidate_all = self._verified.on_notify, self._verified.invalidate_all

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
        self.on_notify(str(client.id))

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
        return (await self._verified.get(hashed(token))).client

    async def _read(self, token_hash: bytes) -> StoredToken:
        token = await self._store.token(token_hash)
        if token is None:
            raise Unauthorized("the token is unknown, expired or revoked; get a new one")
        return token


def _clients_of(_token_hash: bytes, token: StoredToken) -> Collection[UUID]:
    """The clients whose changes concern a token: its own, and the one that acts in its session."""
    session = token.client.session
    return (token.client.id,) if session is None else (token.client.id, session.client_id)
