"""Rate scopes, which group requests that share an application's limit, and the limiter's interface."""

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import UUID

from gateway.kinds.failures import RateLimit
from gateway.kinds.spec import ConnectorSpec

#: the key of the digests of credentials, which no other process can compare
_DIGEST_KEY = secrets.token_bytes(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateScope:
    """Requests that share one limit: of the account behind a connector, or of one subject at a token endpoint."""

    #: one value for each account, the same in every process; it has no default, so that no two tenants share a scope
    id: str
    #: the kind that its requests are counted under
    kind: str
    #: the application's published rate limit; None if it publishes none
    limit: RateLimit | None = None
    #: whether the request is of a background job, without a waiting caller
    is_background: bool = False
    #: the connector, or the consent, whose requests these are: for the request log
    connector_id: UUID | None = None
    #: the host of requests that leave the application's own hosts
    foreign_host: str | None = None

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("a rate scope needs an id: requests without one would share their limits")

    @classmethod
    def of_connector(cls, spec: ConnectorSpec, connector_id: UUID) -> "RateScope":
        """The calls of a stored connector."""
        return cls(id=f"{spec.kind}:{connector_id}", kind=spec.kind, limit=spec.rate_limit, connector_id=connector_id)

    @classmethod
    def of_credentials(cls, spec: ConnectorSpec, credentials: Mapping[str, str]) -> "RateScope":
        """The calls of credentials that no connector has yet."""
        return cls(id=f"{spec.kind}:credentials:{digest_of(credentials)}", kind=spec.kind, limit=spec.rate_limit)

    @classmethod
    def of_tokens(cls, spec: ConnectorSpec, subject: UUID) -> "RateScope":
        """The token requests of one connector or consent; the budget of the API does not count them."""
        return cls(id=f"{spec.kind}:tokens:{subject}", kind=spec.kind, connector_id=subject)

    def tokens(self) -> "RateScope":
        """The token requests that go with these calls."""
        return replace(self, id=f"{self.id}:tokens", limit=None)

    def at_host(self, host: str) -> "RateScope":
        """The requests that the same account causes at a host that is not the application's."""
        return replace(self, id=f"{self.id}@{host}", limit=None, foreign_host=host)

    def in_background(self) -> "RateScope":
        """The same scope for background requests: under a rate limit, requests with a waiting caller go first."""
        return replace(self, is_background=True)


def digest_of(credentials: Mapping[str, str]) -> str:
    """What tells these credentials from others, in this process only."""
    text = "\0".join(f"{name}={value}" for name, value in sorted(credentials.items()))
    return hmac.new(_DIGEST_KEY, text.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()[:32]


class RateLimiter(Protocol):
    """Limits concurrency and rate of each rate scope."""

    def acquire(self, scope: RateScope, timeout: float) -> Awaitable[None] | None:
        """Take a place: None if there is one at once, else what to await for it.

        Awaiting raises UpstreamRateLimited when none comes within the timeout.
        """

    def release(self, scope: RateScope, headers: Mapping[str, str] | None) -> None:
        """Give a place back, and read the rate-limit headers of the response, if there is one."""

    def pause(self, scope: RateScope, seconds: float) -> None:
        """Give no permits for so many seconds, after a 429."""


class Unlimited:
    """Without limits."""

    def acquire(self, scope: RateScope, timeout: float) -> Awaitable[None] | None:
        return None

    def release(self, scope: RateScope, headers: Mapping[str, str] | None) -> None:
        """Nothing to note."""

    def pause(self, scope: RateScope, seconds: float) -> None:
        """Nothing to pause."""
