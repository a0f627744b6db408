"""The OAuth app of a connector: the organization's own, or else the platform's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from pydantic import SecretStr

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller
from gateway.connectors.consent.consent_request import require_oauth
from gateway.connectors.consent.registrations import RegisteredApp, RegistrationStore, registered_app
from gateway.contract.oauth import AppIdentityView, AppView
from gateway.errors import Conflict, UnknownConnectorType
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Binding, Sealed, Vault
from gateway.kinds.authentication import AuthMethod
from gateway.kinds.catalog import Catalog
from gateway.kinds.spec import ConnectorSpec
from gateway.kinds.suggestions import canonical
from gateway.settings import name_in_variables
from gateway.upstream.oauth_tokens.client_keys import SIGNED, ClientKeys
from gateway.upstream.oauth_tokens.model import App, app_in
from gateway.upstream.oauth_tokens.registration import Registration

_UPSERT = """
    INSERT INTO oauth_apps (organization_id, kind, client_id, key_id, wrapped_key, sealed, issuer)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (organization_id, kind) DO UPDATE
    SET client_id = EXCLUDED.client_id, key_id = EXCLUDED.key_id, wrapped_key = EXCLUDED.wrapped_key,
        sealed = EXCLUDED.sealed, issuer = EXCLUDED.issuer, updated_at = now()
    RETURNING kind, client_id, created_at, updated_at
"""
_LIST = """
    SELECT kind, client_id, created_at, updated_at FROM oauth_apps WHERE organization_id = $1 ORDER BY kind
