"""Consents in PostgreSQL: a state is stored as its hash and is valid once."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from gateway.connectors.model import ConnectorRecord, NewConnector
from gateway.connectors.store import ConnectorStore
from gateway.contract.oauth import CONSENT_SECONDS, FlowStatus, FlowView
from gateway.errors import NotFound
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.vault.vault import Binding, Sealed, Vault
from gateway.upstream.mcp_sign_in import McpSignIn

_INSERT = f"""
    INSERT INTO oauth_flows (id, organization_id, client_id, workspace_id, kind, name, redirect_url, environment,
                             state_hash, app_client_id, key_id, wrapped_key, sealed, reauthorizes, owner_id,
                             expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10, $11, $12, $13, $14, $15,
            now() + interval '{CONSENT_SECONDS} seconds')
    RETURNING expires_at
"""
_COLUMNS = """
    id, organization_id, client_id, workspace_id, kind, name, redirect_url, environment::text AS environment,
    app_client_id, key_id, wrapped_key, sealed, reauthorizes, owner_id
"""
_IS_OPEN = "state_hash = $1 AND used_at IS NULL AND expires_at > now() AND status = 'pending'"
# The last browser that opened the URL is bound: a link preview may have opened it first.
_BIND = f"""
    UPDATE oauth_flows SET browser_hash = $2 WHERE {_IS_OPEN}
    RETURNING {_COLUMNS}
"""
_FIND = f"SELECT {_COLUMNS} FROM oauth_flows WHERE {_IS_OPEN} AND browser_hash = $2"
# Compare-and-set: of several callbacks with one state, only the first from the bound browser gets the row.
_USE = f"""
    UPDATE oauth_flows SET used_at = now() WHERE {_IS_OPEN} AND browser_hash = $2
    RETURNING {_COLUMNS}
"""
_WAS_COMPLETED = "SELECT status = 'completed' FROM oauth_flows WHERE state_hash = $1 AND browser_hash = $2"
#: After so long, the process that exchanges the code counts as dead, and what it still does is refused.
_EXCHANGE = timedelta(seconds=60)
_COMPLETE = f"""
    UPDATE oauth_flows SET status = 'completed', connector_id = $3
    WHERE organization_id = $1 AND id = $2 AND status = 'pending'
      AND (used_at IS NULL OR used_at > now() - interval '{_EXCHANGE.seconds} seconds')
    RETURNING id
"""
# A disabled connector stays disabled.
_REAUTHORIZE = """
    UPDATE connectors
    SET auth_method = $3, environment = $4::jsonb, updated_at = now(),
        status = CASE status WHEN 'disabled' THEN status ELSE 'active' END, status_reason = NULL
    WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL
    RETURNING id
"""
_FAIL = """
    UPDATE oauth_flows SET status = 'failed', error = $3, error_description = $4
    WHERE organization_id = $1 AND id = $2 AND status = 'pending'
"""
# An earlier transaction that completes the consent may not have ended.
_LOCK = "SELECT id FROM oauth_flows WHERE organization_id = $1 AND id = $2 FOR NO KEY UPDATE"
_CONNECTOR = """
    SELECT connector_id FROM oauth_flows WHERE organization_id = $1 AND id = $2 AND status = 'completed'
"""
_IS_COMPLETED = "SELECT status = 'completed' FROM oauth_flows WHERE organization_id = $1 AND id = $2"
_STATUS = """
    SELECT flow.id, flow.client_id, flow.owner_id, kind, workspaces.name AS workspace_name, status, connector_id, error,
           error_description, expires_at, used_at
    FROM oauth_flows AS flow JOIN workspaces ON workspaces.id = flow.workspace_id
    WHERE flow.organization_id = $1 AND flow.id = $2
