"""The OAuth app of a connector: the organization's own, or else the platform's."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from pydantic import SecretStr

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller
from gateway.connectors.consent.consent_request import require_oauth
from gateway.contract.oauth import AppIdentityView, AppView
from gateway.errors import Conflict, UnknownConnectorType
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Binding, Sealed, Vault
from gateway.kinds.authentication import AuthMethod
from gateway.kinds.catalog import Catalog
from gateway.kinds.suggestions import canonical
from gateway.settings import name_in_variables
from gateway.upstream.oauth_tokens.model import App, app_in

_UPSERT = """
    INSERT INTO oauth_apps (organization_id, kind, client_id, key_id, wrapped_key, sealed)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (organization_id, kind) DO UPDATE
    SET client_id = EXCLUDED.client_id, key_id = EXCLUDED.key_id, wrapped_key = EXCLUDED.wrapped_key,
        sealed = EXCLUDED.sealed, updated_at = now()
    RETURNING kind, client_id, created_at, updated_at
"""
_LIST = """
    SELECT kind, client_id, created_at, updated_at FROM oauth_apps WHERE organization_id = $1 ORDER BY kind
"""
_GET = """
    SELECT client_id, key_id, wrapped_key, sealed FROM oauth_apps WHERE organization_id = $1 AND kind = $2
"""
_DELETE = "DELETE FROM oauth_apps WHERE organization_id = $1 AND kind = $2"


def binding(organization_id: UUID, kind: str) -> Binding:
    """The associated data of the sealed secret of an organization's own app."""
    return Binding(organization_id, f"oauth_apps:{kind}", "client_secret")


class RegisteredApps:
    """The platform's apps from the settings, and the organizations' own apps, which take precedence."""

    def __init__(
        self,
        audit: Audit,
        catalog: Catalog,
        database: Database,
        vault: Vault,
        platform: Mapping[str, tuple[str, SecretStr]],
    ) -> None:
        self._audit = audit
        self._catalog = catalog
        self._database = database
        self._vault = vault
        self._platform = {kind: App(client_id, secret) for kind, (client_id, secret) in platform.items()}

    async def put(self, caller: Caller, connector_type: str, client_id: str, client_secret: SecretStr) -> AppView:
        """Set the organization's own app for further consents; raises InvalidParams for a kind without OAuth."""
        spec, organization_id = self._catalog.kind(connector_type).spec, caller.organization_id
        require_oauth(spec)
        kind = spec.kind
        sealed = self._vault.seal({"client_secret": client_secret.get_secret_value()}, binding(organization_id, kind))
        with self._audit.record("oauth_app.put", caller, target=kind, changed=("client_id", "client_secret")) as entry:
            entry.kind = kind
            caller.require_whole_organization()
            async with self._database.tenant(organization_id) as connection:
                row: Any = await connection.fetchrow(
                    _UPSERT, organization_id, kind, client_id, sealed.key_id, sealed.wrapped_key, sealed.sealed
                )
        return _view(row)

    async def find(self, organization_id: UUID) -> list[AppView]:
        """The organization's own apps, by kind."""
        async with self._database.tenant(organization_id) as connection:
            return [_view(row) for row in await connection.fetch(_LIST, organization_id)]

    async def delete(self, caller: Caller, connector_type: str) -> None:
        """Delete the organization's own app, if any; the next consent uses the platform's app."""
        kind = await self._kind_of(caller.organization_id, connector_type)
        with self._audit.record("oauth_app.delete", caller, target=kind) as entry:
            entry.kind = kind
            caller.require_whole_organization()
            async with self._database.tenant(caller.organization_id) as connection:
                await connection.execute(_DELETE, caller.organization_id, kind)

    async def _kind_of(self, organization_id: UUID, connector_type: str) -> str:
        """The name of a kind, or of one that is not served but has an app; raises UnknownConnectorType."""
        try:
            return self._catalog.kind(connector_type).name
        except UnknownConnectorType:
            name = canonical(connector_type)
            if name not in {app.connector_type for app in await self.find(organization_id)}:
                raise
            return name

    async def current(self, organization_id: UUID, kind: str) -> App:
        """The app for a new consent; raises Conflict if there is none."""
        app = await self._own(organization_id, kind) or self._platform.get(kind)
        if app is None:
            variable = f"GATEWAY_OAUTH_{name_in_variables(kind)}_CLIENT_ID"
            raise Conflict(
                f"there is no OAuth app for {kind}: set your own with PUT /api/v1/oauth/credentials, "
                f"or let the operator set {variable} and {variable.removesuffix('ID')}SECRET"
            )
        return app

    async def of(self, organization_id: UUID, kind: str, method: AuthMethod, credentials: Mapping[str, str]) -> App:
        """The app to which the credentials' tokens were issued, with its newest secret; no other can renew them."""
        client_id = credentials.get(method.client_id)
        if method.assertion is not None:
            return app_in(method, credentials)
        if client_id is None:
            return await self.current(organization_id, kind)
        for app in (await self._own(organization_id, kind), self._platform.get(kind)):
            if app is not None and app.client_id == client_id:
                return app
        return app_in(method, credentials)

    async def _own(self, organization_id: UUID, kind: str) -> App | None:
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_GET, organization_id, kind)
        if row is None:
            return None
        sealed = Sealed(row["key_id"], row["wrapped_key"], row["sealed"])
        secret = self._vault.open(sealed, binding(organization_id, kind))["client_secret"]
        return App(row["client_id"], SecretStr(secret), is_own=True)


def _view(row: Any) -> AppView:
    """The app as callers see it, without its secret."""
    return AppView(row["kind"], AppIdentityView(row["client_id"]), row["created_at"], row["updated_at"])
