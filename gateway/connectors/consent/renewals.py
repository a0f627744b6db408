"""Renews the access tokens of stored connectors, once for all callers in all processes.

Within a process all callers wait for one task. The task outlives the caller that started it, because the response
must be stored: the old refresh token may no longer be valid. Between processes a lease decides (`leases` explains why
it is not a row lock); processes without the lease poll the row until its version changes.

The order of a renewal: claim the lease and set `refreshing_since`; send the request; store the new tokens in one
transaction; only then use them. If the process dies in between, `refreshing_since` stays set, so that the error for
an invalid refresh token can name a lost response as the cause.
"""

import asyncio
import contextlib
import logging
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self
from uuid import UUID

from gateway.connectors.consent.apps import RegisteredApps
from gateway.connectors.consent.leases import HEARTBEAT, LeaseStore, RenewalLease
from gateway.connectors.consent.token_persistence import TokenPersistence
from gateway.connectors.model import ConnectorRecord, Secret, references_in
from gateway.connectors.store import ConnectorStore
from gateway.errors import GatewayError, ReauthorizationRequired, Unavailable, UpstreamTimeout
from gateway.foundation.aio.retries import retry_until_available
from gateway.foundation.telemetry import tracing
from gateway.foundation.telemetry.metrics import REFRESHES
from gateway.kinds.authentication import AuthMethod
from gateway.kinds.catalog import Catalog
from gateway.upstream.oauth_tokens.client import TokenClient
from gateway.upstream.oauth_tokens.model import (
    App,
    TokenError,
    TokenErrorKind,
    TokenSet,
    credentials_of,
    gateway_error_of,
    is_renewable,
    refused_proof,
    require_refresh_token,
    with_token_variables,
)
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.upstreams import Upstreams

log = logging.getLogger(__name__)

#: seconds between polls of a renewal in another process
_POLL_INTERVAL = 0.1
#: seconds until the wait for a renewal times out
_TIMEOUT = 30.0
#: seconds for which saving new tokens is retried while PostgreSQL is unavailable
_SAVE_TIMEOUT = 30.0