"""
#: for `prune`
PRUNE = """
    WITH ended AS (
        SELECT id FROM oauth_flows WHERE expires_at < now() - interval '7 days'
        ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM oauth_flows USING ended WHERE oauth_flows.id = ended.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A consent, with the values that the authorization response must match."""

    id: UUID
    organization_id: UUID
    client_id: UUID
    workspace_id: UUID
    kind: str
    name: str | None
    redirect_url: str
    environment: Mapping[str, str]
    app_client_id: str
    #: the PKCE code verifier; None if the application does not support PKCE
    verifier: str | None = field(repr=False)
    #: the application's consent page
    authorization_url: str = field(repr=False)
    #: the caller's `state`, for the final redirect
    state: str | None = field(repr=False)
    #: the connector that is authorized again
    reauthorizes: UUID | None
    #: the person to whom a new connector will belong
    owner_id: UUID | None
    #: the issuer that the response must come from (RFC 9207)
    issuer: str | None = None
    #: the MCP server whose tools the consent accepts, because its kind is not served yet
    server: McpSignIn | None = None
    #: the app, as credentials name it; another one may have replaced it when the response comes
    app: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: whether the request gave the app, which becomes the organization's own with the consent
    is_app_given: bool = False

    @property
    def session(self) -> None:
        """A consent is completed by the application, in no session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowState:
    """The state of a consent, for callers that poll it through the API."""

    id: UUID
    #: the client that began it
    client_id: UUID
    owner_id: UUID | None
    kind: str
    workspace_name: str
    status: FlowStatus
    connector_id: UUID | None
    error: str | None
    error_description: str | None
    expires_at: datetime

    @property
    def view(self) -> FlowView:
        """The state as callers see it."""
        connector_id = None if self.connector_id is None else str(self.connector_id)
        return FlowView(
            flow_id=str(self.id),
            status=self.status,
            expires_at=self.expires_at,
            connector_id=connector_id,
            error=self.error,
            error_description=self.error_description,
        )


#: members of a flow that are secret, or that nobody may change
_SEALED = ("verifier", "authorization_url", "state", "issuer")
_SERVER, _APP, _GIVEN_APP = "server", "app", "given_app"


def binding(organization_id: UUID, flow_id: UUID) -> Binding:
    """The associated data of a flow's sealed secrets."""
    return Binding(organization_id, flow_id, "verifier")


class FlowStore:
    """Consents by organization and id, or once by the hash of their state."""

    def __init__(self, database: Database, vault: Vault, connectors: ConnectorStore) -> None:
        self._database = database
        self._vault = vault
        self._connectors = connectors

    async def create(self, flow: Flow, state_hash: bytes) -> datetime:
        """Store a consent and return when it expires."""
        secrets = {name: value for name in _SEALED if (value := getattr(flow, name)) is not None}
        if flow.server is not None:
            secrets[_SERVER] = msgspec.json.encode(flow.server).decode()
        secrets[_GIVEN_APP if flow.is_app_given else _APP] = msgspec.json.encode(flow.app).decode()
        sealed = self._vault.seal(secrets, binding(flow.organization_id, flow.id))
        async with self._database.tenant(flow.organization_id) as connection:
            expires_at: datetime = await connection.fetchval(
                _INSERT,
                flow.id,
                flow.organization_id,
                flow.client_id,
                flow.workspace_id,
                flow.kind,
                flow.name,
                flow.redirect_url,
                json.dumps(dict(flow.environment)),
                state_hash,
                flow.app_client_id,
                sealed.key_id,
                sealed.wrapped_key,
                sealed.sealed,
                flow.reauthorizes,
                flow.owner_id,
            )
        return expires_at

    async def bind(self, state_hash: bytes, browser_hash: bytes) -> Flow | None:
        """Bind the consent of a state to a browser; None if the state is unknown, used or expired."""
        return await self._fetch(_BIND, state_hash, browser_hash)

    async def find(self, state_hash: bytes, browser_hash: bytes) -> Flow | None:
        """The consent of a state that is not used; None if it is unknown, used, expired or another browser's."""
        return await self._fetch(_FIND, state_hash, browser_hash)

    async def use(self, state_hash: bytes, browser_hash: bytes) -> Flow | None:
        """Use a state once and return its consent; None if it is unknown, used, expired or another browser's."""
        return await self._fetch(_USE, state_hash, browser_hash)

    async def was_completed(self, state_hash: bytes, browser_hash: bytes) -> bool:
        """Whether the consent of a state has created its connector in that browser."""
        async with self._database.system() as connection:
            return bool(await connection.fetchval(_WAS_COMPLETED, state_hash, browser_hash))

    async def _fetch(self, statement: str, state_hash: bytes, browser_hash: bytes) -> Flow | None:
        async with self._database.system() as connection:
            row = await connection.fetchrow(statement, state_hash, browser_hash)
        return row and self._flow(row)

    def _flow(self, row: Any) -> Flow:
        members = dict(row)
        sealed = Sealed(members.pop("key_id"), members.pop("wrapped_key"), members.pop("sealed"))
        secrets = self._vault.open(sealed, binding(members["organization_id"], members["id"]))
        members["environment"] = json.loads(members["environment"])
        app = secrets.get(_GIVEN_APP) or secrets.get(_APP)
        return Flow(
            **members,
            verifier=secrets.get("verifier"),
            authorization_url=secrets.get("authorization_url", ""),
            state=secrets.get("state"),
            issuer=secrets.get("issuer"),
            server=msgspec.json.decode(secrets[_SERVER], type=McpSignIn) if _SERVER in secrets else None,
            app={} if app is None else msgspec.json.decode(app, type=dict[str, str]),
            is_app_given=_GIVEN_APP in secrets,
        )

    async def complete(self, flow: Flow, new: NewConnector) -> ConnectorRecord:
        """Create the connector and complete the consent in one transaction; raises NotFound if it was abandoned.

        May be repeated if it is not known whether the transaction was committed.
        """
        organization_id = flow.organization_id
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            if (completed := await self._completed_within(connection, flow)) is not None:
                return completed
            record = await self._connectors.create_within(connection, organization_id, new)
            await self._complete_within(connection, flow, record.id)
        return record

    async def _completed_within(self, connection: Connection, flow: Flow) -> ConnectorRecord | None:
        """The connector of a consent that is completed already: a consent is used once, so nobody else has done it."""
        await connection.execute(_LOCK, flow.organization_id, flow.id)
        connector_id = await connection.fetchval(_CONNECTOR, flow.organization_id, flow.id)
        if connector_id is None:
            return None
        return await self._connectors.get_within(connection, flow.organization_id, connector_id)

    async def _complete_within(self, connection: Connection, flow: Flow, connector_id: UUID) -> None:
        if await connection.fetchval(_COMPLETE, flow.organization_id, flow.id, connector_id) is None:
            raise NotFound("another consent, or credentials, have replaced this consent, or it took too long")

    async def complete_again(self, flow: Flow, connector_id: UUID, new: NewConnector) -> ConnectorRecord:
        """Store new credentials of a connector; raises NotFound if it was deleted, or the consent abandoned.

        May be repeated, as `complete`.
        """
        organization_id, variables = flow.organization_id, json.dumps(dict(new.environment))
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            if (completed := await self._completed_within(connection, flow)) is not None:
                return completed
            await self._complete_within(connection, flow, connector_id)
            await self._connectors.lock(connection, organization_id, connector_id)
            updated = await connection.fetchval(_REAUTHORIZE, organization_id, connector_id, new.auth_method, variables)
            if updated is None:
                raise NotFound("the connector was deleted meanwhile")
            await self._connectors.seal_within(
                connection, organization_id, connector_id, new.credentials, new.expires_at
            )
            return await self._connectors.get_within(connection, organization_id, connector_id)

    async def fail(self, flow: Flow, error: str, description: str) -> None:
        async with self._database.tenant(flow.organization_id) as connection:
            await connection.execute(_FAIL, flow.organization_id, flow.id, error, description)

    async def abandon(self, organization_id: UUID, flow_id: UUID) -> None:
        """End a consent that another one replaces; an ended consent stays unchanged."""
        async with self._database.tenant(organization_id) as connection:
            await self.abandon_within(connection, organization_id, flow_id)

    async def abandon_within(self, connection: Connection, organization_id: UUID, flow_id: UUID) -> bool:
        """End a consent in the caller's transaction; false if it has already created or changed a connector."""
        await connection.execute(
            _FAIL, organization_id, flow_id, "superseded", "a later consent, or credentials, replaced this consent"
        )
        return not await connection.fetchval(_IS_COMPLETED, organization_id, flow_id)

    async def state(self, organization_id: UUID, flow_id: UUID) -> FlowState:
        """The state of a consent; raises NotFound, also for another organization's consent."""
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_STATUS, organization_id, flow_id)
        if row is None:
            raise NotFound("there is no such OAuth flow")
        return _state(dict(row), CLOCK.now())


def _state(members: dict[str, Any], now: datetime) -> FlowState:
    used_at = members.pop("used_at")
    status = FlowStatus(members.pop("status"))
    is_over = members["expires_at"] < now
    if status is FlowStatus.PENDING and used_at is not None and (is_over or used_at + _EXCHANGE < now):
        # The process that handled the callback has died, and the code is lost.
        status = FlowStatus.FAILED
        members |= {"error": "server_error", "error_description": "the gateway was interrupted; begin again"}
    elif status is FlowStatus.PENDING and is_over:
        status = FlowStatus.EXPIRED
        members["error"] = "expired"
    return FlowState(status=status, **members)
