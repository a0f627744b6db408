"""Creates, changes and checks connectors. The gateway checks credentials with the application before it stores them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller
from gateway.access.identity.store import IdentityStore
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.model import ConnectorChange, ConnectorRecord, NewConnector, changed_columns, name_taken
from gateway.connectors.secret_values import SecretValues, require_resolvable
from gateway.connectors.store import ConnectorStore
from gateway.connectors.views import connector_view
from gateway.contract.connectors import (
    Connector,
    ConnectorPage,
    ConnectorRequest,
    ConnectorSelection,
    ConnectorSettings,
    ConnectorStatus,
    IfExists,
)
from gateway.contract.cursors import page_of, read_time_cursor
from gateway.contract.members import as_of_member
from gateway.errors import (
    Conflict,
    FieldError,
    GatewayError,
    InvalidCredentials,
    ReauthorizationRequired,
    UpstreamNotFound,
    UpstreamRejected,
)
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.turns import in_thread, mapped
from gateway.kinds.authentication import AuthMethod
from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.spec import ConnectorSpec
from gateway.kinds.sunsets import described_sunset
from gateway.upstream.auth import Authorizer, StaticAuthorizer, bad_key, checked_credentials, headers_for, shown_name
from gateway.upstream.oauth_tokens.assertions import AssertionSigner
from gateway.upstream.oauth_tokens.model import App
from gateway.upstream.oauth_tokens.refreshing import RefreshingAuthorizer
from gateway.upstream.private_keys import BadKey
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.requests import checked_environment
from gateway.upstream.upstreams import Upstreams


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedCredentials:
    """Checked credentials and variables: complete, for one method, and accepted by the application if it was asked.

    The credentials have references beside their values, which the store leaves out.
    """

    kind: Kind
    method: str
    credentials: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str]
    #: when the access token expires, if the check obtained one
    expires_at: datetime | None = None

    @property
    def authentication(self) -> AuthMethod:
        return self.kind.spec.authentication[self.method]

    def new_connector(
        self, workspace_id: UUID, settings: ConnectorSettings, owner_id: UUID | None = None
    ) -> NewConnector:
        """A new connector with these credentials, of that person if it is personal; its name is the application's
        unless given.
        """
        return NewConnector(
            workspace_id=workspace_id,
            kind=self.kind.name,
            settings={**settings, "name": settings.get("name") or self.kind.spec.application},
            auth_method=self.method,
            environment=self.environment,
            credentials=self.credentials,
            expires_at=self.expires_at,
            owner_id=owner_id,
        )


#: the app that renews tokens of an organization's kind: `Apps.of`
AppOf = Callable[[UUID, ConnectorSpec, AuthMethod, Mapping[str, str]], Awaitable[App]]
#: begins the copies of a new connector, for a client: `Synchronization.begin`
BeginCopies = Callable[[ConnectorRecord, UUID], Awaitable[object]]
#: forgets what this process has cached of a connector: the next call has the change, before the notification of it
Forget = Callable[[str], None]


class ConnectorService:
    """The use cases around a connector's record."""

    def __init__(
        self,
        audit: Audit,
        catalog: Catalog,
        store: ConnectorStore,
        identity: IdentityStore,
        upstreams: Upstreams,
        secrets: SecretValues,
        app_of: AppOf,
        begin_copies: BeginCopies,
        forget: Forget,
    ) -> None:
        self._audit = audit
        self._forget = forget
        self._begin_copies = begin_copies
        self._access = ConnectorAccess(store, identity, catalog)
        self._app_of = app_of
        self._catalog = catalog
        self._store = store
        self._identity = identity
        self._upstreams = upstreams
        self._secrets = secrets

    async def verify(
        self,
        organization_id: UUID,
        connector_type: str,
        credentials: Mapping[str, Any],
        environment: Mapping[str, Any],
        *,
        validate: bool,
    ) -> VerifiedCredentials:
        """The parts of a connector, checked; with `validate` the application has accepted them.

        Raises InvalidCredentials with every fault, in credentials and variables alike, and Unavailable if the service
        of a referenced secret is away.
        """
        kind = self._catalog.kind(connector_type)
        credentials, references = await self._secrets.given(organization_id, kind.spec, credentials)
        variables = {
            **environment,
            **{name: credentials[name] for name in kind.spec.environment if name in credentials},
        }
        fields = {name: value for name, value in credentials.items() if name not in kind.spec.environment}
        method, checked, variables = self._checked(kind, fields, variables)
        require_resolvable(kind.spec, kind.spec.authentication[method], references)
        verified = VerifiedCredentials(
            kind=kind, method=method, credentials={**checked, **references}, environment=variables
        )
        await _require_signing_key(verified)
        return await self._verify_accepted(organization_id, verified) if validate else verified

    def _checked(
        self, kind: Kind, fields: Mapping[str, Any], variables: Mapping[str, Any]
    ) -> tuple[str, dict[str, str], dict[str, str]]:
        """Method, credentials and variables; the faults of both in one error."""
        faults: list[FieldError] = []
        method = ""
        credentials: dict[str, str] = {}
        environment: dict[str, str] = {}
        try:
            method, credentials = checked_credentials(kind.spec, fields)
        except InvalidCredentials as error:
            faults += error.faults
        try:
            environment = checked_environment(kind.spec, variables, self._upstreams.overrides.get(kind.name))
        except InvalidCredentials as error:
            faults += error.faults
        if faults:
            raise InvalidCredentials(faults=faults)
        return method, credentials, environment

    async def _verify_accepted(self, organization_id: UUID, verified: VerifiedCredentials) -> VerifiedCredentials:
        """The credentials after the check, which may have obtained an access token or a new refresh token."""
        try:
            if verified.authentication.oauth:
                return await self._verify_tokens(organization_id, verified)
            await self._check(verified, StaticAuthorizer(headers_for(verified.authentication, verified.credentials)))
        except (ReauthorizationRequired, UpstreamRejected, UpstreamNotFound) as refusal:
            raise _refused(verified.kind, verified.method, refusal) from refusal
        return verified

    async def _verify_tokens(self, organization_id: UUID, verified: VerifiedCredentials) -> VerifiedCredentials:
        spec = verified.kind.spec
        try:
            app = await self._app_of(organization_id, spec, verified.authentication, verified.credentials)
        except (Conflict, InvalidCredentials):
            app = None  # without an app tokens cannot be renewed, but they may still be valid
        tokens = RefreshingAuthorizer(
            spec=spec,
            credentials=verified.credentials,
            environment=verified.environment,
            upstreams=self._upstreams,
            app=app,
            method=verified.method,
        )
        completed = replace(verified, environment=await tokens.ensure_token_variables())
        await self._check(completed, tokens)
        return replace(
            completed, credentials=tokens.credentials, environment=tokens.environment, expires_at=tokens.expires_at
        )

    async def _check(self, verified: VerifiedCredentials, authorizer: Authorizer) -> None:
        scope = RateScope.of_credentials(verified.kind.spec, verified.credentials)
        await self._upstreams.connector(verified.kind, verified.environment, authorizer, scope).check()

    async def get(self, caller: Caller, connector_id: UUID) -> Connector:
        """The connector, without its credentials; raises NotFound."""
        return connector_view(await self._access.get(caller, connector_id), self._catalog)

    async def find(
        self,
        caller: Caller,
        selection: ConnectorSelection,
        cursor: str | None = None,
        limit: int | None = None,
        *,
        with_personal: bool = False,
    ) -> ConnectorPage:
        """Matching connectors, oldest first; all of them without a limit. With `with_personal` an administrator gets
        those of other people too. Raises InvalidParams for a foreign cursor.
        """
        records, as_of = await self._access.find_as_of(
            caller,
            selection,
            after=read_time_cursor(cursor),
            limit=None if limit is None else limit + 1,
            with_personal=with_personal,
        )
        page, next_cursor = page_of(records, limit)
        views = await mapped(lambda record: connector_view(record, self._catalog), page)
        return ConnectorPage(views, next_cursor, as_of_member(as_of))

    async def latest_of_each_kind(self, caller: Caller, limit: int) -> Sequence[Connector]:
        """The latest connectors of each kind, at most `limit` of one kind, in the order of their creation."""
        records = await self._access.latest_of_each_kind(caller, limit)
        return [connector_view(record, self._catalog) for record in records]

    async def create(self, caller: Caller, request: ConnectorRequest) -> tuple[Connector, bool]:
        """Create a connector, and its workspace if necessary, and begin its copies; returns whether it is new.

        Raises NotFound if the workspace is deleted meanwhile, and Conflict if the name is taken, as `if_exists` says.
        """
        changed = {
            "workspace_name",
            "connector_type",
            "name",
            *request.settings,
            *_members("credentials", request.credentials),
        }
        changed |= _members("environment", request.environment) | ({"owner"} if request.owner else set())
        with self._audit.record("connector.create", caller, changed=changed) as entry:
            caller.require_own_workspace(request.workspace_name)
            owner_id = await self._access.owner_named(caller, request.owner)
            record, is_new = await self._create(caller.organization_id, request, owner_id)
            entry.connector_id, entry.target, entry.kind = record.id, str(record.id), record.kind
        if is_new:
            await self._begin_copies(record, caller.client_id)
        return connector_view(record, self._catalog), is_new

    async def _create(
        self, organization_id: UUID, request: ConnectorRequest, owner_id: UUID | None
    ) -> tuple[ConnectorRecord, bool]:
        kind = self._catalog.kind(request.connector_type)
        name = request.settings.get("name") or kind.spec.application
        existing = await self._existing(organization_id, request, name, kind, owner_id)
        if existing is not None:
            verified = await self.verify_change(existing, request.credentials, request.environment)
            await self._store.update(organization_id, existing.id, **credentials_change(verified))
            self._forget(str(existing.id))
            return await self._store.get(organization_id, existing.id), False
        verified = await self.verify(
            organization_id, kind.name, request.credentials, request.environment, validate=request.validate
        )
        workspace_id = await self._identity.workspace_named(organization_id, request.workspace_name)
        new = verified.new_connector(workspace_id, request.settings, owner_id)
        unique_name = None if request.if_exists is IfExists.CREATE else name
        return await self._store.create(organization_id, new, unique_name=unique_name), True

    async def _existing(
        self, organization_id: UUID, request: ConnectorRequest, name: str, kind: Kind, owner_id: UUID | None
    ) -> ConnectorRecord | None:
        """The owner's connector of that name and kind to update; raises Conflict if the owner has another so named."""
        if request.if_exists is IfExists.CREATE:
            return None
        named = ConnectorSelection(workspace_name=request.workspace_name, name=name, person_id=owner_id)
        records = [each for each in await self._store.find(organization_id, named) if each.owner_id == owner_id]
        if not records:
            return None
        if request.if_exists is IfExists.UPDATE and [record.kind for record in records] == [kind.name]:
            return records[0]
        raise name_taken(name, [record.id for record in records])

    async def change(
        self,
        caller: Caller,
        connector_id: UUID,
        settings: ConnectorSettings,
        *,
        credentials: Mapping[str, Any] | None = None,
        status: ConnectorStatus | None = None,
    ) -> Connector:
        """Change the connector; new credentials replace the old ones only after the application has accepted them. An
        administrator may disable a personal one.
        """
        is_disabling = status is ConnectorStatus.DISABLED and not settings and credentials is None
        get = self._access.get_listed if is_disabling else self._access.get
        record = await get(caller, connector_id)
        change = msgspec.convert({**settings, "status": status}, ConnectorChange)
        changed = {*changed_columns(settings), *(("status",) if status else ())}
        changed |= _members("credentials", credentials or {})
        with self._audit.record("connector.update", caller, connector_id=record.id, changed=changed) as entry:
            entry.kind, entry.target = record.kind, str(record.id)
            if credentials is not None or status is ConnectorStatus.ACTIVE:
                self._catalog.served(record.kind)
            if credentials is not None:
                verified = await self.verify_change(record, credentials)
                change |= credentials_change(verified)
            await self._store.update(record.organization_id, record.id, **change)
            self._forget(str(record.id))
            return connector_view(await self._store.get(record.organization_id, record.id), self._catalog)

    async def verify_change(
        self, record: ConnectorRecord, credentials: Mapping[str, Any], environment: Mapping[str, Any] | None = None
    ) -> VerifiedCredentials:
        """New credentials for a connector, accepted by the application; raises InvalidCredentials.

        The variables in `environment` replace those of the connector.
        """
        variables = {**record.environment, **(environment or {})}
        return await self.verify(record.organization_id, record.kind, credentials, variables, validate=True)


