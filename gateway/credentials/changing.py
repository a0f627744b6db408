"""Creating, changing and checking connectors: credentials are proven against the application before they are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from yarl import URL

from gateway.connectors.auth import Authorizer, StaticAuthorizer, checked_credentials, headers_for
from gateway.connectors.catalog import Catalog, Kind
from gateway.connectors.connector import Connector
from gateway.connectors.requests import checked_environment
from gateway.connectors.transport import Transport
from gateway.credentials.store import ConnectorRecord, ConnectorStatus, ConnectorStore, NewConnector
from gateway.errors import (
    Fault,
    GatewayError,
    InvalidCredentials,
    ReauthorizationRequired,
    UpstreamNotFound,
    UpstreamRejected,
)
from gateway.identity.store import IdentityStore


@dataclass(frozen=True, slots=True)
class Proven:
    """Credentials and variables that hold: of one method, whole, and accepted by the application if it was asked."""

    kind: Kind
    method: str
    credentials: Mapping[str, str]
    environment: Mapping[str, str]


class ConnectorChanges:
    """The use cases around a connector's record."""

    def __init__(
        self,
        catalog: Catalog,
        store: ConnectorStore,
        identity: IdentityStore,
        transport: Transport,
        overrides: Mapping[str, URL],
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._identity = identity
        self._transport = transport
        self._overrides = overrides

    async def prove(
        self, connector_type: str, credentials: Mapping[str, Any], environment: Mapping[str, Any], *, validate: bool
    ) -> Proven:
        """The parts of a connector, checked; with `validate` the application has accepted them.

        Raises InvalidCredentials with every fault, in credentials and variables alike.
        """
        kind = self._catalog.kind(connector_type)
        variables = {
            **environment,
            **{name: credentials[name] for name in kind.spec.environment if name in credentials},
        }
        fields = {name: value for name, value in credentials.items() if name not in kind.spec.environment}
        method, proven, variables = self._checked(kind, fields, variables)
        if validate:
            await self._ask(kind, method, proven, variables)
        return Proven(kind, method, proven, variables)

    def _checked(
        self, kind: Kind, fields: Mapping[str, Any], variables: Mapping[str, Any]
    ) -> tuple[str, dict[str, str], dict[str, str]]:
        """Method, credentials and variables; the faults of both in one error."""
        faults: list[Fault] = []
        method = ""
        credentials: dict[str, str] = {}
        environment: dict[str, str] = {}
        try:
            method, credentials = checked_credentials(kind.spec, fields)
        except InvalidCredentials as error:
            faults += error.faults
        try:
            environment = checked_environment(kind.spec, variables, self._overrides.get(kind.name))
        except InvalidCredentials as error:
            faults += error.faults
        if faults:
            detail = faults[0].message if len(faults) == 1 else f"{kind.name}: {len(faults)} faults in the credentials"
            raise InvalidCredentials(detail, faults=faults)
        return method, credentials, environment

    async def _ask(
        self, kind: Kind, method: str, credentials: Mapping[str, str], environment: Mapping[str, str]
    ) -> None:
        authorizer = self._authorizer(kind, method, credentials)
        override = self._overrides.get(kind.name)
        try:
            await Connector(kind, environment, authorizer, self._transport, override).check()
        except (ReauthorizationRequired, UpstreamRejected, UpstreamNotFound) as refusal:
            raise _refused(kind, method, refusal) from refusal

    def _authorizer(self, kind: Kind, method: str, credentials: Mapping[str, str]) -> Authorizer:
        return StaticAuthorizer(headers_for(kind.spec.authentication[method], credentials))

    async def create(self, organization_id: UUID, workspace_name: str, name: str, proven: Proven) -> ConnectorRecord:
        """The new connector's record; the workspace comes into being with its first connector."""
        workspace_id = await self._identity.workspace_named(organization_id, workspace_name)
        new = NewConnector(workspace_id, proven.kind.name, name, proven.method, proven.environment, proven.credentials)
        return await self._store.get(organization_id, await self._store.create(organization_id, new))

    async def change(
        self,
        record: ConnectorRecord,
        *,
        name: str | None,
        credentials: Mapping[str, Any] | None,
        status: ConnectorStatus | None,
    ) -> ConnectorRecord:
        """The record changed; new credentials replace the old ones only once the application has accepted them."""
        if credentials is not None:
            proven = await self.prove(record.kind, credentials, record.environment, validate=True)
            await self._store.update(
                record.organization_id,
                record.id,
                name=name,
                status=status or ConnectorStatus.ACTIVE,
                auth_method=proven.method,
                environment=proven.environment,
                credentials=proven.credentials,
            )
        else:
            await self._store.update(record.organization_id, record.id, name=name, status=status)
        return await self._store.get(record.organization_id, record.id)


def _refused(kind: Kind, method: str, refusal: GatewayError) -> InvalidCredentials:
    """The application's refusal, as the fault of the field that proves who calls."""
    authentication = kind.spec.authentication[method]
    field = authentication.token or (authentication.secrets or ("credentials",))[-1]
    message = f"{kind.name}: the application refused {field}: {refusal.detail}"
    fault = Fault(f"/credentials/{field}", field, "refused", message)
    return InvalidCredentials(message, faults=[fault], upstream=refusal.upstream)
