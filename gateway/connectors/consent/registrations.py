"""The apps that the gateway has registered for organizations at authorization servers (RFC 7591), sealed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from pydantic import SecretStr

from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Binding, Sealed, Vault
from gateway.kinds.authentication import ClientAuthentication
from gateway.upstream.oauth_tokens.model import App
from gateway.upstream.oauth_tokens.registration import Registration

#: a secret is not used in new consents so long before it expires
_REST = timedelta(days=1)
_GET = f"""
    SELECT client_id, redirect_uri, token_url, scopes, authentication, key_id, wrapped_key, sealed,
           COALESCE(expires_at < now() + interval '{_REST.days} days', false) AS is_expiring
    FROM oauth_registrations WHERE organization_id = $1 AND issuer = $2
"""
# Of two consents that register at once, the second uses the app of the first.
_PUT = """
    INSERT INTO oauth_registrations (organization_id, issuer, client_id, redirect_uri, authentication, key_id,
                                     wrapped_key, sealed, expires_at, scopes, token_url)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $11, $12)
    ON CONFLICT (organization_id, issuer) DO UPDATE
    SET client_id = EXCLUDED.client_id, redirect_uri = EXCLUDED.redirect_uri, key_id = EXCLUDED.key_id,
        authentication = EXCLUDED.authentication, wrapped_key = EXCLUDED.wrapped_key, sealed = EXCLUDED.sealed,
        expires_at = EXCLUDED.expires_at, scopes = EXCLUDED.scopes, token_url = EXCLUDED.token_url, created_at = now()
    WHERE oauth_registrations.client_id = $10
"""
_DELETE = """
    DELETE FROM oauth_registrations
    WHERE organization_id = $1 AND issuer = $2 AND ($3::text IS NULL OR client_id = $3)
"""


def binding(organization_id: UUID, issuer: str) -> Binding:
    """The associated data of a registered app's sealed secret."""
    return Binding(organization_id, f"oauth_registrations:{issuer}", "client_secret")


def registered_app(client_id: str, client_secret: str, authentication: ClientAuthentication) -> App:
    """An app that the gateway has registered."""
    return App(client_id, SecretStr(client_secret), is_own=True, is_registered=True, authentication=authentication)


@dataclass(frozen=True, slots=True)
class RegisteredApp:
    """An app, and what decides whether another consent can use it."""

    app: App
    redirect_uri: str
    #: where its secret may be sent; None for an app from before this was stored
    token_url: str | None
    scopes: frozenset[str]
    is_expiring: bool

    def is_usable(self, redirect_uri: str, token_url: str, scopes: Sequence[str]) -> bool:
        """Whether a consent with this redirect URI, this token URL and these scopes can use it."""
        is_same = (self.redirect_uri, self.token_url) == (redirect_uri, token_url)
        return is_same and self.scopes.issuperset(scopes) and not self.is_expiring

    def may_renew_at(self, token_url: str) -> bool:
        """Whether tokens may be renewed with it at this URL."""
        return self.token_url in (None, token_url)


class RegistrationStore:
    """Registered apps by organization and issuer."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def find(self, organization_id: UUID, issuer: str) -> RegisteredApp | None:
        """The app at an authorization server."""
        async with self._database.tenant(organization_id) as connection:
            row: Any = await connection.fetchrow(_GET, organization_id, issuer)
        if row is None:
            return None
        sealed = Sealed(row["key_id"], row["wrapped_key"], row["sealed"])
        secret = self._vault.open(sealed, binding(organization_id, issuer))["client_secret"]
        app = registered_app(row["client_id"], secret, row["authentication"])
        return RegisteredApp(app, row["redirect_uri"], row["token_url"], frozenset(row["scopes"]), row["is_expiring"])

    async def put(
        self,
        organization_id: UUID,
        issuer: str,
        made: Registration,
        *,
        redirect_uri: str,
        token_url: str,
        scopes: Sequence[str],
        replaced: str | None,
    ) -> None:
        """Store an app, unless another one than the replaced is stored meanwhile."""
        sealed = self._vault.seal({"client_secret": made.client_secret}, binding(organization_id, issuer))
        async with self._database.tenant(organization_id) as connection:
            await connection.execute(
                _PUT,
                organization_id,
                issuer,
                made.client_id,
                redirect_uri,
                made.authentication,
                sealed.key_id,
                sealed.wrapped_key,
                sealed.sealed,
                made.expires_at,
                replaced,
                list(scopes),
                token_url,
            )

    async def forget(self, organization_id: UUID, issuer: str, client_id: str | None = None) -> None:
        """Delete the app, if it is that one, so that the next consent registers another."""
        async with self._database.tenant(organization_id) as connection:
            await connection.execute(_DELETE, organization_id, issuer, client_id)