class Renewals:
    """Renews tokens; leaving the `async with` block waits for renewals in progress."""

    def __init__(
        self,
        catalog: Catalog,
        connectors: ConnectorStore,
        apps: RegisteredApps,
        leases: LeaseStore,
        persistence: TokenPersistence,
        upstreams: Upstreams,
    ) -> None:
        self._catalog = catalog
        self._connectors = connectors
        self._apps = apps
        self._leases = leases
        self._persistence = persistence
        self._upstreams = upstreams
        self._under_way: dict[tuple[UUID, int], asyncio.Task[Secret]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    async def renewed(self, record: ConnectorRecord, stale: Secret) -> Secret:
        """Credentials newer than the stale ones, committed.

        Raises ReauthorizationRequired if the grant is invalid, ConnectorNotReady if its app is refused, and
        UpstreamError for any other failure.
        """
        key = (record.id, stale.version)
        with tracing.span("renew the access token", "internal"):
            task = self._under_way.get(key)
            if task is None:
                task = asyncio.create_task(self._renew(record, stale), name=f"renew the tokens of {record.id}")
                self._under_way[key] = task
                task.add_done_callback(partial(self._on_done, key))
            return await asyncio.shield(task)

    def _on_done(self, key: tuple[UUID, int], task: "asyncio.Task[Secret]") -> None:
        del self._under_way[key]
        if not task.cancelled():
            task.exception()  # mark the exception as retrieved, even if every caller was canceled

    async def _renew(self, record: ConnectorRecord, stale: Secret) -> Secret:
        if not is_renewable(self._method(record), stale.values):
            require_refresh_token(stale.values)
        spec = self._catalog.served(record.kind).spec
        app = await self._apps.of(record.organization_id, spec, self._method(record), stale.values)
        self._connectors.require_newest_key()
        claimed = await self._claim(record, stale.version)
        if isinstance(claimed, Secret):
            return claimed
        result = await self._request(record, app, stale, claimed)
        if isinstance(result, TokenError) and result.kind is not TokenErrorKind.TRANSIENT:
            current = await self._read_again(record, stale, claimed)
            if current is not None:
                stale = current
                app = await self._apps.of(record.organization_id, spec, self._method(record), stale.values)
                result = await self._request(record, app, stale, claimed)
        REFRESHES.add(record.kind, "renewed" if isinstance(result, TokenSet) else result.kind.value)
        match result:
            case TokenSet():
                return await self._save(record, app, stale, claimed, result)
            case TokenError(kind=TokenErrorKind.APP) if app.is_registered:
                # Authorization servers delete apps that registered themselves; the next consent registers another.
                await self._apps.forget(record.organization_id, spec, app)
                return await self._mark_needs_reauth(claimed, result, self._method(record))
            case TokenError(kind=TokenErrorKind.GRANT | TokenErrorKind.KEY):
                return await self._mark_needs_reauth(claimed, result, self._method(record))
            case _:
                await self._leases.release(claimed, is_lost=result.is_lost)
                raise gateway_error_of(self._method(record), result, app)

    def _method(self, record: ConnectorRecord) -> AuthMethod:
        return self._catalog.served(record.kind).spec.authentication[record.auth_method or ""]

    async def _claim(self, record: ConnectorRecord, version: int) -> RenewalLease | Secret:
        """The lease, or the newer credentials that another process has stored."""
        deadline = asyncio.get_running_loop().time() + _TIMEOUT
        while asyncio.get_running_loop().time() < deadline:
            lease = await self._leases.claim(record.organization_id, record.id, version)
            if lease is not None:
                return lease
            secret = await self._connectors.secret(record.organization_id, record.id)
            if secret.version != version:
                return secret
            await asyncio.sleep(_POLL_INTERVAL)
        raise UpstreamTimeout("another process is still renewing the access token; try again")

    async def _request(
        self, record: ConnectorRecord, app: App, stale: Secret, lease: RenewalLease
    ) -> TokenSet | TokenError:
        """Send the token request, with heartbeats of the lease until the response arrives."""
        spec = self._catalog.served(record.kind).spec
        scope = RateScope.of_tokens(spec, record.id)
        client = TokenClient(spec, record.environment, self._upstreams, scope)
        renewing = asyncio.ensure_future(client.renew(app, stale.values, self._method(record)))
        try:
            while not (await asyncio.wait([renewing], timeout=HEARTBEAT))[0]:
                with contextlib.suppress(Unavailable):
                    await self._leases.extend(lease)
        finally:
            renewing.cancel()
        return renewing.result()

    async def _read_again(self, record: ConnectorRecord, refused: Secret, lease: RenewalLease) -> Secret | None:
        """The refused credentials with current values of their references; None if none of these has changed."""
        references = references_in(refused.values)
        if not references:
            return None
        self._connectors.forget_values(record.organization_id, references.values())
        try:
            current = await self._connectors.secret(record.organization_id, record.id)
        except GatewayError:
            await self._leases.release(lease, is_lost=False)
            raise
        is_same = current.version != refused.version or current.values == refused.values
        return None if is_same else current

    async def _save(
        self, record: ConnectorRecord, app: App, stale: Secret, lease: RenewalLease, tokens: TokenSet
    ) -> Secret:
        """Commit the new tokens; retried while PostgreSQL is unavailable, because this is their only copy."""
        spec, override = self._catalog.served(record.kind).spec, self._upstreams.overrides.get(record.kind)
        environment = with_token_variables(spec, record.environment, tokens, override)
        credentials = credentials_of(self._method(record), app, tokens, stale.values)
        save = partial(self._persistence.save, lease, credentials, environment, tokens.expires_at)
        try:
            saved = await retry_until_available(save, timeout=_SAVE_TIMEOUT)
        except Unavailable:
            log.error("new tokens were lost: PostgreSQL is unavailable", extra={"connector_id": str(record.id)})
            raise
        return _with_values(saved, stale)

    async def _mark_needs_reauth(self, lease: RenewalLease, error: TokenError, method: AuthMethod) -> Secret:
        """Mark the connector `needs_reauth`, unless newer credentials were stored meanwhile: then return those."""
        reason = _reason(lease, error, method)
        replaced = await self._persistence.mark_needs_reauth(lease, reason)
        if replaced is None:
            raise ReauthorizationRequired(reason)
        return replaced


def _with_values(saved: Secret, used: Secret) -> Secret:
    """Stored credentials with the values of references that the renewal has used; only the references are stored."""
    common = references_in(saved.values).items() & references_in(used.values).items()
    return replace(saved, values={**saved.values, **{name: used.values[name] for name, _ in common}})


def _reason(lease: RenewalLease, error: TokenError, method: AuthMethod) -> str:
    """Why the grant is invalid, and how to fix it."""
    happened = refused_proof(method, error)
    if method.grant_type is not None:
        return f"{happened}; PATCH credentials"
    if lease.lost_since is not None:
        happened = (
            f"a renewal begun at {lease.lost_since:%Y-%m-%dT%H:%M:%SZ} was interrupted before its response was stored, "
            f"and the application now refuses the refresh token, which it may have replaced ({error})"
        )
    return f"{happened}; authorize again: start an OAuth flow with this connector_id, or PATCH credentials"