"""
_GET = """
    SELECT client_id, key_id, wrapped_key, sealed, issuer FROM oauth_apps WHERE organization_id = $1 AND kind = $2
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
        keys: ClientKeys,
    ) -> None:
        self._audit = audit
        self._catalog = catalog
        self._database = database
        self._vault = vault
        self._registrations = RegistrationStore(database, vault)
        #: what proves the apps of servers at which the gateway must sign
        self.keys = keys
        self._platform = {kind: App(client_id, secret) for kind, (client_id, secret) in platform.items()}

    async def put(self, caller: Caller, connector_type: str, client_id: str, client_secret: SecretStr) -> AppView:
        """Set the organization's own app for further consents; raises InvalidParams for a kind without OAuth."""
        return await self.put_of(caller, self._catalog.kind(connector_type).spec, client_id, client_secret)

    async def put_of(self, caller: Caller, spec: ConnectorSpec, client_id: str, client_secret: SecretStr) -> AppView:
        """The same for a kind that was served a moment ago. The app of an MCP server is bound to its issuer."""
        require_oauth(spec)
        organization_id, kind = caller.organization_id, spec.kind
        sealed = self._vault.seal({"client_secret": client_secret.get_secret_value()}, binding(organization_id, kind))
        with self._audit.record("oauth_app.put", caller, target=kind, changed=("client_id", "client_secret")) as entry:
            entry.kind = kind
            caller.require_whole_organization()
            async with self._database.tenant(organization_id) as connection:
                row: Any = await connection.fetchrow(
                    _UPSERT,
                    organization_id,
                    kind,
                    client_id,
                    sealed.key_id,
                    sealed.wrapped_key,
                    sealed.sealed,
                    _issuer(spec),
                )
        return _view(row)

    async def find(self, organization_id: UUID) -> list[AppView]:
        """The organization's own apps, by kind."""
        async with self._database.tenant(organization_id) as connection:
            return [_view(row) for row in await connection.fetch(_LIST, organization_id)]

    async def delete(self, caller: Caller, connector_type: str) -> None:
        """Delete the organization's own app, if any, and the one that the gateway has registered; the next consent uses
        the platform's app, or registers another.
        """
        kind = await self._kind_of(caller.organization_id, connector_type)
        with self._audit.record("oauth_app.delete", caller, target=kind) as entry:
            entry.kind = kind
            caller.require_whole_organization()
            async with self._database.tenant(caller.organization_id) as connection:
                await connection.execute(_DELETE, caller.organization_id, kind)
            served = self._catalog.kinds.get(kind)
            if served is not None and (issuer := _issuer(served.spec)) is not None:
                await self._registrations.forget(caller.organization_id, issuer)

    async def _kind_of(self, organization_id: UUID, connector_type: str) -> str:
        """The name of a kind, or of one that is not served but has an app; raises UnknownConnectorType."""
        try:
            return self._catalog.kind(connector_type).name
        except UnknownConnectorType:
            name = canonical(connector_type)
            if name not in {app.connector_type for app in await self.find(organization_id)}:
                raise
            return name

    async def configured(self, organization_id: UUID, spec: ConnectorSpec) -> App | None:
        """The app that a person has registered: the organization's own, or else the platform's.

        Raises Conflict for an own app that another authorization server has registered.
        """
        own, is_elsewhere = await self._own(organization_id, spec)
        if is_elsewhere:
            raise Conflict(
                f"the OAuth app of your organization for {spec.kind} is registered at another authorization server "
                "than the one that the MCP server names now; set the app again, or delete it"
            )
        return own or self._of_platform(spec)

    async def current(self, organization_id: UUID, spec: ConnectorSpec) -> App:
        """That app; raises Conflict if there is none."""
        app = await self.configured(organization_id, spec)
        if app is None:
            variable = f"GATEWAY_OAUTH_{name_in_variables(spec.kind)}_CLIENT_ID"
            raise Conflict(
                f"there is no OAuth app for {spec.kind}: set your own with PUT /api/v1/oauth/credentials, "
                f"or let the operator set {variable} and {variable.removesuffix('ID')}SECRET"
            )
        return app

    async def registered(self, organization_id: UUID, spec: ConnectorSpec) -> RegisteredApp | None:
        """The app that the gateway has registered for the organization at the kind's authorization server."""
        issuer = _issuer(spec)
        found = None if issuer is None else await self._registrations.find(organization_id, issuer)
        return found and replace(found, app=self._with_keys(found.app))

    async def register(
        self,
        organization_id: UUID,
        spec: ConnectorSpec,
        made: Registration,
        *,
        redirect_uri: str,
        scopes: Sequence[str],
        replaced: RegisteredApp | None,
    ) -> App:
        """Store an app that was registered in place of another; returns it, or the one that another consent has
        registered meanwhile if it serves too. One that is not stored serves its own consent only.
        """
        oauth = spec.oauth_endpoints
        client_id = None if replaced is None else replaced.app.client_id
        await self._registrations.put(
            organization_id,
            oauth.issuer or "",
            made,
            redirect_uri=redirect_uri,
            token_url=oauth.token_url,
            scopes=scopes,
            replaced=client_id,
        )
        stored = await self.registered(organization_id, spec)
        if stored is not None and stored.is_usable(redirect_uri, oauth.token_url, scopes):
            return stored.app
        return self._with_keys(registered_app(made.client_id, made.client_secret, made.authentication))

    async def forget(self, organization_id: UUID, spec: ConnectorSpec, app: App) -> None:
        """Delete an app that its authorization server refuses, so that the next consent registers another."""
        issuer = _issuer(spec)
        if app.is_registered and issuer is not None:
            await self._registrations.forget(organization_id, issuer, app.client_id)

    async def of(
        self, organization_id: UUID, spec: ConnectorSpec, method: AuthMethod, credentials: Mapping[str, str]
    ) -> App:
        """The app to which the credentials' tokens were issued, with its newest secret; no other can renew them."""
        client_id = credentials.get(method.client_id)
        if method.assertion is not None:
            return app_in(method, credentials)
        if client_id is None:
            return await self.current(organization_id, spec)
        oauth, registered = spec.oauth_endpoints, await self.registered(organization_id, spec)
        own, _ = await self._own(organization_id, spec)
        ours = registered.app if registered is not None and registered.may_renew_at(oauth.token_url) else None
        for app in (own, self._of_platform(spec), ours):
            if app is not None and app.client_id == client_id:
                return app
        if oauth.client_document_authentication == SIGNED and client_id == self.keys.document:
            return App(client_id, SecretStr(""), keys=self.keys)
        app = self._with_keys(app_in(method, credentials))
        return replace(app, is_registered=oauth.registration_url is not None)

    def _with_keys(self, app: App) -> App:
        """The app with the keys that prove it, if it was registered with them."""
        return replace(app, keys=self.keys) if app.authentication == SIGNED else app

    def _of_platform(self, spec: ConnectorSpec) -> App | None:
        """The operator's app for the kind. That of an MCP server is used at its accepted token URL."""
        if spec.mcp is not None:
            served = self._catalog.kinds.get(spec.kind)
            accepted = None if served is None else served.spec.oauth
            if accepted is None or spec.oauth is None or accepted.token_url != spec.oauth.token_url:
                return None
        return self._platform.get(spec.kind)

    async def _own(self, organization_id: UUID, spec: ConnectorSpec) -> tuple[App | None, bool]:
        """The organization's own app, and whether there is one at another authorization server, of no use here."""
        kind = spec.kind
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_GET, organization_id, kind)
        if row is None or row["issuer"] != _issuer(spec):
            return None, row is not None
        sealed = Sealed(row["key_id"], row["wrapped_key"], row["sealed"])
        secret = self._vault.open(sealed, binding(organization_id, kind))["client_secret"]
        return App(row["client_id"], SecretStr(secret), is_own=True), False


def _issuer(spec: ConnectorSpec) -> str | None:
    """The authorization server to which apps of the kind are bound: that of an MCP server."""
    return None if spec.oauth is None or spec.mcp is None else spec.oauth.issuer


def _view(row: Any) -> AppView:
    """The app as callers see it, without its secret."""
    return AppView(row["kind"], AppIdentityView(row["client_id"]), row["created_at"], row["updated_at"])