def _members(name: str, members: Mapping[str, Any]) -> set[str]:
    """The dotted names of members within a member, for the audit log."""
    return {f"{name}.{shown_name(each)}" for each in members}


def credentials_change(verified: VerifiedCredentials) -> ConnectorChange:
    """The change of a connector by accepted credentials."""
    return ConnectorChange(
        auth_method=verified.method,
        environment=verified.environment,
        credentials=verified.credentials,
        expires_at=verified.expires_at,
    )


async def _require_signing_key(verified: VerifiedCredentials) -> None:
    """Raise InvalidCredentials if the method signs assertions, and the private key cannot sign one."""
    method, kind = verified.authentication, verified.kind
    if method.assertion is None:
        return
    signer = AssertionSigner(
        spec=kind.spec, method=method, credentials=verified.credentials, environment=verified.environment
    )
    try:
        await in_thread(signer.signed, CLOCK.now())
    except BadKey as bad:
        raise InvalidCredentials(faults=[bad_key(kind.name, method.assertion, str(bad))]) from bad


def _refused(kind: Kind, method: str, refusal: GatewayError) -> InvalidCredentials:
    """The application's refusal, as the fault of the secret credential."""
    authentication = kind.spec.authentication[method]
    key = authentication.assertion.key if authentication.assertion else None
    field = key or authentication.token or (authentication.secrets or ("credentials",))[-1]
    sunset = described_sunset(kind.spec, method)
    message = f"{kind.name}: the application refused {field}: {refusal.detail}" + (f"; {sunset}" if sunset else "")
    fault = FieldError(f"/credentials/{field}", field, "refused", message)
    return InvalidCredentials(message, faults=[fault], upstream=refusal.upstream)
