"""The use case of connect links: a program creates a link, and a person connects one application with it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.access.identity.redirect_urls import redirect_error
from gateway.access.identity.store import IdentityStore
from gateway.access.identity.tokens import hashed, new_secret
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.consent.flows import CONNECT_RETURN_PATH, Flows
from gateway.connectors.consent.store import FlowState
from gateway.connectors.links.store import ConnectSessionStore
from gateway.connectors.model import ConnectorRecord
from gateway.connectors.service import ConnectorService, VerifiedCredentials, credentials_change
from gateway.connectors.store import ConnectorStore
from gateway.contract.connectors import (
    MAX_LINK_SECONDS,
    ConnectLinkView,
    ConnectorSettings,
    ConnectSession,
    ConnectSessionView,
    SessionStatus,
)
from gateway.contract.oauth import CONSOLE_CONNECTED_PATH, ConsentRequest, FlowStatus
from gateway.errors import Conflict, FieldError, InsufficientScope, InvalidParams, NotFound
from gateway.foundation.db.pool import Connection, Database
from gateway.kinds.catalog import Catalog


class ConnectLinks:
    """Creates links for callers; a link is used once a connector is created with it."""

    def __init__(
        self,
        audit: Audit,
        database: Database,
        catalog: Catalog,
        identity: IdentityStore,
        connectors: ConnectorStore,
        access: ConnectorAccess,
        service: ConnectorService,
        flows: Flows,
        *,
        base_url: str,
        is_embedded: bool,
    ) -> None:
        self._audit = audit
        self._database = database
        self._catalog = catalog
        self._identity = identity
        self._connectors = connectors
        self._access = access
        self._service = service
        self._flows = flows
        self._base_url = base_url
        self._is_embedded = is_embedded
        self._store = ConnectSessionStore(database)

    async def create(
        self,
        caller: Caller,
        workspace_name: str,
        *,
        connector_types: Sequence[str] | None = None,
        connector_id: UUID | None = None,
        redirect_url: str | None = None,
        seconds: int = MAX_LINK_SECONDS,
        owner: str | None = None,
        name: str | None = None,
    ) -> ConnectLinkView:
        """Create a link for the workspace, or for one connector of it. A new connector belongs to `owner`: `me` or a
        person's id; None for a shared one. Its name is the application's unless given.

        Raises InsufficientScope, InvalidParams, NotFound, and ConnectorNotReady if the connector's kind is not served.
        """
        with self._audit.record("connect_session.create", caller, connector_id=connector_id) as entry:
            caller.require(Scope.WRITE)
            link = await self._created(
                caller,
                workspace_name,
                connector_types=connector_types,
                connector_id=connector_id,
                redirect_url=redirect_url,
                seconds=seconds,
                owner_id=await self._access.owner_named(caller, owner),
                name=name,
            )
            entry.target = link.id
        return link

    async def _created(
        self,
        caller: Caller,
        workspace_name: str,
        *,
        connector_types: Sequence[str] | None,
        connector_id: UUID | None,
        redirect_url: str | None,
        seconds: int,
        owner_id: UUID | None,
        name: str | None,
    ) -> ConnectLinkView:
        caller.require_own_workspace(workspace_name)
        if connector_id is None:
            if caller.session is not None and caller.session.connectors is not None:
                raise InsufficientScope("the session is for certain connectors; it connects no other ones")
            named = connector_types or self._catalog.kinds
            kinds = tuple(dict.fromkeys(self._catalog.kind(each).name for each in named))
        faults: list[FieldError] = []
        if redirect_url is not None and redirect_url != self._base_url + CONSOLE_CONNECTED_PATH:
            allowed = caller.client.redirect_urls
            fault = redirect_error(redirect_url, allowed, is_embedded=self._is_embedded)
            faults += [fault] if fault else []
        if connector_id is not None:
            record = await self._access.get(caller, connector_id)
            if caller.session is not None and record.owner_id is None:
                raise InsufficientScope("a session connects for its person; the connector is shared")
            kinds = (self._catalog.served(record.kind).name,)
            if record.workspace_name != workspace_name:
                message = f"workspace_name is {workspace_name!r}, and the connector's is {record.workspace_name!r}"
                faults.append(FieldError("/workspace_name", "workspace_name", "mismatch", message))
        if faults:
            raise InvalidParams(faults=faults)
        token, session_id = new_secret(), uuid4()
        expires_at = await self._store.create(
            session_id,
            caller.organization_id,
            client_id=caller.client_id,
            workspace_name=workspace_name,
            kinds=kinds,
            redirect_url=redirect_url,
            reauthorizes=connector_id,
            token_hash=hashed(token),
            seconds=seconds,
            owner_id=owner_id,
            within=None if caller.session is None else caller.session.id,
            connector_name=name,
        )
        return ConnectLinkView(str(session_id), f"{self._base_url}/connect/{token}", expires_at)

    async def get(self, caller: Caller, session_id: UUID) -> ConnectSessionView:
        """The state of a link, if the caller sees its workspace, and created it if it is for another person or if the
        caller is a session for a person; raises NotFound.
        """
        session = await self._store.get(caller.organization_id, session_id)
        caller.require_workspace(session.workspace_name, "connect session")
        is_anothers = not caller.owns(session.owner_id) and session.client_id != caller.client_id
        if is_anothers or (caller.session is not None and session.session_id != caller.session.id):
            raise NotFound("there is no such connect session")
        return (await self._settle(session)).view

    async def open(self, token: str) -> ConnectSession:
        """The session of a link; raises NotFound for an unknown token and if the client may no longer connect."""
        session = await self._store.by_token(hashed(token))
        if session is None:
            raise NotFound("this link is unknown; request a new one where you got it")
        await self._caller(session)
        return session

    async def connect(self, session: ConnectSession, kind: str, credentials: Mapping[str, Any]) -> ConnectorRecord:
        """Create the connector with a person's credentials; raises InvalidCredentials and Conflict."""
        caller = await self._caller(session)
        what = "connector.update" if session.reauthorizes else "connector.create"
        with self._audit.record(what, caller, connector_id=session.reauthorizes, changed=["credentials"]) as entry:
            entry.kind = kind
            self._require_open(session, kind)
            if session.reauthorizes is not None:
                return await self._renew(session, session.reauthorizes, credentials)
            verified = await self._service.verify(session.organization_id, kind, credentials, {}, validate=True)
            record = await self._create(session, verified)
            entry.connector_id, entry.target = record.id, str(record.id)
        return record

    async def begin_consent(
        self, session: ConnectSession, token: str, kind: str, environment: Mapping[str, Any]
    ) -> str:
        """Begin a consent and return its URL; only the last consent of a link can create a connector."""
        self._require_open(session, kind)
        requested = ConsentRequest(
            workspace_name=session.workspace_name,
            connector_type=kind,
            redirect_url=self._base_url + CONNECT_RETURN_PATH,
            name=session.connector_name,
            environment=environment,
            connector_id=session.reauthorizes,
            state=token,
            owner=None if session.owner_id is None else str(session.owner_id),
        )
        started = await self._flows.initiate(await self._caller(session), requested)
        former = await self._store.set_flow(session, started.flow_id)
        if former is not None:
            await self._flows.store.abandon(session.organization_id, former)
        return started.consent_url

    async def finish_consent(self, token: str) -> tuple[ConnectSession, FlowState]:
        """The session after its consent; raises NotFound."""
        session = await self.open(token)
        flow_id = session.flow_id
        if flow_id is None:
            raise NotFound("no consent was begun with this link")
        return await self._settle(session), await self._flows.store.state(session.organization_id, flow_id)

    async def _settle(self, session: ConnectSession) -> ConnectSession:
        """The session, completed if its consent has created a connector, even if the browser did not return."""
        if session.flow_id is None or session.status is SessionStatus.COMPLETED:
            return session
        state = await self._flows.store.state(session.organization_id, session.flow_id)
        if state.status is not FlowStatus.COMPLETED or state.connector_id is None:
            return session
        with suppress(Conflict):  # another request has settled it
            async with self._database.tenant(session.organization_id) as connection:
                await self._store.complete(connection, session, state.connector_id)
        return await self._store.get(session.organization_id, session.id)

    def _require_open(self, session: ConnectSession, kind: str) -> None:
        if session.status is SessionStatus.COMPLETED:
            raise Conflict("the link was used already")
        if session.status is SessionStatus.EXPIRED:
            raise Conflict("the link has expired; request a new one where you got it")
        if kind not in session.kinds:
            raise NotFound(f"this link is not for {kind}")

    async def _caller(self, session: ConnectSession) -> Caller:
        """The client that created the link, while it may create one for the workspace; raises NotFound."""
        caller = await self._identity.caller(session.client_id, session.organization_id)
        if caller is None or Scope.WRITE not in caller.client.scopes or not caller.sees(session.workspace_name):
            raise NotFound("this link is no longer valid; request a new one where you got it")
        return caller

    async def _create(self, session: ConnectSession, verified: VerifiedCredentials) -> ConnectorRecord:
        organization_id = session.organization_id
        workspace_id = await self._identity.workspace_named(organization_id, session.workspace_name)
        settings = ConnectorSettings(name=session.connector_name)
        new = verified.new_connector(workspace_id, settings, session.owner_id)
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            record = await self._connectors.create_within(connection, organization_id, new)
            await self._use_up(connection, session, record.id)
        return record

    async def _use_up(self, connection: Connection, session: ConnectSession, connector_id: UUID) -> None:
        """Complete the link; raises Conflict unless this is the first of its forms and consents."""
        flow_id = await self._store.complete(connection, session, connector_id)
        if flow_id is not None and not await self._flows.store.abandon_within(
            connection, session.organization_id, flow_id
        ):
            raise Conflict("the link was used already")

    async def _renew(
        self, session: ConnectSession, connector_id: UUID, credentials: Mapping[str, Any]
    ) -> ConnectorRecord:
        organization_id = session.organization_id
        record = await self._connectors.get(organization_id, connector_id)
        verified = await self._service.verify_change(record, credentials)
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            await self._use_up(connection, session, connector_id)
            change = credentials_change(verified)
            await self._connectors.update_within(connection, organization_id, connector_id, change)
            return await self._connectors.get_within(connection, organization_id, connector_id)
